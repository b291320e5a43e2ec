// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages without a reply: `send` returns when the server has accepted them for delivery.

use std::error::Error;
use std::sync::mpsc;

use smt::pki::EphemeralCa;

fn main() -> Result<(), Box<dyn Error>> {
    let authority = EphemeralCa::new()?;
    let identity = authority.server(&["localhost"])?;
    let server = smt::server(identity).bind_blocking("127.0.0.1:0")?;
    let address = server.local_address();
    let (sender, arrived) = mpsc::channel();
    std::thread::spawn(move || {
        while let Some(message) = server.accept() {
            if sender.send(message.body().clone()).is_err() {
                return;
            }
        }
    });

    let trust = authority.trust()?;
    let client = smt::client(trust).server_name("localhost").connect_blocking(address)?;
    for text in ["it rains", "it pours"] {
        client.send(text).wait()?;
        println!("delivered: {:?}", String::from_utf8_lossy(&arrived.recv()?));
    }
    Ok(())
}
