// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A key that the application negotiated itself, instead of certificates. Both sides hold it under
//! a name and say who they are; each session derives fresh keys from it.

use std::error::Error;

use aws_lc_rs::rand;
use smt::{KeyEnds, RegisteredKey, Suite};

fn main() -> Result<(), Box<dyn Error>> {
    // In place of what the application has negotiated: 32 bytes that nobody else can know.
    let mut secret = [0; 32];
    rand::fill(&mut secret)?;
    // Each side names itself and the other. Two that disagree have no session, although the secret
    // is the same.
    let key = |own, peer| {
        let ends = KeyEnds { own, peer };
        RegisteredKey::from_secret(b"tenant-7", ends, Suite::Aes128Gcm, &secret)
    };

    let server = smt::server_by_keys([key("store", "web-1")?]).bind_blocking("127.0.0.1:0")?;
    let address = server.local_address();
    std::thread::spawn(move || {
        while let Some(request) = server.accept_request() {
            let client = request.peer().key_identity.clone().unwrap_or_default();
            if let Err(error) = request.reply(format!("hello, {client}")) {
                eprintln!("{error}");
            }
        }
    });

    let client = smt::client_by_key(key("web-1", "store")?).connect_blocking(address)?;
    println!("{}", String::from_utf8_lossy(&client.call("hello").wait()?));
    Ok(())
}
