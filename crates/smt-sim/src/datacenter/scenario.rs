// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What runs.

use std::time::Duration;

use crate::stream::Pooling;
use crate::topology::Topology;
use crate::workload::Workload;

/// A run of a datacenter.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// How hosts are wired.
    pub topology: Topology,
    /// Sizes of messages.
    pub workload: Workload,
    /// Who sends to whom, and how much.
    pub pattern: Pattern,
    /// What carries the messages.
    pub transport: Transport,
    /// Messages begin during this time.
    pub duration: Duration,
    /// Messages that begin in this first part of it are not counted.
    pub warm_up: Duration,
    /// Hosts that each host sends to, at random among all; all if it is more than there are.
    pub peers: u32,
    /// What random numbers begin with.
    pub seed: u64,
}

/// Who sends to whom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// Everybody to anybody, at random times.
    Uniform {
        /// Share of each host's link that messages would take, counted on the wire, headers and acknowledgements
        /// included, if they went alone.
        load: f64,
    },
    /// Everybody to host 0, one message each, all at once, again and again.
    Incast {
        /// Senders.
        senders: u32,
        /// Time between two rounds.
        every: Duration,
    },
}

/// What carries messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Transport {
    /// SMT with the null cipher, and grants by shortest remaining first.
    Smt,
    /// Byte streams with DCTCP's control.
    Stream(Pooling),
}
