// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A correct node over kills with a log.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use smt_attestation::{DeviceId, Epoch, SigningKey, Start};
use smt_attestor::{Attested, OutlivingDevice};
use smt_chain::sim::observe;
use smt_chain::{Accusation, Configuration, Identity, Made, Message, Metrics, Output};
use smt_journal::{ModelDisk, SnapshotLog};
use smt_replica::{Counter, Digest, Group, Logged, Node};

type Chain = smt_chain::Node<Counter>;

/// The most ticks of a timeout: they double with each round of configurations in vain.
const TICKS_MAX: u32 = 64;

/// A node that runs, or that its log did not give back.
enum Running {
    WithoutLog(Box<Chain>),
    WithLog(Box<Logged<Chain, ModelDisk>>, OutlivingDevice),
    Refused,
}

/// A correct node, with all that it has answered.
pub struct Process {
    group: Arc<Group>,
    own: u32,
    running: Running,
    /// The requests that it has answered, with the answers, by place.
    answered: BTreeMap<u64, (Digest, Vec<u8>)>,
    /// After a kill it is not what it was.
    differs: bool,
    outputs: Vec<Output>,
}

/// The parts of a correct node that properties look at.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// As it is now.
    pub node: observe::Observed,
    /// Its numbers.
    pub metrics: Metrics,
    /// The hashes of the requests that it has answered, with the answers, by place.
    pub answered: BTreeMap<u64, (Digest, Vec<u8>)>,
    /// Whether it was another one after a kill.
    pub differs: bool,
}

impl Process {
    /// A node of a new group. One with a log has a device that outlives it.
    pub(super) fn new(group: &Arc<Group>, own: u32, has_log: bool) -> Option<Self> {
        let running = match has_log {
            false => Running::WithoutLog(Box::new(observe::node(group, own).ok()?)),
            true => Running::Refused,
        };
        let (group, answered, outputs) = (group.clone(), BTreeMap::new(), Vec::new());
        let mut it = Self { group, own, running, answered, differs: false, outputs };
        if has_log {
            let (device, epoch) = (DeviceId(own), Epoch(1));
            let start = Start { device, epoch, nonce: [0; 16] };
            let key = SigningKey::new(&[5; 32]);
            let device = OutlivingDevice::start(start, observe::secret(), key);
            it.open(device, ModelDisk::default());
        }
        Some(it)
    }

    /// Has the node from its log.
    fn open(&mut self, device: OutlivingDevice, disk: ModelDisk) {
        let reply_key = observe::host_key(self.own);
        let identity = Identity { device: device.own_device(), reply_key };
        let opened = Chain::open(self.group.clone(), identity, Counter::default(), disk);
        self.running = match opened {
            Ok(logged) => Running::WithLog(Box::new(logged), device),
            Err(_) => Running::Refused,
        };
        self.differs |= matches!(self.running, Running::Refused);
        // It says again what it has said, and answers again.
        let outputs = self.work();
        self.outputs.extend(outputs);
    }

    /// The node is killed, and its log gives it back. The log may begin anew before that, with a
    /// snapshot of the node.
    pub(super) fn kill(&mut self, is_anew: bool) {
        let Running::WithLog(mut logged, device) =
            std::mem::replace(&mut self.running, Running::Refused)
        else {
            return;
        };
        let before = Node::snapshot(logged.node());
        self.differs |= is_anew && logged.move_to(ModelDisk::default()).is_err();
        self.open(device, logged.into_disk().crashed(|| true));
        self.differs |= self.node().map(Node::snapshot) != Some(before);
    }

    /// The node, if it runs.
    fn node(&self) -> Option<&Chain> {
        match &self.running {
            Running::WithoutLog(node) => Some(node),
            Running::WithLog(logged, _) => Some(logged.node()),
            Running::Refused => None,
        }
    }

    /// Its inputs are durable, and have these consequences.
    fn work(&mut self) -> Vec<Output> {
        match &mut self.running {
            Running::WithoutLog(node) => node.outputs(),
            Running::WithLog(logged, _) => logged.commit().unwrap_or_else(|_| {
                self.differs = true;
                Vec::new()
            }),
            Running::Refused => Vec::new(),
        }
    }

    /// Takes an input, and notes the answers that follow: one for each place that is new.
    fn take(&mut self, input: impl FnOnce(&mut Running)) {
        let before = self.metrics().committed;
        input(&mut self.running);
        let outputs = self.work();
        let replies = outputs.iter().filter_map(|it| match it {
            Output::Client(_, bytes) => match Message::decode(bytes)? {
                Message::Reply(it) => Some((it.request, it.result.ok()?)),
                _ => None,
            },
            _ => None,
        });
        let new = (before + 1..=self.metrics().committed).zip(replies);
        self.answered.extend(new.collect::<Vec<_>>());
        self.outputs.extend(outputs);
    }

    pub(super) fn receive(&mut self, bytes: &[u8]) {
        self.take(|it| match it {
            Running::WithoutLog(node) => node.receive(bytes),
            Running::WithLog(logged, _) => logged.receive(bytes),
            Running::Refused => {}
        });
    }

    pub(super) fn tick(&mut self) {
        self.take(|it| match it {
            Running::WithoutLog(node) => node.tick(),
            Running::WithLog(logged, _) => logged.tick(),
            Running::Refused => {}
        });
    }

    /// It hears of a configuration. One with a log hears of it as of all else: from anybody, with
    /// the accusations that have made it.
    pub(super) fn configure(&mut self, number: u64) {
        let accuse = |it| Accusation::sign(&self.group, it, number - 1, &observe::host_key(it));
        let accusations: Vec<_> = (0..self.group.quorum() as u32).map(accuse).collect();
        let made = Made::of(&self.group, &accusations);
        let made = made.map(|it| Message::Made(it).encode()).unwrap_or_default();
        let nodes = self.group.replicas;
        self.take(|it| match it {
            Running::WithoutLog(node) => node.configure(Configuration::of_number(number, nodes)),
            Running::WithLog(logged, _) => logged.receive(&made),
            Running::Refused => {}
        });
    }

    /// Time passes until it wants something, if it waits for anything.
    pub(super) fn time_out(&mut self) {
        for _ in 0..TICKS_MAX {
            if self.node().is_none_or(Node::is_idle) {
                return;
            }
            let before = self.outputs.len();
            self.tick();
            let mut new = self.outputs.iter().skip(before);
            if new.any(|it| matches!(it, Output::Host(_))) {
                return;
            }
        }
    }

    /// The configuration that it accuses.
    pub(super) fn accusation(&self) -> Option<u64> {
        self.node()?.accusation()
    }

    /// The requests that it has answered, with the answers, by place.
    pub(super) fn answered(&self) -> &BTreeMap<u64, (Digest, Vec<u8>)> {
        &self.answered
    }

    /// All that is to be done, in order.
    pub(super) fn outputs(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    /// The statements of its device.
    pub(super) fn said(&self) -> Vec<Attested> {
        self.node().map(observe::said).unwrap_or_default()
    }

    pub(super) fn metrics(&self) -> Metrics {
        self.node().map(Chain::metrics).unwrap_or_default()
    }

    pub(super) fn observe(&self) -> Observed {
        let mut node = self.node().map(observe::observe).unwrap_or_default();
        let mut hash = Sha256::new();
        hash.update(node.fingerprint);
        // Two logs that give the same may end at different places.
        let length = match &self.running {
            Running::WithLog(logged, _) => logged.log_length(),
            Running::WithoutLog(_) | Running::Refused => 0,
        };
        hash.update(format!("{}{length}{:?}", self.differs, self.answered));
        node.fingerprint = hash.finalize().into();
        let (metrics, answered) = (self.metrics(), self.answered.clone());
        Observed { node, metrics, answered, differs: self.differs }
    }
}
