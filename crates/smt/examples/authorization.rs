// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The server decides by the names in a client's certificate whether it serves the client, and
//! keeps the name with the session.

use std::error::Error;

use smt::pki::EphemeralCa;
use smt::{ClientAuth, Failure, Peer};

/// The service that a client is, by its SPIFFE id.
struct Service(String);

/// Serves the services of this cluster alone.
fn services(peer: &Peer) -> Result<(), Failure> {
    let id = peer.certificate().and_then(|shown| shown.spiffe_id());
    let service = id.and_then(|id| id.strip_prefix("spiffe://cluster/service/"));
    let Some(service) = service else {
        return Err(Failure::refusal(403, "only services are served here"));
    };
    peer.data().insert(Service(service.to_owned()));
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let authority = EphemeralCa::new()?;
    let server = smt::server(authority.server(&["localhost"])?)
        .client_auth(ClientAuth::Required(authority.trust()?))
        .authorize(services)
        .bind_blocking("127.0.0.1:0")?;
    let address = server.local_address();
    std::thread::spawn(move || {
        while let Some(request) = server.accept_request() {
            let service = request.peer().data().get::<Service>();
            let name = service.map_or_else(String::new, |service| service.0.clone());
            if let Err(error) = request.reply(format!("hello, {name}")) {
                eprintln!("{error}");
            }
        }
    });

    for id in ["spiffe://cluster/service/billing", "spiffe://cluster/guest/7"] {
        let client = smt::client(authority.trust()?)
            .server_name("localhost")
            .identity(authority.client(id)?)
            .connect_blocking(address)?;
        match client.call("hello").wait() {
            Ok(reply) => println!("{id}: {}", String::from_utf8_lossy(&reply)),
            Err(error) => println!("{id}: {error}"),
        }
    }
    Ok(())
}
