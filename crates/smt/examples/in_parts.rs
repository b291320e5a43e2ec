// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A reply that is longer than the memory for it: the server sends rows as it finds them, and the
//! client reads them at its own pace.

use std::error::Error;

use smt::Request;
use smt::pki::EphemeralCa;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let authority = EphemeralCa::new()?;
    let server = smt::server(authority.server(&["localhost"])?);
    let server = server.bind("127.0.0.1:0").await?;
    let address = server.local_address();
    tokio::spawn(async move {
        while let Some(request) = server.accept_request().await {
            tokio::spawn(async move {
                if let Err(error) = send_rows(request).await {
                    eprintln!("{error}");
                }
            });
        }
    });

    let client = smt::client(authority.trust()?).server_name("localhost");
    let client = client.connect(address).await?;
    let mut rows = client.call("every row").reply_in_parts().await?;
    let mut bytes = 0;
    while let Some(row) = rows.next_part().await? {
        bytes += row.len();
    }
    let count = rows.reply().await?.body;
    println!("{} rows, {bytes} bytes", String::from_utf8_lossy(&count));
    Ok(())
}

/// Sends rows until there are no more, waiting while the client has not read enough of them. It
/// ends with an error if the client gives up.
async fn send_rows(request: Request) -> Result<(), smt::Error> {
    let mut rows = request.part_sender();
    for number in 0..ROWS {
        rows.send(format!("{number:0>4000}")).await?;
    }
    request.reply(ROWS.to_string())
}

const ROWS: u32 = 10_000;
