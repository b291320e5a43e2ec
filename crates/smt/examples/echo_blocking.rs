// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server that echoes and a client that calls it, with threads.

use std::error::Error;
use std::time::{Duration, Instant};

use smt::pki::EphemeralCa;

fn main() -> Result<(), Box<dyn Error>> {
    // Certificates for this run only. Real ones: `smt keys`, then `Identity::from_pem_files`.
    let authority = EphemeralCa::new()?;
    let identity = authority.server(&["localhost"])?;

    let server = smt::server(identity).bind_blocking("127.0.0.1:0")?;
    let address = server.local_address();
    std::thread::spawn(move || {
        while let Some(request) = server.accept_request() {
            let body = request.body().clone();
            if let Err(error) = request.reply(body) {
                eprintln!("{error}");
            }
        }
    });

    let client =
        smt::client(authority.trust()?).server_name("localhost").connect_blocking(address)?;
    for text in ["hello", "every message", "is encrypted on its own"] {
        let began = Instant::now();
        let reply = client.call(text).deadline(Duration::from_secs(1)).wait()?;
        println!("{:?} came back after {:?}", String::from_utf8_lossy(&reply), began.elapsed());
    }
    Ok(())
}
