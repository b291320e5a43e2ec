// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Both ends call: while the server works on a request it asks the client for more.

use std::error::Error;

use smt::pki::EphemeralCa;
use smt::{Client, Request};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let authority = EphemeralCa::new()?;
    let identity = authority.server(&["localhost"])?;
    let server = smt::server(identity).bind("127.0.0.1:0").await?;
    let address = server.local_address();
    tokio::spawn(async move {
        while let Some(request) = server.accept_request().await {
            tokio::spawn(async move {
                if let Err(error) = greet(request).await {
                    eprintln!("{error}");
                }
            });
        }
    });

    let trust = authority.trust()?;
    let client = smt::client(trust).server_name("localhost").connect(address).await?;
    tokio::spawn(answer(client.clone()));
    println!("{}", String::from_utf8_lossy(&client.call("greet me").await?));
    Ok(())
}

/// The server's side.
async fn greet(request: Request) -> Result<(), smt::Error> {
    let name = request.session().call("what is your name?").await?;
    request.reply(format!("good day, {}", String::from_utf8_lossy(&name)))
}

/// The client's side of the server's questions.
async fn answer(client: Client) {
    while let Some(question) = client.accept_request().await {
        println!("the server asks: {}", String::from_utf8_lossy(question.body()));
        if let Err(error) = question.reply("Ada") {
            eprintln!("{error}");
        }
    }
}
