// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The hosts of a simulated group.

use smt_journal::ModelDisk;

use crate::logged::Logged;
use crate::sim::system::System;

/// The host of a node.
pub enum Host<S: System> {
    /// A correct node in memory alone.
    Correct(Box<S::Node>),
    /// A correct node with a log on a disk.
    Logged(Box<Logged<S::Node, ModelDisk>>),
    /// A liar.
    Liar(Box<S::Liar>),
    /// A liar of several that work together.
    Together,
    /// Nothing runs, and is to restart.
    Down,
    /// A node that has stopped for good.
    Stopped,
    /// A node that was killed, and its disk as the crash has left it.
    Killed(ModelDisk),
}

impl<S: System> Host<S> {
    /// The correct node that runs here, if one does.
    pub fn correct(&self) -> Option<&S::Node> {
        match self {
            Self::Correct(node) => Some(node),
            Self::Logged(logged) => Some(logged.node()),
            Self::Liar(_) | Self::Together | Self::Down | Self::Stopped | Self::Killed(_) => None,
        }
    }

    /// Whether this is one of the faulty nodes.
    pub fn is_faulty(&self) -> bool {
        matches!(self, Self::Liar(_) | Self::Together | Self::Stopped)
    }
}
