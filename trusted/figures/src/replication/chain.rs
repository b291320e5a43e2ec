// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The key-value store over chain replication (paper, appendix C.4).

use std::sync::Arc;

use smt_bft::Output;
use smt_chain::{Client, Identity};
use smt_loopback::{Machine, Sender};
use smt_replica::{Group, KeyValue, Logged, OwnDevice, SigningKey};

use super::device::{SECRET, Way};
use super::disk::MemoryDisk;
use super::requester::Requester;
use super::{client_seed, put_operation, replica_seed};
use crate::Failure;

/// A node with its log.
pub(crate) struct Node(Logged<smt_chain::Node<KeyValue>, MemoryDisk>);

impl Node {
    pub(crate) fn new(group: Arc<Group>, own: u32, way: &Way) -> Result<Self, Failure> {
        let device = OwnDevice::Process { device: way.open()?, secret: SECRET };
        let reply_key = SigningKey::from_bytes(&replica_seed(own));
        let identity = Identity { device, reply_key };
        let (service, disk) = (KeyValue::default(), MemoryDisk::default());
        Ok(Self(smt_chain::Node::open(group, identity, service, disk)?))
    }
}

/// Where an output goes. No service makes configurations here: nobody is to be replaced.
fn sent(output: smt_chain::Output) -> Option<Output> {
    match output {
        smt_chain::Output::Node(to, bytes) => Some(Output::Node(to, bytes)),
        smt_chain::Output::Nodes(bytes) => Some(Output::Nodes(bytes)),
        smt_chain::Output::Client(to, bytes) => Some(Output::Client(to, bytes)),
        smt_chain::Output::Host(_) => None,
    }
}

impl Machine for Node {
    type Error = Failure;

    fn receive(&mut self, _: Sender, bytes: &[u8]) {
        self.0.receive(bytes);
    }

    fn tick(&mut self) {
        self.0.tick();
    }

    fn outputs(&mut self) -> Result<Vec<Output>, Failure> {
        Ok(self.0.commit()?.into_iter().filter_map(sent).collect())
    }
}

/// A client that writes.
pub(crate) struct Caller {
    client: Client,
    own: u32,
    number: u64,
}

impl Caller {
    pub(crate) fn new(group: Arc<Group>, own: u32) -> Self {
        let key = SigningKey::from_bytes(&client_seed(own));
        Self { client: Client::new(group, own, key, 0), own, number: 0 }
    }
}

impl Requester for Caller {
    fn submit(&mut self) -> u64 {
        self.number += 1;
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&self.number.to_be_bytes());
        // No more are begun than may be in progress, and the oldest one ends before so many.
        self.client.submit(nonce, put_operation(self.own, self.number)).unwrap_or(0)
    }

    fn receive(&mut self, _: u32, bytes: &[u8]) -> Option<u64> {
        self.client.receive(bytes).map(|it| it.number)
    }

    fn tick(&mut self) {
        self.client.tick();
    }

    fn outputs(&mut self) -> Vec<Output> {
        self.client.outputs().into_iter().filter_map(sent).collect()
    }
}
