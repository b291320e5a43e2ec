// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client: its requests go to all nodes, and it accepts what f + 1 of them endorse.

use std::sync::Arc;

use smt_replica::{Ask, Completion, SigningKey};

use crate::group::Group;
use crate::message::Message;
use crate::node::Output;

/// A process of a client, with several requests in progress ([`smt_replica::Client`]).
pub struct Client {
    group: Arc<smt_replica::Group>,
    number: u32,
    key: SigningKey,
    process: [u8; 16],
    requests: smt_replica::Client,
}

impl Client {
    /// A process of a client, with random bytes that no other process of it has. Its requests have
    /// the numbers after `last`.
    #[must_use]
    pub fn new(group: &Group, number: u32, key: SigningKey, process: ([u8; 16], u64)) -> Self {
        let options = smt_replica::Options::default();
        let clients = group.clients.clone();
        let group = smt_replica::Group::new(group.stream, clients, group.nodes.clone(), options);
        let group = Arc::new(group);
        let (process, last) = process;
        let requests = smt_replica::Client::new(group.clone(), number, key.clone(), last);
        Self { group, number, key, process, requests }
    }

    /// Leaves all requests, and goes on as another process.
    pub fn begin_process(&mut self, (process, last): ([u8; 16], u64)) {
        let (group, key) = (self.group.clone(), self.key.clone());
        self.process = process;
        self.requests = smt_replica::Client::new(group, self.number, key, last);
    }

    /// Begins a request, and returns its number; nothing if too many are in progress
    /// ([`smt_replica::Client::submit`]).
    pub fn submit(&mut self, operation: Vec<u8>) -> Option<u64> {
        self.requests.submit(self.process, operation)
    }

    /// Leaves a request, which may be executed all the same.
    pub fn give_up(&mut self, number: u64) {
        self.requests.give_up(number);
    }

    /// Accepts a message, and returns the end of a request when f + 1 nodes have endorsed one
    /// answer.
    pub fn receive(&mut self, bytes: &[u8]) -> Option<Completion> {
        match Message::decode(bytes) {
            Some(Message::Endorsement(it)) => self.requests.receive(it),
            _ => None,
        }
    }

    /// Time passes. A request that takes too long is sent again.
    pub fn tick(&mut self) {
        self.requests.tick();
    }

    /// Whether a request waits for its answer.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.requests.is_waiting()
    }

    /// All that is to be sent, in order.
    pub fn outputs(&mut self) -> Vec<Output> {
        let asks = self.requests.asks().into_iter();
        let requests = asks.map(|(Ask::Leader(it) | Ask::All(it))| it);
        requests.map(|it| Output::Nodes(Message::Request(it).encode())).collect()
    }
}

#[cfg(feature = "sim")]
impl smt_replica::sim::SystemClient for Client {
    type Output = Output;

    fn submit(&mut self, _nonce: [u8; 16], operation: Vec<u8>) -> Option<u64> {
        self.submit(operation)
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
