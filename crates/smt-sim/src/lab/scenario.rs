// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A scenario: the plan of a run.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use smt_proto::PullOrder;
use thiserror::Error;

use crate::baseline::Pooling;
use crate::lab::workload::Workload;
use crate::net::packet::wire_len;
use crate::net::switch::{Spreading, SwitchPolicy};
use crate::net::topology::Topology;

/// A run of a datacenter.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// How hosts are wired.
    pub topology: Topology,
    /// Sizes of messages.
    pub workload: Workload,
    /// The senders, their receivers, and how much they send.
    pub pattern: Pattern,
    /// The transport that carries the messages.
    pub transport: Transport,
    /// Messages begin during this time.
    pub duration: Duration,
    /// Messages that begin in this first part of it are not counted.
    pub warm_up: Duration,
    /// Hosts that each host sends to, at random among all, and as many that it hears from; all if
    /// there are no more.
    pub peers: u32,
    /// The seed of all random numbers.
    pub seed: u64,
}

/// The pattern of senders and receivers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// Everybody to anybody, at random times.
    Uniform {
        /// Share of each host's link that messages would take, counted on the wire, headers and
        /// acknowledgements included, if they went alone.
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

/// The transport that carries messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Transport {
    /// SMT with the null cipher, and grants by shortest remaining first.
    Smt,
    /// The same with pulls in this order (NDP); switches are to trim.
    Ndp(PullOrder),
    /// Byte streams with DCTCP's control.
    Stream(Pooling),
}

impl Transport {
    /// The texts that [`FromStr`] reads.
    pub const PERMITTED: &str = "\"smt\", \"ndp\", \"ndp-shortest\", \"stream\", \"pool-N\" with N connections from 1 to 64";

    /// Returns the policy of switches with which the transport works best in this plan: marking,
    /// trimming and spreading; the rest is not its business.
    pub fn suits(self, topology: &Topology) -> SwitchPolicy {
        match self {
            Self::Smt => SwitchPolicy::default(),
            // A packet that finds seven before it is trimmed: queues of eight, as NDP's.
            Self::Ndp(_) => SwitchPolicy {
                trim_above: Some(7 * wire_len(topology.edge.payload_max)),
                ..SwitchPolicy::default()
            },
            // A connection must not be reordered.
            Self::Stream(_) => SwitchPolicy {
                mark_above: Some(mark_above(topology)),
                spreading: Spreading::ByEntropy,
                ..SwitchPolicy::default()
            },
        }
    }
}

/// DCTCP's threshold: twice what fills the longest path, at least 15 packets, the threshold of the
/// Homa authors' own runs of DCTCP in their datacenter. The 65 packets of its paper are for round
/// trips ten times as long, and stand in front of every short message. Segments are those of
/// Ethernet whatever the links carry.
fn mark_above(topology: &Topology) -> u64 {
    let mut of_segments = *topology;
    of_segments.edge.payload_max = SEGMENT_PAYLOAD;
    of_segments.core.payload_max = SEGMENT_PAYLOAD;
    let path = u64::from(of_segments.round_trip_bytes());
    (2 * path).max(15 * wire_len(SEGMENT_PAYLOAD))
}

/// UDP payload of a stream's full segment.
const SEGMENT_PAYLOAD: usize = 1_472;

impl FromStr for Transport {
    type Err = UnknownTransport;

    fn from_str(text: &str) -> Result<Self, UnknownTransport> {
        let unknown = || UnknownTransport(text.to_owned());
        match text {
            "smt" => Ok(Self::Smt),
            "ndp" => Ok(Self::Ndp(PullOrder::RoundRobin)),
            "ndp-shortest" => Ok(Self::Ndp(PullOrder::ShortestFirst)),
            "stream" => Ok(Self::Stream(Pooling::OnePerPair)),
            _ => {
                let lanes = text.strip_prefix("pool-").and_then(|n| n.parse().ok());
                let lanes = lanes.filter(|lanes| (1..=64).contains(lanes));
                Ok(Self::Stream(Pooling::Pool(lanes.ok_or_else(unknown)?)))
            }
        }
    }
}

/// As [`FromStr`] reads it.
impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Smt => f.write_str("smt"),
            Self::Ndp(PullOrder::RoundRobin) => f.write_str("ndp"),
            Self::Ndp(PullOrder::ShortestFirst) => f.write_str("ndp-shortest"),
            Self::Stream(Pooling::OnePerPair) => f.write_str("stream"),
            Self::Stream(Pooling::Pool(lanes)) => write!(f, "pool-{lanes}"),
        }
    }
}

/// A text that names no transport.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{0:?} is no transport; permitted: {permitted}", permitted = Transport::PERMITTED)]
pub struct UnknownTransport(String);
