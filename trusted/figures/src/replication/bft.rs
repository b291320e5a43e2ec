// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The replicated counter over BFT (paper, appendix C.3).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use smt_bft::{Client, Identity, Output};
use smt_replica::{Counter, Group, Logged, Options, OwnDevice, SigningKey};

use smt_loopback::{Machine, Sender};
use smt_trusted_process::public_key;

use super::device::{SECRET, Way};
use super::disk::MemoryDisk;
use super::requester::Requester;
use super::{REPLICAS, STREAM, client_seed, count_operation, replica_seed};
use crate::Failure;

/// The group, with so many clients and requests in a batch.
pub(crate) fn group(clients: u32, batch: usize) -> Arc<Group> {
    let of_client = |it| (it, public_key(&client_seed(it)));
    let clients: BTreeMap<_, _> = (0..clients).map(of_client).collect();
    let reply_keys = (0..REPLICAS).map(|it| public_key(&replica_seed(it))).collect();
    // No request is late, however busy the machine is.
    let options = Options { batch, timeout: 1000, ..Options::default() };
    Arc::new(Group::new(STREAM, clients, reply_keys, options))
}

/// Batches that a replica has executed, for other threads to read.
pub(crate) type Executed = Arc<AtomicU64>;

/// A replica with its log.
pub(crate) struct Replica {
    logged: Logged<smt_bft::Replica<Counter>, MemoryDisk>,
    executed: Executed,
}

impl Replica {
    pub(crate) fn new(
        group: Arc<Group>,
        own: u32,
        way: &Way,
        executed: Executed,
    ) -> Result<Self, Failure> {
        let device = OwnDevice::Process { device: way.open()?, secret: SECRET };
        let reply_key = SigningKey::from_bytes(&replica_seed(own));
        let identity = Identity { device, reply_key };
        let (service, disk) = (Counter::default(), MemoryDisk::default());
        let logged = smt_bft::Replica::open(group, identity, service, disk)?;
        Ok(Self { logged, executed })
    }
}

impl Machine for Replica {
    type Error = Failure;

    fn receive(&mut self, _: Sender, bytes: &[u8]) {
        self.logged.receive(bytes);
    }

    fn tick(&mut self) {
        self.logged.tick();
    }

    fn outputs(&mut self) -> Result<Vec<Output>, Failure> {
        let outputs = self.logged.commit()?;
        self.executed.store(self.logged.node().metrics().executed, Ordering::Relaxed);
        Ok(outputs)
    }
}

/// A client that counts.
pub(crate) struct Caller {
    client: Client,
    number: u64,
}

impl Caller {
    pub(crate) fn new(group: Arc<Group>, own: u32) -> Self {
        let key = SigningKey::from_bytes(&client_seed(own));
        Self { client: Client::new(group, own, key, 0), number: 0 }
    }
}

impl Requester for Caller {
    fn submit(&mut self) -> u64 {
        self.number += 1;
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&self.number.to_be_bytes());
        // No more are begun than may be in progress, and the oldest one ends before so many.
        self.client.submit(nonce, count_operation()).unwrap_or(0)
    }

    fn receive(&mut self, _: u32, bytes: &[u8]) -> Option<u64> {
        self.client.receive(bytes).map(|it| it.number)
    }

    fn tick(&mut self) {
        self.client.tick();
    }

    fn outputs(&mut self) -> Vec<Output> {
        self.client.outputs()
    }
}
