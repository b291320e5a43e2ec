// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Correct nodes: in memory alone, or with a log on a disk that loses what was not synced.

use std::sync::Arc;

use smt_bft::{Group, KeyValue};
use smt_journal::ModelDisk;
use smt_simulation::Random;

use crate::accusation::Made;
use crate::configuration::Configuration;
use crate::durable::Durable;
use crate::node::{Node, Output};
use crate::sim::group::identity;

/// A correct node.
pub(super) enum Correct {
    Plain(Box<Node<KeyValue>>),
    Logged(Box<Logged>),
}

/// A node with a log. All that is random here is drawn apart, for runs without logs to stay as they
/// are.
pub(super) struct Logged {
    /// Nothing only while the node starts again.
    durable: Option<Durable<KeyValue, ModelDisk>>,
    group: Arc<Group>,
    own: u32,
    random: Random,
    /// Whether it sends before what it sends is durable: what it must not do.
    is_eager: bool,
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
                it.durable.iter_mut().for_each(Durable::tick);
                it.work();
            }
        }
    }

    pub(super) fn configure(&mut self, made: &Made, nodes: u32) {
        match self {
            Self::Plain(node) => node.configure(Configuration::of_number(made.number, nodes)),
            Self::Logged(it) => it.durable.iter_mut().for_each(|durable| durable.configure(made)),
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
            Self::Logged(it) => it.durable.as_ref().map(Durable::node),
        }
    }

    /// Kills a node with a log, and starts it again.
    pub(super) fn kill(&mut self) {
        if let Self::Logged(it) = self {
            it.kill();
        }
    }
}

impl Logged {
    pub(super) fn new(group: &Arc<Group>, own: u32, seed: u64, is_eager: bool) -> Self {
        let (group, random) = (group.clone(), Random::new(seed));
        let mut it = Self { durable: None, group, own, random, is_eager, outputs: Vec::new() };
        it.open(ModelDisk::default());
        it
    }

    /// A log that cannot be opened leaves no node: requests wait for ever, and the run tells.
    fn open(&mut self, disk: ModelDisk) {
        let (group, identity) = (self.group.clone(), identity(self.own));
        self.durable = Durable::open(group, identity, KeyValue::default(), disk).ok();
    }

    fn work(&mut self) {
        let Some(durable) = &mut self.durable else {
            return;
        };
        if self.is_eager {
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
        let disk = durable.into_disk();
        let disk = disk.crashed(|| self.random.chance(50));
        self.outputs.clear();
        self.open(disk);
    }
}
