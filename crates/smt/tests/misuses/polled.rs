// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands that a foreign event loop gives at the wrong time.

use std::time::Duration;

use smt::Failure;
use smt::Fault::{Caller, Limit};
use smt::polled::{Endpoint, Event};

use crate::bystander::{ANY, Bystander};
use crate::misuse::{Misuse, Told, failed, misuse, observed};

/// A server and its client in one event loop, which have a session.
struct Pair {
    server: Endpoint,
    client: Endpoint,
}

impl Pair {
    fn new(by: &Bystander) -> Self {
        let server = by.server_builder().message_limit(1_000).bind_polled(ANY).unwrap();
        let client = by.client_builder().open_polled(ANY).unwrap();
        Self { server, client }
    }

    /// The first event of the client that is one.
    fn client_event<T>(&mut self, wanted: impl Fn(Event) -> Option<T>) -> T {
        loop {
            self.server.process().unwrap();
            self.client.process().unwrap();
            while let Some(event) = self.client.next_event() {
                if let Some(found) = wanted(event) {
                    return found;
                }
            }
        }
    }

    /// The first event of the server that is one.
    fn server_event<T>(&mut self, wanted: impl Fn(Event) -> Option<T>) -> T {
        loop {
            self.client.process().unwrap();
            self.server.process().unwrap();
            while let Some(event) = self.server.next_event() {
                if let Some(found) = wanted(event) {
                    return found;
                }
            }
        }
    }
}

/// Connects, and returns the client's session.
macro_rules! connected {
    ($pair:ident) => {{
        let address = $pair.server.local_address();
        let time = Duration::from_secs(60);
        $pair.client.connect(address, "localhost", time).unwrap();
        $pair.client_event(|event| match event {
            Event::Connected { session, .. } => Some(session),
            _ => None,
        })
    }};
}

/// Makes a request, and returns it as the server has it.
macro_rules! requested {
    ($pair:ident) => {{
        let session = connected!($pair);
        $pair.client.call(session, "a", None).unwrap();
        $pair.server_event(|event| match event {
            Event::Request { rpc, .. } => Some(rpc),
            _ => None,
        })
    }};
}

/// A request that has been answered, and what a further command comes to.
fn again(by: &Bystander, act: impl FnOnce(&mut Endpoint, smt::polled::RpcId) -> Told) -> Told {
    let mut pair = Pair::new(by);
    let rpc = requested!(pair);
    pair.server.reply(rpc, "b").unwrap();
    act(&mut pair.server, rpc)
}

pub(crate) fn table() -> Vec<Misuse> {
    vec![
        misuse("a second reply", Caller, "already answered", |by| {
            again(by, |server, rpc| failed(server.reply(rpc, "c")))
        }),
        misuse("a failure after the reply", Caller, "already answered", |by| {
            again(by, |server, rpc| failed(server.fail(rpc, Failure::refusal(1, "no"))))
        }),
        misuse("a request that is dropped after the reply", Caller, "already answered", |by| {
            again(by, |server, rpc| failed(server.drop_request(rpc)))
        }),
        misuse("a call in a session that was closed", Caller, "has ended or is closing", |by| {
            let mut pair = Pair::new(by);
            let session = connected!(pair);
            pair.client.close(session);
            failed(pair.client.call(session, "a", None))
        }),
        misuse("a message in a session that was closed", Caller, "has ended", |by| {
            let mut pair = Pair::new(by);
            let session = connected!(pair);
            pair.client.close(session);
            failed(pair.client.send(session, "a"))
        }),
        misuse("a session that is closed twice", None, "closed", |by| {
            let mut pair = Pair::new(by);
            let session = connected!(pair);
            pair.client.close(session);
            pair.client.close(session);
            observed("closed")
        }),
        misuse("a call that is cancelled twice", None, "true, then false", |by| {
            let mut pair = Pair::new(by);
            let session = connected!(pair);
            let rpc = pair.client.call(session, "a", None).unwrap();
            let first = pair.client.cancel(rpc);
            observed(format!("{first}, then {}", pair.client.cancel(rpc)))
        }),
        misuse("a request that the server does not take", Limit, "at most 1000", |by| {
            let mut pair = Pair::new(by);
            let session = connected!(pair);
            failed(pair.client.call(session, vec![0; 1_001], None))
        }),
        misuse("a reply by the client's endpoint", Caller, "the session has ended", |by| {
            let mut pair = Pair::new(by);
            let rpc = requested!(pair);
            failed(pair.client.reply(rpc, "b"))
        }),
        misuse("a name that no host can have", Caller, "name", |by| {
            let mut pair = Pair::new(by);
            let address = pair.server.local_address();
            let time = Duration::from_secs(60);
            match pair.client.connect(address, "not a name", time) {
                Err(error) => error.into(),
                Ok(_) => pair.client_event(|event| match event {
                    Event::ConnectFailed { error, .. } => Some(error.into()),
                    _ => None,
                }),
            }
        }),
        misuse("a secret of a session that was closed", Caller, "has ended", |by| {
            let mut pair = Pair::new(by);
            let session = connected!(pair);
            pair.client.close(session);
            failed(pair.client.export(session, "EXPORTER-a", b"", &mut [0; 32]))
        }),
    ]
}
