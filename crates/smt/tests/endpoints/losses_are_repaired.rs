// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loss, reordering and duplication, in memory and over real sockets: all is delivered, once, and equal.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use smt::{Builder, blocking};
use smt_io::{Fault, MemoryCarrier};

use crate::support::forwarder::{Forwarder, Way};
use crate::support::payload::{is_payload, number_of, payload};
use crate::support::random::{Random, seed};
use crate::support::{Credentials, serve};

const CALLS: u64 = 3_000;
const THREADS: u64 = 8;
const LARGEST: usize = 1_000_000;

fn size_of(seed: u64, number: u64) -> usize {
    8 + Random::new(seed ^ (number << 20)).size(LARGEST)
}

/// Calls from some threads over one client; the server counts executions.
fn run(seed: u64, server: &blocking::Server, client: &blocking::Client) {
    let executions = Arc::new(Mutex::new(HashMap::<u64, u32>::new()));
    let counted = Arc::clone(&executions);
    serve(server, 2, move |request| {
        let number = number_of(request.body());
        *counted.lock().unwrap().entry(number).or_default() += 1;
        // What has come must be right before it is sent back.
        assert!(is_payload(request.body(), number, request.body().len()));
        let body = request.body().clone();
        request.reply(body).unwrap();
    });
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

fn builders() -> (Builder, Builder) {
    let credentials = Credentials::new();
    (credentials.server(), credentials.client())
}

#[test]
fn in_memory() {
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
    let server = server.bind_over(theirs).unwrap();
    serve_handshake(&server);
    let client = client
        .connect_over(Arc::new(faulty(ours, seed + 1)), address)
        .unwrap();
    run(seed, &server, &client);
}

/// Somebody must drive a server for clients to connect; nothing is asked of it yet.
fn serve_handshake(server: &blocking::Server) {
    // The caretaker would do, slowly.
    let server = server.clone();
    std::thread::spawn(move || {
        if let Some(request) = server.accept() {
            let body = request.body().clone();
            let _ = request.reply(body);
        }
    });
}

#[test]
fn over_sockets() {
    let seed = seed();
    let (server, client) = builders();
    let server = server.bind_blocking("127.0.0.1:0").unwrap();
    let forwarder = Forwarder::new(server.local_address(), lossy(seed));
    let client = client.connect_blocking(forwarder.address()).unwrap();
    run(seed, &server, &client);
}

#[test]
fn over_sockets_with_small_datagrams() {
    let seed = seed();
    let (server, client) = builders();
    let small = |builder: Builder| builder.configure(|config| config.datagram_limit = 1_400);
    let server = small(server).bind_blocking("127.0.0.1:0").unwrap();
    let forwarder = Forwarder::new(server.local_address(), lossy(seed));
    let client = small(client).connect_blocking(forwarder.address()).unwrap();
    run(seed, &server, &client);
}

/// 1 % lost, 1 % twice, 1 % later than up to 20 others of its way.
pub(crate) fn lossy(seed: u64) -> impl FnMut(Way, &[u8]) -> Vec<(Way, Vec<u8>)> + Send {
    let mut random = Random::new(seed);
    let mut held: Vec<(usize, Way, Vec<u8>)> = Vec::new();
    move |way, datagram| {
        let mut out = Vec::new();
        match random.below(100) {
            0 => {}
            1 => out.extend([(way, datagram.to_vec()), (way, datagram.to_vec())]),
            2 => held.push((1 + random.below(20), way, datagram.to_vec())),
            _ => out.push((way, datagram.to_vec())),
        }
        for (left, of, _) in &mut held {
            *left -= usize::from(*of == way);
        }
        let due = held.extract_if(.., |(left, _, _)| *left == 0);
        out.extend(due.map(|(_, way, bytes)| (way, bytes)));
        out
    }
}
