// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A key that the application negotiated itself, instead of certificates. Both sides hold it under a name; each
//! session derives fresh keys from it.

use std::error::Error;

use aws_lc_rs::rand;
use smt::{Builder, RegisteredKey, Suite};

fn main() -> Result<(), Box<dyn Error>> {
    // In place of what the application has negotiated: 32 bytes that nobody else can know.
    let mut secret = [0; 32];
    rand::fill(&mut secret)?;
    let key = || RegisteredKey::from_secret(b"tenant-7", Suite::Aes128Gcm, &secret);

    let server = Builder::new()
        .registered_key(key()?)
        .bind_blocking("127.0.0.1:0")?;
    let address = server.local_address();
    std::thread::spawn(move || {
        while let Some(request) = server.accept() {
            let name = request.peer().key_name.clone().unwrap_or_default();
            if let Err(error) = request.reply(format!("hello, {}", String::from_utf8_lossy(&name)))
            {
                eprintln!("{error}");
            }
        }
    });

    let client = Builder::new()
        .registered_key(key()?)
        .connect_blocking(address)?;
    println!("{}", String::from_utf8_lossy(&client.call("hello").wait()?));
    Ok(())
}
