// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A source that streams to two nodes under PeerReview (paper, appendix C.5): one witness for each
//! node, which audits it or does not.

use std::sync::Arc;

use smt_bft::Output;
use smt_loopback::{Machine, Sender};
use smt_peer_review::{Delivery, Group, Node, Options, OwnDevice, PublicKey, Tree};

use super::device::{SECRET, Way};
use super::requester::{REPEATED_AFTER, Requester};
use super::{REPLICAS, STREAM};
use crate::Failure;

/// Bytes of a part of the stream.
const PART: usize = 100;

/// The group, whose devices have these keys.
pub(crate) fn group(keys: Vec<PublicKey>, is_audited: bool) -> Arc<Group> {
    let audit = if is_audited { 2 } else { u32::MAX };
    let options =
        Options { audit, resend: 1000, complain: 2000, suspect: 4000, ..Options::default() };
    let epochs = vec![1; REPLICAS as usize];
    Arc::new(Group { stream: STREAM, keys, epochs, faults: 0, options })
}

/// A node of the tree. Node 0 is the source.
pub(crate) struct Streaming {
    node: Node<Tree>,
    own: u32,
}

impl Streaming {
    pub(crate) fn new(group: Arc<Group>, own: u32, way: &Way) -> Result<Self, Failure> {
        let device = OwnDevice::Process { device: way.open()?, secret: SECRET };
        let tree = Tree::new(REPLICAS, REPLICAS - 1);
        let node = Node::new(group, device, [own as u8 + 1; 32], &tree)?;
        Ok(Self { node, own })
    }
}

impl Machine for Streaming {
    type Error = Failure;

    fn receive(&mut self, from: Sender, bytes: &[u8]) {
        match from {
            Sender::Replica(from) => self.node.receive(from, bytes),
            Sender::Client => {
                self.node.local(bytes.to_vec());
            }
        }
    }

    fn tick(&mut self) {
        self.node.tick();
    }

    fn outputs(&mut self) -> Result<Vec<Output>, Failure> {
        let outputs = self.node.outputs().into_iter();
        if let Some(failure) = self.node.failure() {
            return Err(failure.to_string().into());
        }
        let own = self.own;
        Ok(outputs.filter_map(|it| sent(own, it)).collect())
    }
}

/// Where an output goes. A part that a node other than the source delivers goes to the client that
/// gave it.
fn sent(own: u32, output: smt_peer_review::Output) -> Option<Output> {
    match output {
        smt_peer_review::Output::Node(to, bytes) => Some(Output::Node(to, bytes)),
        smt_peer_review::Output::Nodes(bytes) => Some(Output::Nodes(bytes)),
        smt_peer_review::Output::Client(..) => None,
        smt_peer_review::Output::Host(_) if own == 0 => None,
        smt_peer_review::Output::Host(bytes) => {
            let part = Delivery::decode(&bytes)?.content.bytes;
            let client = u32::from_be_bytes(*part.first_chunk()?);
            Some(Output::Client(client, part))
        }
    }
}

/// A client that gives the source a part of the stream, until all other nodes have delivered it.
pub(crate) struct Giver {
    own: u32,
    number: u64,
    delivered: Vec<u32>,
    /// Ticks since the part was given.
    waited: u32,
    outputs: Vec<Output>,
}

impl Giver {
    pub(crate) fn new(own: u32) -> Self {
        Self { own, number: 0, delivered: Vec::new(), waited: 0, outputs: Vec::new() }
    }

    fn give(&mut self) {
        self.waited = 0;
        let bytes = self.part();
        self.outputs.push(Output::Node(0, bytes));
    }

    fn part(&self) -> Vec<u8> {
        let mut part = Vec::from(self.own.to_be_bytes());
        part.extend(self.number.to_be_bytes());
        part.resize(PART, 0);
        part
    }
}

impl Requester for Giver {
    fn submit(&mut self) -> u64 {
        self.number += 1;
        self.delivered.clear();
        self.give();
        self.number
    }

    fn tick(&mut self) {
        self.waited += 1;
        if self.waited >= REPEATED_AFTER {
            self.give();
        }
    }

    fn receive(&mut self, from: u32, bytes: &[u8]) -> Option<u64> {
        if bytes == self.part() && !self.delivered.contains(&from) {
            self.delivered.push(from);
        }
        (self.delivered.len() as u32 == REPLICAS - 1).then_some(self.number)
    }

    fn outputs(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }
}

/// The public keys of all devices.
pub(crate) fn keys(ways: &[Way]) -> Result<Vec<PublicKey>, Failure> {
    ways.iter().map(|way| Ok(way.open()?.public_key())).collect()
}
