// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client: its requests go to the leader, and to all replicas when they take too long.

use std::sync::Arc;

use smt_replica::{Ask, Completion, Group, SigningKey};

use crate::message::Message;
use crate::replica::Output;

/// A client with a session and several requests in progress ([`smt_replica::Client`]).
pub struct Client {
    group: Arc<Group>,
    requests: smt_replica::Client,
}

impl Client {
    /// A client whose earlier requests had numbers up to `last`.
    pub fn new(group: Arc<Group>, number: u32, key: SigningKey, last: u64) -> Self {
        let requests = smt_replica::Client::new(group.clone(), number, key, last);
        Self { group, requests }
    }

    /// Begins a session ([`smt_replica::Client::begin_session`]).
    pub fn begin_session(&mut self, nonce: [u8; 16], session: u64) -> u64 {
        self.requests.begin_session(nonce, session)
    }

    /// Begins a request, and returns its number; nothing if too many are in progress
    /// ([`smt_replica::Client::submit`]).
    pub fn submit(&mut self, nonce: [u8; 16], operation: Vec<u8>) -> Option<u64> {
        self.requests.submit(nonce, operation)
    }

    /// Leaves a request, which may be executed all the same.
    pub fn give_up(&mut self, number: u64) {
        self.requests.give_up(number);
    }

    /// Accepts a message, and returns the end of a request when f + 1 replicas have said the same
    /// of it.
    pub fn receive(&mut self, bytes: &[u8]) -> Option<Completion> {
        match Message::decode(bytes) {
            Some(Message::Reply(reply)) => self.requests.receive(reply),
            _ => None,
        }
    }

    /// Time passes. A request that takes too long is sent to all replicas.
    pub fn tick(&mut self) {
        self.requests.tick();
    }

    /// Whether a request waits for its end.
    pub fn is_waiting(&self) -> bool {
        self.requests.is_waiting()
    }

    /// All that is to be sent, in order.
    pub fn outputs(&mut self) -> Vec<Output> {
        let leader = self.group.leader(self.requests.view());
        let output = |ask| match ask {
            Ask::Leader(it) => Output::Node(leader, Message::Request(it).encode()),
            Ask::All(it) => Output::Nodes(Message::Request(it).encode()),
        };
        self.requests.asks().into_iter().map(output).collect()
    }
}

#[cfg(feature = "sim")]
impl smt_replica::sim::SystemClient for Client {
    type Output = Output;

    fn submit(&mut self, nonce: [u8; 16], operation: Vec<u8>) -> Option<u64> {
        self.submit(nonce, operation)
    }

    fn receive(&mut self, bytes: &[u8]) -> Option<Completion> {
        self.receive(bytes)
    }

    fn tick(&mut self) {
        self.tick();
    }

    fn outputs(&mut self) -> Vec<Output> {
        self.outputs()
    }
}
