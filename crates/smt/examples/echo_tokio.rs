// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server that echoes and a client that calls it, on tokio.

use std::error::Error;
use std::time::{Duration, Instant};

use smt::pki::EphemeralCa;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Certificates for this run only. Real ones: `smt keys`, then `Identity::from_pem_files`.
    let authority = EphemeralCa::new()?;
    let identity = authority.server(&["localhost"])?;

    let server = smt::server(identity).bind("127.0.0.1:0").await?;
    let address = server.local_address();
    tokio::spawn(async move {
        while let Some(request) = server.accept_request().await {
            let body = request.body().clone();
            if let Err(error) = request.reply(body) {
                eprintln!("{error}");
            }
        }
    });

    let trust = authority.trust()?;
    let client = smt::client(trust).server_name("localhost").connect(address).await?;
    for text in ["hello", "every message", "is encrypted on its own"] {
        let began = Instant::now();
        let reply = client.call(text).deadline(Duration::from_secs(1)).await?;
        println!("{:?} came back after {:?}", String::from_utf8_lossy(&reply), began.elapsed());
    }
    Ok(())
}
