// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The hosts of a simulated group.

use smt_journal::ModelDisk;
use smt_replica::Logged;

use crate::logged::Event;
use crate::node::Node;
use crate::sim::liar::Liar;
use crate::tree::Tree;

/// The host of a node.
pub(super) enum Host {
    /// A correct node in memory alone.
    Correct(Box<Node<Tree>>),
    /// A correct node with a journal on a disk.
    Logged(Box<Logged<Node<Tree>, ModelDisk>>),
    /// A correct node that was killed: its disk as the crash has left it.
    Killed(ModelDisk),
    /// A liar.
    Liar(Box<Liar>),
}

impl Host {
    /// The correct node that runs here, if one does.
    pub(super) fn correct(&self) -> Option<&Node<Tree>> {
        match self {
            Self::Correct(node) => Some(node),
            Self::Logged(logged) => Some(logged.node()),
            Self::Killed(_) | Self::Liar(_) => None,
        }
    }

    pub(super) fn liar(&self) -> Option<&Liar> {
        match self {
            Self::Liar(liar) => Some(liar),
            _ => None,
        }
    }

    /// The host gives its node a part of the stream. False if it was not taken.
    pub(super) fn local(&mut self, part: &[u8]) -> bool {
        match self {
            Self::Correct(node) => node.local(part.to_vec()),
            Self::Logged(logged) => logged.local(Event::Local(part.to_vec())),
            Self::Killed(_) => false,
            Self::Liar(liar) => {
                liar.local(part);
                true
            }
        }
    }

    pub(super) fn receive(&mut self, from: u32, bytes: &[u8]) {
        match self {
            Self::Correct(node) => node.receive(from, bytes),
            Self::Logged(logged) => {
                Event::message(from, bytes).into_iter().for_each(|it| logged.receive_message(it));
            }
            Self::Killed(_) => {}
            Self::Liar(liar) => liar.receive(from, bytes),
        }
    }

    pub(super) fn tick(&mut self) {
        match self {
            Self::Correct(node) => node.tick(),
            Self::Logged(logged) => logged.tick(),
            Self::Killed(_) => {}
            Self::Liar(liar) => liar.tick(),
        }
    }
}
