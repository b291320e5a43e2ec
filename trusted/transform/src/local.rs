// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A group in one process, over a network in memory: to try a protocol out, and to test it.

use std::collections::BTreeMap;
use std::sync::Arc;

use smt_attestation::GroupSecret;
use smt_device_client::DeviceError;
use smt_replica::SigningKey;

use crate::client::Client;
use crate::error::NodeError;
use crate::group::{Group, Options};
use crate::node::{Identity, Node, Output};
use crate::protocol::Protocol;

/// After so many ticks a call has failed.
const TICKS: usize = 2000;

/// Nodes and a client. Its keys are known to everybody: nothing here is secret.
pub struct Local<P> {
    nodes: Vec<Option<Node<P>>>,
    client: Client,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum LocalError {
    /// The group cannot be formed.
    Group(DeviceError),
    /// A node has stopped, by the protocol's fault.
    Node(NodeError),
    /// There was no answer in 2,000 ticks.
    NoAnswer,
}

impl std::fmt::Display for LocalError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Group(error) => write!(f, "the group cannot be formed: {error}"),
            Self::Node(error) => error.fmt(f),
            Self::NoAnswer => write!(f, "the group gives no answer"),
        }
    }
}

impl std::error::Error for LocalError {}

impl<P: Protocol> Local<P> {
    /// Starts a group of `size` nodes.
    ///
    /// # Errors
    /// [`LocalError::Group`]
    pub fn new(size: u32, protocol: impl Fn(u32) -> P) -> Result<Self, LocalError> {
        let key = |number: u32| SigningKey::from_bytes(&[number as u8 + 1; 32]);
        let public = |number: u32| key(number).verifying_key().to_bytes();
        let clients = BTreeMap::from([(size, public(size))]);
        let nodes = (0..size).map(public).collect();
        let group = Arc::new(Group { stream: 1, nodes, clients, options: Options::default() });
        let mut nodes = Vec::new();
        for device in 0..size {
            let secret = GroupSecret::new([1; 32]);
            let identity = Identity { secret, device, key: key(device) };
            let node = Node::new(group.clone(), identity, &protocol);
            nodes.push(Some(node.map_err(LocalError::Group)?));
        }
        Ok(Self { nodes, client: Client::new(&group, size, key(size), ([0; 16], 0)) })
    }

    /// Stops a node for ever.
    pub fn stop(&mut self, node: u32) {
        if let Some(node) = self.nodes.get_mut(node as usize) {
            *node = None;
        }
    }

    /// Makes a request, and returns the answer that f + 1 nodes endorse.
    ///
    /// # Errors
    /// [`LocalError::Node`], [`LocalError::NoAnswer`]
    pub fn call(&mut self, operation: Vec<u8>) -> Result<Vec<u8>, LocalError> {
        self.client.submit(operation);
        for _ in 0..TICKS {
            if let Some(answer) = self.settle()? {
                return Ok(answer);
            }
            self.client.tick();
            for node in self.nodes.iter_mut().flatten() {
                node.tick().map_err(LocalError::Node)?;
            }
        }
        Err(LocalError::NoAnswer)
    }

    /// Delivers until nothing is under way.
    fn settle(&mut self) -> Result<Option<Vec<u8>>, LocalError> {
        let mut answered = None;
        loop {
            let mut sent: Vec<(Option<u32>, Output)> = Vec::new();
            sent.extend(self.client.outputs().into_iter().map(|it| (None, it)));
            for (own, node) in (0..).zip(&mut self.nodes) {
                let outputs = node.iter_mut().flat_map(Node::outputs);
                sent.extend(outputs.map(|it| (Some(own), it)));
            }
            if sent.is_empty() {
                return Ok(answered);
            }
            for (from, output) in sent {
                match output {
                    Output::Client(_, bytes) => {
                        let completion = self.client.receive(&bytes);
                        answered = completion.and_then(|it| it.result.ok()).or(answered);
                    }
                    Output::Node(to, bytes) => self.deliver(to, &bytes)?,
                    Output::Nodes(bytes) => {
                        for to in (0..self.nodes.len() as u32).filter(|to| Some(*to) != from) {
                            self.deliver(to, &bytes)?;
                        }
                    }
                }
            }
        }
    }

    fn deliver(&mut self, to: u32, bytes: &[u8]) -> Result<(), LocalError> {
        match self.nodes.get_mut(to as usize) {
            Some(Some(node)) => node.receive(bytes).map_err(LocalError::Node),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::caller::Caller;
    use crate::counter::Counter;
    use crate::protocol::Effect;
    use std::cell::Cell;

    fn sum(answer: Vec<u8>) -> u64 {
        u64::from_be_bytes(answer.try_into().unwrap())
    }

    #[test]
    fn a_crash_tolerant_counter_counts_though_its_leader_stops() {
        let mut group = Local::new(3, |own| Counter::new(own, 3)).unwrap();
        let add = |group: &mut Local<Counter>, added: u64| {
            sum(group.call(added.to_be_bytes().to_vec()).unwrap())
        };
        assert_eq!((add(&mut group, 5), add(&mut group, 6)), (5, 11));
        group.stop(0);
        assert_eq!((add(&mut group, 7), add(&mut group, 8)), (18, 26));
    }

    /// A protocol of which each machine counts from another number.
    struct Chance(u8);

    impl Protocol for Chance {
        fn message(&mut self, _: u32, _: &[u8]) -> Vec<Effect> {
            Vec::new()
        }

        fn timeout(&mut self, _: u32) -> Vec<Effect> {
            Vec::new()
        }

        fn request(&mut self, caller: Caller, number: u64, _: &[u8]) -> Vec<Effect> {
            vec![Effect::Reply { caller, number, answer: vec![self.0] }]
        }
    }

    #[test]
    fn a_protocol_that_is_not_deterministic_stops_its_node_before_it_attests() {
        let machines = Cell::new(0);
        let chance = |_| {
            machines.set(machines.get() + 1);
            Chance(machines.get())
        };
        let mut group = Local::new(3, chance).unwrap();
        let failed = group.call(vec![1]);
        assert!(matches!(failed, Err(LocalError::Node(NodeError::NotDeterministic(_)))));
        let said: Vec<u64> = group.nodes.iter().flatten().map(|it| it.histories[0].taken).collect();
        assert_eq!(said, [0, 0, 0]);
    }
}
