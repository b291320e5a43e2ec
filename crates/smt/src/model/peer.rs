// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The other side of the endpoint under test: a protocol core without `Driver` or timers, in a
//! thread of its own.

use std::time::Duration;

use bytes::Bytes;
use shuttle::rand::{Rng, thread_rng};
use smt_carrier::{Arrival, Carrier, Path, Wait};
use smt_proto::{Endpoint, Event, TransmitBuffer};
use smt_wire::SessionIndex;

use super::carrier::ModelCarrier;
use super::endpoint::{protocol, session_deadline};
use crate::clock::Clock;
use crate::sync::thread;

/// A peer.
pub(super) struct Peer {
    endpoint: Endpoint,
    carrier: ModelCarrier,
    clock: Clock,
    output: TransmitBuffer,
    session: Option<SessionIndex>,
    replies: Vec<Bytes>,
}

impl Peer {
    pub(super) fn new(carrier: ModelCarrier, accept: bool) -> Self {
        let (opened, clock) = protocol(accept, &carrier);
        let endpoint = opened.endpoint;
        Self {
            endpoint,
            carrier,
            clock,
            output: TransmitBuffer::default(),
            session: None,
            replies: Vec::new(),
        }
    }

    /// Begins to connect.
    pub(super) fn connect(&mut self) {
        let path = Path::to(self.carrier.remote());
        let now = self.clock.now();
        let begun = self.endpoint.connect(now, path, "model", session_deadline());
        begun.expect("a first session");
        self.send();
    }

    /// Whether there is a session.
    pub(super) fn is_connected(&self) -> bool {
        self.session.is_some()
    }

    /// Takes in what has come, answers requests with their bodies, and sends. Returns whether
    /// something had come.
    pub(super) fn step(&mut self, wait: Wait) -> bool {
        let (endpoint, clock) = (&mut self.endpoint, self.clock);
        let mut sink = |arrival: Arrival<'_>| endpoint.handle_arrival(clock.now(), arrival);
        let arrivals = self.carrier.receive(&mut sink, wait);
        if arrivals.expect("a carrier that works") == 0 {
            return false;
        }
        while let Some(event) = self.endpoint.poll_event() {
            self.note(event);
        }
        self.send();
        true
    }

    fn note(&mut self, event: Event) {
        match event {
            Event::Accepted { session, .. } | Event::Connected { session, .. } => {
                self.session = Some(session);
            }
            Event::Request { rpc, body, .. } => {
                let replied = self.endpoint.reply(self.clock.now(), rpc, body);
                replied.expect("a request that waits");
            }
            Event::Reply { body, .. } => self.replies.push(body),
            _ => {}
        }
    }

    /// Serves until its end of the network is stopped.
    pub(super) fn serve(mut self) {
        while self.step(FOREVER) {}
    }

    /// Sends requests at once; how many.
    pub(super) fn call(&mut self, bodies: impl Iterator<Item = Bytes>) -> usize {
        let session = self.session.expect("a session");
        let now = self.clock.now();
        let mut count = 0;
        for body in bodies {
            let begun = self.endpoint.call(now, session, body, None);
            begun.expect("room for a call");
            count += 1;
        }
        self.send();
        count
    }

    /// The same, and returns the replies in the order of their bodies when there are so many.
    pub(super) fn call_all(mut self, bodies: impl Iterator<Item = Bytes>) -> Vec<Bytes> {
        let count = self.call(bodies);
        while self.replies.len() < count && self.step(FOREVER) {}
        self.replies.sort();
        self.replies
    }

    /// Replies that have come.
    pub(super) fn replies(&mut self) -> &[Bytes] {
        while self.step(Wait::Never) {}
        &self.replies
    }

    /// Serves, and sends one-way messages now and then.
    pub(super) fn tell_all(mut self, bodies: impl Iterator<Item = Bytes>) {
        let session = self.session.expect("a session");
        for body in bodies {
            for _ in 0..thread_rng().gen_range(0..MOST_YIELDS) {
                while self.step(Wait::Never) {}
                thread::yield_now();
            }
            let sent = self.endpoint.send_one_way(self.clock.now(), session, body, None);
            sent.expect("room for a message");
            self.send();
        }
        self.serve();
    }

    fn send(&mut self) {
        let now = self.clock.now();
        while let Some(transmit) = self.endpoint.poll_transmit(now, &mut self.output) {
            let sent = self.carrier.send(&self.output.batch(&transmit, 0));
            sent.expect("a carrier that works");
        }
    }
}

/// How often others may run before a message is sent.
const MOST_YIELDS: usize = 100;
/// The model has no such timers.
const FOREVER: Wait = Wait::AtMost(Duration::MAX);
