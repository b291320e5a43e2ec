// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Three nodes that know each other: each has one socket, takes requests by it, and calls the
//! others by it. Addresses may be names: they are resolved when a node connects, and again when it
//! has to connect anew.

use std::error::Error;
use std::time::Duration;

use smt::pki::EphemeralCa;
use smt::{Endpoint, TlsClient};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let authority = EphemeralCa::new()?;
    let mut nodes = Vec::new();
    for _ in 0..3 {
        let identity = authority.server(&["localhost"])?;
        let client = TlsClient::new(authority.trust()?).server_name("localhost");
        let node = smt::server(identity).with_client(client);
        nodes.push(node.open("127.0.0.1:0").await?);
    }
    let addresses: Vec<_> = nodes.iter().map(Endpoint::local_address).collect();
    for (number, node) in nodes.iter().enumerate() {
        tokio::spawn(serve(number, node.clone()));
    }
    for (number, node) in nodes.iter().enumerate() {
        for (other, address) in addresses.iter().enumerate() {
            if other == number {
                continue;
            }
            // Nothing is sent before the first call.
            let peer = node.client(*address)?;
            let question = format!("here is node {number}");
            let call = peer.call(question).deadline(Duration::from_secs(1));
            println!("{}", String::from_utf8_lossy(&call.await?));
        }
    }
    for node in &nodes {
        node.close(Duration::from_secs(1)).await;
    }
    Ok(())
}

async fn serve(number: usize, node: Endpoint) {
    while let Some(request) = node.accept_request().await {
        let text = String::from_utf8_lossy(request.body()).into_owned();
        if let Err(error) = request.reply(format!("node {number} has heard: {text}")) {
            eprintln!("{error}");
        }
    }
}
