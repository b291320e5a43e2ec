// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An attacker on the path: sees every datagram, and changes, drops, repeats, reorders, truncates,
//! reflects and forges as it likes, while RPCs run.
//!
//! 1. A first phase attacks for a number of datagrams; then the attacker relents.
//! 2. Every call must complete, each executed once, each with its own bytes; no session may end. A
//!    one-way message may end as "may have been delivered", and is delivered once all the same.
//! 3. The attacker's actions are counted and printed. `SMT_SEED` repeats the attacker's choices.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod attack;
mod support;

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use attack::Attacker;
use smt::{Builder, CallFailure, ErrorKind, Padding, TlsServer, TransportConfig, blocking};
use support::forwarder::Forwarder;
use support::payload::{is_payload, number_of, payload};
use support::random::{Random, seed};
use support::{Credentials, serve_all};

const CALLS: u64 = 2_000;
const THREADS: u64 = 8;
const LARGEST: usize = 200_000;

/// Lets a session live although the attacker drops much of it.
fn patient<R>(builder: Builder<R>) -> Builder<R> {
    builder.configure(|config| config.silence_max = Duration::from_secs(60))
}

/// How often the server's application has run each message.
#[derive(Default)]
struct Executions {
    counts: Mutex<HashMap<u64, u32>>,
    counted: Condvar,
}

impl Executions {
    fn count(&self, number: u64) {
        *self.counts.lock().unwrap().entry(number).or_default() += 1;
        self.counted.notify_all();
    }

    /// The counts, once so many messages have run or a minute is over: the sender of a one-way
    /// message learns that the endpoint has it, which may be before the application does.
    fn of(&self, messages: u64) -> HashMap<u64, u32> {
        let counts = self.counts.lock().unwrap();
        let are_missing = |counts: &mut HashMap<u64, u32>| (counts.len() as u64) < messages;
        let minute = Duration::from_secs(60);
        let waited = self.counted.wait_timeout_while(counts, minute, are_missing);
        waited.unwrap().0.clone()
    }
}

fn counting_server(builder: Builder<TlsServer>) -> (blocking::Server, Arc<Executions>) {
    let server = builder.bind_blocking("127.0.0.1:0").unwrap();
    let executions = Arc::<Executions>::default();
    let counted = Arc::clone(&executions);
    serve_all(&server, 2, move |message| {
        let number = number_of(message.body());
        assert!(is_payload(message.body(), number, message.body().len()));
        counted.count(number);
        if let Some(request) = message.into_request() {
            let body = request.body().clone();
            request.reply(body).unwrap();
        }
    });
    (server, executions)
}

/// Runs RPCs and one-way messages through the attacker, both while it attacks and after it has
/// relented.
fn run(change: impl Fn(&mut TransportConfig)) {
    let (seed, credentials) = (seed(), Credentials::new());
    let (server, executions) = counting_server(patient(credentials.server().configure(&change)));
    let attacker = Attacker::new(seed);
    let rule = attacker.clone();
    let forwarder = Forwarder::new(server.local_address(), move |way, datagram: &[u8]| {
        rule.pass(way, datagram)
    });
    let client = patient(credentials.client().configure(&change))
        .connect_blocking(forwarder.address())
        .unwrap();
    let session = client.connect().unwrap();
    attacker.attack(ATTACKED_DATAGRAMS);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let client = &client;
            scope.spawn(move || {
                for number in (thread..CALLS).step_by(THREADS as usize) {
                    exchange(client, seed, number);
                }
            });
        }
    });
    println!("{attacker}");
    println!("client {:?}", client.statistics().protocol);
    println!("server {:?}", server.statistics().protocol);
    assert!(session.facts().is_some(), "the session has ended");
    let executions = executions.of(CALLS);
    assert_eq!(executions.len() as u64, CALLS);
    assert!(executions.values().all(|count| *count == 1));
    assert!(attacker.has_relented(), "the calls were over before the attack was");
}

fn exchange(client: &blocking::Client, seed: u64, number: u64) {
    let size = 8 + Random::new(seed ^ (number << 20)).size(LARGEST);
    let body = payload(number, size);
    if number % 8 == 7 {
        // The bit that tells delivery lives as long as the id is in the window (SPEC §4.2, §9.5).
        let forgotten = ErrorKind::MayHaveBeenDelivered(CallFailure::Forgotten);
        if let Err(error) = client.send(body).wait() {
            assert_eq!(*error.kind(), forgotten);
        }
        return;
    }
    let reply = client.call(body).wait().unwrap();
    assert!(is_payload(&reply, number, size), "{number}");
}

#[test]
fn nothing_wrong_is_delivered_and_no_session_ends() {
    run(|_| ());
}

#[test]
fn nothing_wrong_is_delivered_with_small_datagrams_padding_and_stripes() {
    run(|config| {
        config.padding = Padding::Padme;
        config.datagram_limit = 1_400;
        config.stripes_log2 = 2;
        config.window = 64;
    });
}

#[test]
fn nothing_wrong_is_delivered_while_keys_are_renewed() {
    let limits = smt::KeyLimits::new(4_096, 1_024, 1 << 30).unwrap();
    run(move |config| config.key_limits = limits);
}

#[test]
fn a_session_is_established_once_the_attacker_relents() {
    for round in 0..8 {
        let (seed, credentials) = (seed() + round, Credentials::new());
        let (server, _) = counting_server(credentials.server());
        let attacker = Attacker::new(seed);
        let rule = attacker.clone();
        let forwarder = Forwarder::new(server.local_address(), move |way, datagram: &[u8]| {
            rule.pass(way, datagram)
        });
        attacker.attack_hard(60);
        let client = credentials
            .client()
            .connect_deadline(Duration::from_secs(20))
            .connect_blocking(forwarder.address())
            .unwrap();
        let body = payload(1, 100_000);
        assert!(client.call(body.clone()).wait().unwrap() == body);
        println!("{attacker}");
    }
}

/// Datagrams that are attacked before the attacker relents.
const ATTACKED_DATAGRAMS: usize = 4_000;
