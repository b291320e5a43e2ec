// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client: its requests go to the head, and to all nodes when they take too long.

use std::sync::Arc;

use smt_replica::{Ask, Completion, Group, SigningKey};

use crate::configuration::Configuration;
use crate::message::Message;
use crate::node::Output;

/// A client with a session and several requests in progress ([`smt_replica::Client`]).
pub struct Client {
    group: Arc<Group>,
    requests: smt_replica::Client,
    /// The newest configuration that the trusted service has told.
    configuration: Configuration,
}

impl Client {
    /// A client whose earlier requests had numbers up to `last`.
    pub fn new(group: Arc<Group>, number: u32, key: SigningKey, last: u64) -> Self {
        let configuration = Configuration::of_number(0, group.replicas);
        let requests = smt_replica::Client::new(group.clone(), number, key, last);
        Self { group, requests, configuration }
    }

    /// Takes a configuration of the trusted service, which tells where the head is. Answers tell it
    /// too, when the nodes have entered one.
    pub(crate) fn configure(&mut self, configuration: Configuration) {
        if configuration.number > self.configuration.number {
            self.configuration = configuration;
        }
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

    /// Accepts a message, and returns the end of a request when f + 1 nodes have said the same of
    /// it.
    pub fn receive(&mut self, bytes: &[u8]) -> Option<Completion> {
        let Some(Message::Reply(reply)) = Message::decode(bytes) else {
            return None;
        };
        let completion = self.requests.receive(reply);
        self.configure(Configuration::of_number(self.requests.view(), self.group.replicas));
        completion
    }

    /// Time passes. A request that takes too long is sent to all nodes, which then watch the head.
    pub fn tick(&mut self) {
        self.requests.tick();
    }

    /// Whether a request waits for its end.
    pub fn is_waiting(&self) -> bool {
        self.requests.is_waiting()
    }

    /// All that is to be sent, in order.
    pub fn outputs(&mut self) -> Vec<Output> {
        let head = self.configuration.head();
        let output = |ask| match ask {
            Ask::Leader(it) => head.map(|to| Output::Node(to, Message::Request(it).encode())),
            Ask::All(it) => Some(Output::Nodes(Message::Request(it).encode())),
        };
        self.requests.asks().into_iter().filter_map(output).collect()
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

#[cfg(all(test, feature = "sim"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use smt_replica::{Proof, Reply};

    use super::*;
    use smt_replica::sim::{client_key, node_key};

    use crate::sim::group::group;

    #[test]
    fn a_client_learns_from_correct_nodes_and_from_no_liar_where_the_head_is() {
        let mut client = Client::new(Arc::new(group(3)), 1, client_key(1), 0);
        // The head of each configuration: 0, 0, 1.
        let expected = [(0, 2, 0), (2, 2, 1), (9, 2, 1)];
        for (one, other, head) in expected {
            let number = client.submit([0; 16], vec![1]).unwrap();
            let sent = client.outputs();
            let [Output::Node(_, bytes)] = sent.as_slice() else {
                panic!("{sent:?}");
            };
            let Some(Message::Request(request)) = Message::decode(bytes) else {
                panic!("it is a request");
            };
            let reply = |replica: u32, view| {
                let (result, proof) = (Ok(vec![7]), Proof::default());
                let request = request.digest();
                let reply = Reply { replica, view, client: 1, number, request, result, proof };
                Message::Reply(reply.sign(&node_key(replica))).encode()
            };
            assert_eq!(client.receive(&reply(1, one)), None);
            let completed = Completion { number, result: Ok(vec![7]) };
            assert_eq!(client.receive(&reply(2, other)), Some(completed));
            assert_eq!(client.configuration.head(), Some(head));
        }
    }
}
