// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Correct nodes: in memory alone, or with a log on a disk that loses what was not synced.

use std::collections::BTreeSet;
use std::sync::Arc;

use smt_attestation::SigningKey;
use smt_attestor::OutlivingDevice;
use smt_journal::{ModelDisk, SnapshotLog};
use smt_replica::{Group, KeyValue, Logged};

use smt_simulation::Random;

use crate::accusation::Made;
use crate::configuration::Configuration;
use crate::message::Message;
use crate::node::{Identity, Node, Output};
use crate::sim::group::{identity, reply_key, secret, start};

/// A correct node.
pub(super) enum Correct {
    Plain(Box<Node<KeyValue>>),
    Logged(Box<WithLog>),
}

/// How nodes with logs run.
#[derive(Clone, Copy)]
pub(super) struct Habits {
    /// Whether they send before what they send is durable: what they must not do.
    pub(super) is_eager: bool,
    /// Whether logs that were begun anew take the place of others before they are durable: what
    /// they must not do.
    pub(super) replaces_early: bool,
    /// Whether their devices are processes of their own.
    pub(super) has_process: bool,
}

/// A node with a log. All that is random here is drawn apart, for runs without logs to stay as they
/// are.
pub(super) struct WithLog {
    /// Nothing only while the node starts again.
    durable: Option<Logged<Node<KeyValue>, ModelDisk>>,
    group: Arc<Group>,
    own: u32,
    /// A device that is not killed with the node; nothing for a kernel in the node's process.
    device: Option<OutlivingDevice>,
    random: Random,
    habits: Habits,
    /// All that happened to its log.
    pub(super) events: BTreeSet<&'static str>,
    /// Bytes and accusations that have not left yet. A kill loses them.
    outputs: Vec<Output>,
}

impl Correct {
    pub(super) fn receive(&mut self, bytes: &[u8]) {
        match self {
            Self::Plain(node) => node.receive(bytes),
            Self::Logged(it) => {
                it.durable.iter_mut().for_each(|durable| durable.receive(bytes));
                // Others may come before it is durable.
                if it.random.chance(60) {
                    it.work();
                }
            }
        }
    }

    pub(super) fn tick(&mut self) {
        match self {
            Self::Plain(node) => node.tick(),
            Self::Logged(it) => {
                it.durable.iter_mut().for_each(Logged::tick);
                it.work();
            }
        }
    }

    pub(super) fn configure(&mut self, made: &Made, nodes: u32) {
        match self {
            Self::Plain(node) => node.configure(Configuration::of_number(made.number, nodes)),
            Self::Logged(it) => {
                let bytes = Message::Made(made.clone()).encode();
                it.durable.iter_mut().for_each(|durable| durable.receive(&bytes));
            }
        }
    }

    pub(super) fn outputs(&mut self) -> Vec<Output> {
        match self {
            Self::Plain(node) => node.outputs(),
            Self::Logged(it) => std::mem::take(&mut it.outputs),
        }
    }

    pub(super) fn node(&self) -> Option<&Node<KeyValue>> {
        match self {
            Self::Plain(node) => Some(node),
            Self::Logged(it) => it.durable.as_ref().map(Logged::node),
        }
    }

    /// Begins the log of a node anew now and then. It may be killed then.
    pub(super) fn begin_log_anew(&mut self, may_kill: bool) -> Vec<&'static str> {
        match self {
            Self::Plain(_) => Vec::new(),
            Self::Logged(it) => {
                it.begin_log_anew(may_kill);
                std::mem::take(&mut it.events).into_iter().collect()
            }
        }
    }

    /// Kills a node with a log, and starts it again.
    pub(super) fn kill(&mut self) {
        if let Self::Logged(it) = self {
            it.kill();
        }
    }
}

impl WithLog {
    pub(super) fn new(group: &Arc<Group>, own: u32, seed: u64, habits: Habits) -> Self {
        let (group, random) = (group.clone(), Random::new(seed));
        let device = { habits.has_process }
            .then(|| OutlivingDevice::start(start(own), secret(), SigningKey::new(&[5; 32])));
        let (durable, outputs, events) = (None, Vec::new(), BTreeSet::new());
        let mut it = Self { durable, group, own, device, random, habits, events, outputs };
        it.open(ModelDisk::default());
        it
    }

    /// A log that cannot be opened leaves no node: requests wait for ever, and the run tells.
    fn open(&mut self, disk: ModelDisk) {
        let (group, of_library) = (self.group.clone(), identity(self.own));
        let identity = match &self.device {
            None => of_library,
            Some(it) => Identity { device: it.own_device(), reply_key: reply_key(self.own) },
        };
        self.durable = Node::open(group, identity, KeyValue::default(), disk).ok();
    }

    fn work(&mut self) {
        let Some(durable) = &mut self.durable else {
            return;
        };
        if self.habits.is_eager {
            self.outputs.extend(durable.outputs_before_commit());
            // The disk takes it later, if no kill comes first.
            if self.random.chance(70) {
                return;
            }
        }
        self.outputs.extend(durable.commit().unwrap_or_default());
    }

    fn kill(&mut self) {
        let Some(mut durable) = self.durable.take() else {
            return;
        };
        // A write that the disk has begun may be there in part.
        if self.random.chance(50) {
            durable.fail_next_sync();
            let _ = durable.commit();
        }
        self.crash(&durable.into_disk());
    }

    /// The node starts again with what a crash leaves on a disk.
    fn crash(&mut self, disk: &ModelDisk) {
        let disk = disk.crashed(|| self.random.chance(50));
        self.outputs.clear();
        self.open(disk);
    }

    /// Begins the log anew now and then, on a disk that fails at times. The node may be killed
    /// before or after the new log has the place of the old one.
    fn begin_log_anew(&mut self, may_kill: bool) {
        let Some(durable) = &mut self.durable else {
            return;
        };
        if !self.random.chance(8) {
            return;
        }
        let mut disk = ModelDisk::default();
        disk.fails_after = self.random.chance(30).then(|| self.random.below(5) as u32);
        disk.loses_syncs = self.habits.replaces_early;
        let Ok(old) = durable.move_to(disk) else {
            // The old log goes on.
            return;
        };
        durable.heal_disk();
        self.events.insert("NewLog");
        if may_kill && self.random.chance(30) {
            self.events.insert("KillAtNewLog");
            match self.random.chance(50) {
                true => {
                    self.durable = None;
                    self.crash(&old);
                }
                false => self.kill(),
            }
        }
    }
}
