// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counts of a tunnel, by the names of `ip -s xfrm state` and `/proc/net/xfrm_stat` where Linux has
//! one.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use smt_esp::{AssociationStatistics, Statistics};

use crate::association::Direction;

/// Counts of one association.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct AssociationCounts {
    /// Packets that leave, or packets that come.
    pub direction: Direction,
    /// The receiver's number of the association.
    pub spi: u32,
    /// The name by which policies call it.
    pub name: String,
    /// The suite's name.
    pub suite: String,
    /// Transport or tunnel.
    pub mode: String,
    /// The peer's address, if the configuration says it.
    pub peer: Option<IpAddr>,
    /// Bytes to which the cipher or the hash was applied.
    pub bytes: u64,
    /// Packets that were sealed, or opened.
    pub packets: u64,
    /// The next sequence number out, or the highest in; nothing once all are used.
    pub sequence_number: Option<u64>,
    /// Packets below the replay window.
    pub replay_window: u64,
    /// Packets whose number was there before.
    pub replay: u64,
    /// Packets that did not authenticate.
    pub failed: u64,
    /// A soft limit is reached: the association should be replaced.
    pub soft_expired: bool,
}

impl AssociationCounts {
    pub(crate) const fn count(&mut self, counts: AssociationStatistics) {
        self.bytes = counts.bytes;
        self.packets = counts.packets;
        self.replay_window = counts.replay_window;
        self.replay = counts.replay;
        self.failed = counts.failed;
    }
}

/// Counts of the calls and super-packets of all workers.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct WorkerCounts {
    /// Packets and super-packets that the host has sent into the device.
    pub device_read: u64,
    /// Super-packets among them.
    pub device_read_super: u64,
    /// Packets and super-packets that the host has got from the device.
    pub device_written: u64,
    /// Super-packets among them.
    pub device_written_super: u64,
    /// Packets that the host did not take.
    pub device_write_failed: u64,
    /// System calls that have sent.
    pub send_calls: u64,
    /// Sealed packets that have left.
    pub packets_sent: u64,
    /// System calls that have failed to send.
    pub send_failed: u64,
    /// System calls that have received.
    pub receive_calls: u64,
    /// Packets that have come.
    pub packets_received: u64,
}

impl WorkerCounts {
    fn add(&mut self, other: &Self) {
        self.device_read += other.device_read;
        self.device_read_super += other.device_read_super;
        self.device_written += other.device_written;
        self.device_written_super += other.device_written_super;
        self.device_write_failed += other.device_write_failed;
        self.send_calls += other.send_calls;
        self.packets_sent += other.packets_sent;
        self.send_failed += other.send_failed;
        self.receive_calls += other.receive_calls;
        self.packets_received += other.packets_received;
    }
}

/// A count and its name.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct NamedCount {
    /// The name.
    pub name: String,
    /// The count.
    pub value: u64,
}

/// Counts of a tunnel.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct TunnelStatistics {
    /// The TUN device.
    pub device: String,
    /// Associations, in the order in which they came.
    pub associations: Vec<AssociationCounts>,
    /// Counts of packets and errors.
    pub counts: Vec<NamedCount>,
    /// Counts of calls and super-packets.
    pub calls: WorkerCounts,
}

impl TunnelStatistics {
    pub(crate) fn add(
        &mut self,
        associations: Vec<AssociationCounts>,
        of_database: &Statistics,
        calls: &WorkerCounts,
    ) {
        self.associations.extend(associations);
        self.calls.add(calls);
        let named = named(of_database);
        if self.counts.is_empty() {
            self.counts = named;
            return;
        }
        for (sum, more) in self.counts.iter_mut().zip(named) {
            sum.value += more.value;
        }
    }

    /// A count by its name; 0 for a name that there is not.
    #[must_use]
    pub fn count(&self, name: &str) -> u64 {
        let found = self.counts.iter().find(|count| count.name == name);
        found.map_or(0, |count| count.value)
    }
}

fn named(counts: &Statistics) -> Vec<NamedCount> {
    let pairs = [
        ("sealed", counts.sealed),
        ("opened", counts.opened),
        ("dummies", counts.dummies),
        ("XfrmInHdrError", counts.in_malformed),
        ("fragments", counts.in_fragments),
        ("XfrmInNoStates", counts.in_no_association),
        ("XfrmInStateMismatch", counts.in_encapsulation),
        ("XfrmInStateSeqError", counts.in_replay),
        ("XfrmInStateProtoError", counts.in_integrity),
        ("XfrmInStateExpired", counts.in_expired),
        ("XfrmInStateModeError", counts.in_inner),
        ("congestion", counts.in_congestion),
        ("XfrmInTmplMismatch", counts.in_selectors),
        ("XfrmInPolBlock", counts.in_policy),
        ("XfrmOutError", counts.out_malformed),
        ("XfrmOutPolBlock", counts.out_policy),
        ("XfrmOutNoStates", counts.out_no_association),
        ("XfrmOutStateSeqError", counts.out_sequence_exhausted),
        ("XfrmOutStateExpired", counts.out_expired),
        ("XfrmOutBundleCheckError", counts.out_too_big),
        ("XfrmOutStateProtoError", counts.out_cipher),
    ];
    pairs.into_iter().map(|(name, value)| NamedCount { name: name.to_owned(), value }).collect()
}

/// In the form of `ip -s xfrm state`, and behind it that of `/proc/net/xfrm_stat` without zeros.
impl fmt::Display for TunnelStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for association in &self.associations {
            write_association(f, association)?;
        }
        for count in self.counts.iter().filter(|count| count.value > 0) {
            writeln!(f, "{:<24}{}", count.name, count.value)?;
        }
        let calls = &self.calls;
        writeln!(
            f,
            "device {}: {} packets read ({} super-packets), {} written ({} super-packets), {} not taken",
            self.device,
            calls.device_read,
            calls.device_read_super,
            calls.device_written,
            calls.device_written_super,
            calls.device_write_failed
        )?;
        writeln!(
            f,
            "sockets: {} packets sent by {} calls, {} received by {} calls, {} calls failed to send",
            calls.packets_sent,
            calls.send_calls,
            calls.packets_received,
            calls.receive_calls,
            calls.send_failed
        )
    }
}

fn write_association(f: &mut fmt::Formatter<'_>, association: &AssociationCounts) -> fmt::Result {
    let direction = match association.direction {
        Direction::Out => "out",
        Direction::In => "in",
    };
    let peer = association.peer.map_or_else(|| "any".to_owned(), |peer| peer.to_string());
    let spi = association.spi;
    writeln!(f, "dir {direction} peer {peer} name {}", association.name)?;
    writeln!(
        f,
        "\tproto esp spi {spi:#010x}({spi}) mode {} suite {}",
        association.mode, association.suite
    )?;
    writeln!(f, "\tlifetime current:")?;
    writeln!(f, "\t  {}(bytes), {}(packets)", association.bytes, association.packets)?;
    let number = association.sequence_number;
    let number = number.map_or_else(|| "all used".to_owned(), |number| format!("{number:#x}"));
    let soft = if association.soft_expired { ", soft limit reached" } else { "" };
    writeln!(f, "\t  sequence number {number}{soft}")?;
    writeln!(f, "\tstats:")?;
    let (below, replay) = (association.replay_window, association.replay);
    writeln!(f, "\t  replay-window {below} replay {replay} failed {}", association.failed)
}
