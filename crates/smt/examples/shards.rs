// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two cores at each end: a server of two shards with a thread each, and threads that share a
//! client of two shards out among themselves. No lock is anybody else's.

use std::error::Error;
use std::thread;
use std::time::Instant;

use smt::Shards;
use smt::blocking::{Client, Server};
use smt::pki::EphemeralCa;

fn main() -> Result<(), Box<dyn Error>> {
    let authority = EphemeralCa::new()?;
    let identity = authority.server(&["localhost"])?;
    let server = smt::server(identity);
    let server = server.bind_shards_blocking("127.0.0.1:0", SHARDS)?;
    let address = server[0].local_address();

    for shard in server {
        thread::spawn(move || echo(&shard));
    }

    let client = smt::client(authority.trust()?).server_name("localhost");
    let client = client.connect_shards_blocking(address, SHARDS)?;
    let began = Instant::now();
    call_from_threads(&client);
    println!("{} calls in {:?}", THREADS * CALLS, began.elapsed());
    for (number, shard) in client.iter().enumerate() {
        let received = shard.statistics().protocol.datagrams_received;
        println!("shard {number}: {received} datagrams have come");
    }
    Ok(())
}

fn call_from_threads(client: &Shards<Client>) {
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..CALLS {
                    let reply = client.here().call("hello").wait();
                    assert_eq!(reply.expect("the server is there"), "hello");
                }
            });
        }
    });
}

fn echo(server: &Server) {
    while let Some(request) = server.accept_request() {
        let body = request.body().clone();
        request.reply(body).expect("its caller waits for it");
    }
}

const SHARDS: u16 = 2;
const THREADS: usize = 4;
const CALLS: usize = 1_000;
