// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Correct nodes: in memory alone, or with a log on a disk that loses what was not synced.

use std::sync::Arc;

use smt_journal::ModelDisk;
use smt_simulation::Random;

use crate::counter::Counter;
use crate::group::Group;
use crate::node::{Node, Output};
use crate::sim::group::identity;

/// A correct node.
pub(super) enum Correct {
    Plain(Box<Node<Counter>>),
    Logged(Box<Logged>),
}

/// A node with a log. All that is random here is drawn apart, for runs without logs to stay as they
/// are.
pub(super) struct Logged {
    /// The node, if it runs.
    durable: Option<Box<smt_replica::Logged<Node<Counter>, ModelDisk>>>,
    /// Its disk, if it was killed. One that has failed has neither.
    disk: Option<ModelDisk>,
    group: Arc<Group>,
    own: u32,
    random: Random,
    /// Whether it sends before what it sends is durable: what it must not do.
    is_eager: bool,
    /// Bytes that have not left yet. A kill loses them.
    outputs: Vec<Output>,
}

impl Correct {
    /// Takes a message. False if the node has failed.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> bool {
        match self {
            Self::Plain(node) => node.receive(bytes).is_ok(),
            Self::Logged(it) => {
                it.durable.iter_mut().for_each(|durable| durable.receive(bytes));
                // Others may come before it is durable.
                if it.random.chance(60) {
                    it.work();
                }
                !it.has_failed()
            }
        }
    }

    /// Time passes. False if the node has failed.
    pub(super) fn tick(&mut self) -> bool {
        match self {
            Self::Plain(node) => node.tick().is_ok(),
            Self::Logged(it) => {
                it.durable.iter_mut().for_each(|durable| durable.tick());
                it.work();
                !it.has_failed()
            }
        }
    }

    pub(super) fn outputs(&mut self) -> Vec<Output> {
        match self {
            Self::Plain(node) => node.outputs(),
            Self::Logged(it) => std::mem::take(&mut it.outputs),
        }
    }

    /// The node, if it runs.
    pub(super) fn node(&self) -> Option<&Node<Counter>> {
        match self {
            Self::Plain(node) => Some(node),
            Self::Logged(it) => it.durable.as_ref().map(|durable| durable.node()),
        }
    }

    /// Kills a node with a log. Whether a write was under way, if it ran.
    pub(super) fn kill(&mut self) -> Option<bool> {
        match self {
            Self::Plain(_) => None,
            Self::Logged(it) => it.kill(),
        }
    }

    /// A node that was killed goes on where its log ends. False if the log is refused.
    pub(super) fn resume(&mut self) -> bool {
        if let Self::Logged(it) = self
            && let Some(disk) = it.disk.take()
        {
            it.open(disk);
            return !it.has_failed();
        }
        true
    }
}

impl Logged {
    pub(super) fn new(group: &Arc<Group>, own: u32, seed: u64, is_eager: bool) -> Self {
        let (group, random) = (group.clone(), Random::new(seed));
        let (durable, disk, outputs) = (None, None, Vec::new());
        let mut it = Self { durable, disk, group, own, random, is_eager, outputs };
        it.open(ModelDisk::default());
        it
    }

    fn open(&mut self, disk: ModelDisk) {
        let (group, nodes) = (self.group.clone(), self.group.size());
        let protocol = |own| Counter::new(own, nodes);
        self.durable = Node::open(group, identity(self.own), protocol, disk).ok().map(Box::new);
    }

    fn has_failed(&self) -> bool {
        self.durable.is_none() && self.disk.is_none()
    }

    fn work(&mut self) {
        let Some(durable) = &mut self.durable else {
            return;
        };
        // The disk of one that is eager takes most later, if no kill comes first.
        let is_early = self.is_eager && self.random.chance(70);
        let worked = match is_early {
            true => Ok(durable.outputs_before_commit()),
            false => durable.commit(),
        };
        match worked {
            Ok(outputs) => self.outputs.extend(outputs),
            Err(_) => self.durable = None,
        }
    }

    fn kill(&mut self) -> Option<bool> {
        let mut durable = self.durable.take()?;
        // A write that the disk has begun may be there in part.
        let mut is_unsynced = false;
        if self.random.chance(70) {
            durable.tick();
            durable.fail_next_sync();
            is_unsynced = durable.commit().is_err();
        }
        let disk = durable.into_disk();
        self.disk = Some(disk.crashed(|| self.random.chance(50)));
        self.outputs.clear();
        Some(is_unsynced)
    }
}
