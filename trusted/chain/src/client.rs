// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client: it signs requests, and takes answers that f + 1 nodes give.

use std::collections::BTreeMap;
use std::sync::Arc;

use smt_replica::{Digest, Group, Reply, Request, SigningKey};

use crate::configuration::Configuration;
use crate::message::Message;
use crate::node::Output;
use crate::rule::{Broken, Rule};

/// A client, with one request at a time.
pub struct Client {
    group: Arc<Group>,
    number: u32,
    key: SigningKey,
    last: u64,
    current: Option<Current>,
    configuration: Configuration,
    outputs: Vec<Output>,
    pub(crate) broken: Broken,
}

struct Current {
    request: Request,
    digest: Digest,
    /// Each node's answer, and the number of its configuration.
    answers: BTreeMap<u32, (Vec<u8>, u64)>,
    waited: u32,
}

impl Current {
    fn is_answered_by(&self, reply: &Reply) -> bool {
        reply.number == self.request.number && reply.request == self.digest
    }
}

impl Client {
    /// A client whose earlier requests had numbers up to `last`.
    pub fn new(group: Arc<Group>, number: u32, key: SigningKey, last: u64) -> Self {
        let configuration = Configuration::of_number(0, group.replicas);
        let (current, outputs, broken) = (None, Vec::new(), Broken::default());
        Self { group, number, key, last, current, configuration, outputs, broken }
    }

    /// Takes a configuration of the trusted service, which tells where the head is. Answers tell it
    /// too, when the nodes have entered one.
    pub(crate) fn configure(&mut self, configuration: Configuration) {
        if configuration.number > self.configuration.number {
            self.configuration = configuration;
        }
    }

    /// Begins a request, with random bytes as its nonce. The one before is given up.
    pub fn submit(&mut self, nonce: [u8; 16], operation: Vec<u8>) -> u64 {
        self.last += 1;
        let request = Request::sign(&self.key, self.number, self.last, (nonce, operation));
        let bytes = Message::Request(request.clone()).encode();
        let head = self.configuration.head();
        self.outputs.extend(head.map(|head| Output::Node(head, bytes)));
        let digest = request.digest();
        self.current = Some(Current { request, digest, answers: BTreeMap::new(), waited: 0 });
        self.last
    }

    /// Takes a message, and returns the answer when f + 1 nodes have given it.
    pub fn receive(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let Some(Message::Reply(reply)) = Message::decode(bytes) else {
            return None;
        };
        let waits_for_it = self.current.as_ref().is_some_and(|it| it.is_answered_by(&reply));
        // A signature costs most, so that late answers are dropped before.
        if !(waits_for_it || self.broken.lacks(Rule::ReplyDigest)) || !self.is_genuine(&reply) {
            return None;
        }
        let current = self.current.as_mut()?;
        current.answers.insert(reply.replica, (reply.result.clone(), reply.view));
        let equal = current.answers.values().filter(|it| it.0 == reply.result);
        let configurations: Vec<u64> = equal.map(|it| it.1).collect();
        if configurations.len() < self.group.quorum() && !self.broken.lacks(Rule::ReplyQuorum) {
            return None;
        }
        self.current = None;
        // One of these nodes is correct, and in the lowest of them or beyond.
        let lowest = configurations.into_iter().min().unwrap_or(0);
        self.configure(Configuration::of_number(lowest, self.group.replicas));
        Some(reply.result)
    }

    /// Time passes. A request that takes too long is sent to all nodes, which then watch the head.
    pub fn tick(&mut self) {
        let timeout = self.group.options.timeout.max(2) / 2;
        let Some(current) = &mut self.current else {
            return;
        };
        current.waited = current.waited.saturating_add(1);
        if current.waited % timeout.max(1) == 0 {
            let bytes = Message::Request(current.request.clone()).encode();
            self.outputs.push(Output::Nodes(bytes));
        }
    }

    /// Whether a request waits for its answer.
    pub fn is_waiting(&self) -> bool {
        self.current.is_some()
    }

    /// All that is to be sent, in order.
    pub fn outputs(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    fn is_genuine(&self, reply: &Reply) -> bool {
        if reply.client != self.number {
            return false;
        }
        let Some(key) = self.group.reply_keys.get(reply.replica as usize) else {
            return false;
        };
        self.broken.lacks(Rule::ReplySignature) || reply.is_signed_by(key)
    }
}

#[cfg(all(test, feature = "sim"))]
mod tests {
    use super::*;
    use crate::sim::group::{client_key, group, reply_key};

    #[test]
    fn a_client_learns_from_correct_nodes_and_from_no_liar_where_the_head_is() {
        let mut client = Client::new(Arc::new(group(3)), 1, client_key(1), 0);
        // The head of each configuration: 0, 0, 1.
        let expected = [(0, 2, 0), (2, 2, 1), (9, 2, 1)];
        for (one, other, head) in expected {
            let number = client.submit([0; 16], vec![1]);
            let request = client.current.as_ref().map(|it| it.digest).unwrap_or_default();
            client.outputs();
            let reply = |replica: u32, view| {
                let (result, proof) = (vec![7], smt_replica::ReplyProof::default());
                let reply = Reply { replica, view, client: 1, number, request, result, proof };
                Message::Reply(reply.sign(&reply_key(replica))).encode()
            };
            assert_eq!(client.receive(&reply(1, one)), None);
            assert_eq!(client.receive(&reply(2, other)), Some(vec![7]));
            assert_eq!(client.configuration.head(), Some(head));
        }
    }
}
