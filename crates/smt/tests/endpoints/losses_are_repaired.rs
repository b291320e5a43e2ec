// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loss, reordering and duplication, in memory and over real sockets: all is delivered, once, and
//! equal.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use smt::{Builder, TlsClient, TlsServer, TransportConfig, blocking};
use smt_io::{Fault, MemoryCarrier};

use crate::support::forwarder::Forwarder;
use crate::support::lossy::lossy;
use crate::support::payload::{is_payload, number_of, payload};
use crate::support::random::{Random, seed};
use crate::support::{Credentials, serve};

const CALLS: u64 = 3_000;
const THREADS: u64 = 8;
const LARGEST: usize = 1_000_000;

fn size_of(seed: u64, number: u64) -> usize {
    8 + Random::new(seed ^ (number << 20)).size(LARGEST)
}

/// How often each request was executed, by its number.
type Executions = Arc<Mutex<HashMap<u64, u32>>>;

/// A server's threads, which check what comes before they send it back.
fn serve_counting(server: &blocking::Server) -> Executions {
    let executions = Executions::default();
    let counted = Arc::clone(&executions);
    serve(server, 2, move |request| {
        let number = number_of(request.body());
        *counted.lock().unwrap().entry(number).or_default() += 1;
        assert!(is_payload(request.body(), number, request.body().len()));
        let body = request.body().clone();
        request.reply(body).unwrap();
    });
    executions
}

/// Calls from some threads over one client.
fn run(seed: u64, client: &blocking::Client, executions: &Executions) {
    let session = client.connect().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for number in (thread..CALLS).step_by(THREADS as usize) {
                    let size = size_of(seed, number);
                    let reply = client.call(payload(number, size)).wait().unwrap();
                    assert!(is_payload(&reply, number, size), "{number}");
                }
            });
        }
    });
    assert!(session.facts().is_some(), "the session has ended");
    let executions = executions.lock().unwrap();
    assert_eq!(executions.len() as u64, CALLS);
    assert!(executions.values().all(|count| *count == 1));
    let statistics = client.statistics();
    println!("{:?}", statistics.protocol);
    assert_eq!(statistics.memory, 0);
}

fn builders() -> (Builder<TlsServer>, Builder<TlsClient>) {
    let credentials = Credentials::new();
    (credentials.server(), credentials.client())
}

#[test]
fn losses_are_repaired_in_memory() {
    let seed = seed();
    let faulty = |carrier: MemoryCarrier, seed: u64| {
        let mut random = Random::new(seed);
        carrier.with_fault(move |_| match random.below(100) {
            0 => Fault::Drop,
            1 => Fault::Duplicate,
            2 => Fault::Delay(1 + random.below(20)),
            _ => Fault::Deliver,
        })
    };
    let (ours, theirs) = MemoryCarrier::pair();
    let (server, client) = builders();
    let theirs = Arc::new(faulty(theirs, seed));
    let address = smt::Carrier::local_address(theirs.as_ref());
    let server = server.bind_over_blocking(theirs).unwrap();
    let executions = serve_counting(&server);
    let client = client.connect_over_blocking(Arc::new(faulty(ours, seed + 1)), address).unwrap();
    run(seed, &client, &executions);
}

#[test]
fn losses_are_repaired_over_sockets() {
    let seed = seed();
    let (server, client) = builders();
    let server = server.bind_blocking("127.0.0.1:0").unwrap();
    let executions = serve_counting(&server);
    let forwarder = Forwarder::new(server.local_address(), lossy(seed));
    let client = client.connect_blocking(forwarder.address()).unwrap();
    run(seed, &client, &executions);
}

#[test]
fn losses_are_repaired_over_sockets_with_small_datagrams() {
    let seed = seed();
    let (server, client) = builders();
    let small = |config: &mut TransportConfig| config.datagram_limit = 1_400;
    let server = server.configure(small).bind_blocking("127.0.0.1:0").unwrap();
    let executions = serve_counting(&server);
    let forwarder = Forwarder::new(server.local_address(), lossy(seed));
    let client = client.configure(small).connect_blocking(forwarder.address()).unwrap();
    run(seed, &client, &executions);
}
