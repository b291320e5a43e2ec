// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Correct nodes between which messages arrive at once, for tests of single rules.

use std::sync::Arc;

use smt_replica::sim::client_key;
use smt_replica::{Group, KeyValue, KeyValueOperation, Reply, Request};

use crate::configuration::Configuration;
use crate::message::Message;
use crate::node::{Accuse, Node, Output};
use crate::sim::group::{group, identity};

/// The first of three nodes, and a service that makes a configuration when two accuse the same one.
pub(crate) struct Together {
    group: Arc<Group>,
    pub(crate) nodes: Vec<Node<KeyValue>>,
    /// Whether all messages are lost.
    pub(crate) is_cut: bool,
    /// All replies to clients.
    pub(crate) replies: Vec<Reply>,
    /// The configuration that each node has accused last.
    accused: Vec<Option<u64>>,
}

impl Together {
    /// The first nodes, of which so many run.
    pub(crate) fn new(running: u32) -> Self {
        let group = Arc::new(group(3));
        let node = |number| Node::new(group.clone(), identity(number), KeyValue::default()).ok();
        let nodes: Vec<_> = (0..running).filter_map(node).collect();
        let accused = vec![None; nodes.len()];
        Self { group, nodes, is_cut: false, replies: Vec::new(), accused }
    }

    pub(crate) fn timeout(&self) -> u32 {
        self.group.options.timeout
    }

    /// Client 1 sends its request of this number to the first nodes.
    pub(crate) fn request(&mut self, number: u64, nodes: usize) {
        let operation = KeyValueOperation::Get(vec![b'a']).encode();
        let request = Request::sign(&client_key(1), 1, number, ([0; 16], operation));
        let bytes = Message::Request(request).encode();
        self.nodes.iter_mut().take(nodes).for_each(|it| it.receive(&bytes));
        self.deliver();
    }

    pub(crate) fn tick(&mut self) {
        self.nodes.iter_mut().for_each(Node::tick);
        self.deliver();
        if let Some(Some(number)) = self.accused.first().copied()
            && self.accused.iter().filter(|it| **it == Some(number)).count() >= 2
        {
            self.configure(number + 1);
        }
    }

    /// All nodes learn of a configuration.
    pub(crate) fn configure(&mut self, number: u64) {
        for node in &mut self.nodes {
            node.configure(Configuration::of_number(number, 3));
        }
        self.deliver();
    }

    /// Delivers messages until there are none.
    fn deliver(&mut self) {
        loop {
            let mut sent = Vec::new();
            for (from, node) in self.nodes.iter_mut().enumerate() {
                for output in node.outputs() {
                    match output {
                        Output::Node(to, bytes) => sent.push((from, Some(to as usize), bytes)),
                        Output::Nodes(bytes) => sent.push((from, None, bytes)),
                        Output::Host(Accuse(number)) => self.accused[from] = Some(number),
                        Output::Client(_, bytes) => {
                            if let Some(Message::Reply(reply)) = Message::decode(&bytes) {
                                self.replies.push(reply);
                            }
                        }
                    }
                }
            }
            if sent.is_empty() {
                return;
            }
            for (from, to, bytes) in sent.into_iter().filter(|_| !self.is_cut) {
                for (number, node) in self.nodes.iter_mut().enumerate() {
                    if number != from && to.is_none_or(|to| to == number) {
                        node.receive(&bytes);
                    }
                }
            }
        }
    }
}
