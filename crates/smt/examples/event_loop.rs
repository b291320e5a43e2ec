// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server and a client in one event loop of the application's own, for which this epoll stands.

use std::error::Error;
use std::os::fd::AsFd;
use std::time::Duration;

use smt::Bytes;
use smt::pki::EphemeralCa;
use smt::polled::{Endpoint, Event};
use smt_io::{Epoll, Token};

fn main() -> Result<(), Box<dyn Error>> {
    let authority = EphemeralCa::new()?;
    let identity = authority.server(&["localhost"])?;
    let builder = smt::server(identity);
    let mut server = builder.bind_polled("127.0.0.1:0")?;
    let address = server.local_address();
    let builder = smt::client(authority.trust()?);
    let mut client = builder.open_polled("127.0.0.1:0")?;
    let epoll = Epoll::new()?;
    epoll.add(server.as_fd(), Token(0))?;
    epoll.add(client.as_fd(), Token(1))?;
    client.connect(address, "localhost", Duration::from_secs(5))?;
    let mut ready = [Token(0); 2];
    loop {
        let count = epoll.wait(&mut ready, None)?;
        for token in &ready[..count] {
            if *token == Token(0) {
                serve(&mut server)?;
            } else if let Some(reply) = call(&mut client)? {
                println!("{reply:?}");
                return Ok(());
            }
        }
    }
}

fn serve(server: &mut Endpoint) -> Result<(), Box<dyn Error>> {
    server.process()?;
    while let Some(event) = server.next_event() {
        if let Event::Request { rpc, body, .. } = event {
            // A caller that has given up is no reason to stop.
            if let Err(error) = server.reply(rpc, body) {
                eprintln!("{error}");
            }
        }
    }
    Ok(())
}

/// The reply, when it has come.
fn call(client: &mut Endpoint) -> Result<Option<Bytes>, Box<dyn Error>> {
    client.process()?;
    while let Some(event) = client.next_event() {
        match event {
            Event::Connected { session, .. } => _ = client.call(session, "hello", None)?,
            Event::Reply { body, .. } => return Ok(Some(body)),
            Event::ConnectFailed { error, .. } => return Err(error.into()),
            _ => {}
        }
    }
    Ok(None)
}
