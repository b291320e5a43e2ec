// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counts of a server's work, for the summary at its end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use smt::Statistics;

use crate::time_span;

/// Counters that the worker threads of a shard share, apart from other shards' (128: lines are
/// fetched in pairs).
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Tally {
    replies: AtomicU64,
    one_ways: AtomicU64,
    dropped: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
}

impl Tally {
    /// A request that was replied to.
    pub(super) fn reply(&self, request: usize, reply: usize) {
        add(&self.replies, 1);
        add(&self.bytes_in, request);
        add(&self.bytes_out, reply);
    }

    /// A one-way message.
    pub(super) fn one_way(&self, length: usize) {
        add(&self.one_ways, 1);
        add(&self.bytes_in, length);
    }

    /// A request that was refused as a step towards others.
    pub(super) fn step(&self, request: usize) {
        add(&self.bytes_in, request);
    }

    /// A request without a reply.
    pub(super) fn drop(&self, request: usize) {
        add(&self.dropped, 1);
        add(&self.bytes_in, request);
    }
}

/// A line for people, about all shards.
pub(super) fn summary(tallies: &[Tally], elapsed: Duration, statistics: &[Statistics]) -> String {
    let sum = |counter: fn(&Tally) -> &AtomicU64| -> u64 {
        let counters = tallies.iter().map(counter);
        counters.map(|counter| counter.load(Ordering::Relaxed)).sum()
    };
    let total = |count: fn(&Statistics) -> u64| -> u64 { statistics.iter().map(count).sum() };
    format!(
        "served {} requests and {} one-way messages in {}: {} bytes in, {} bytes out, {} dropped; {} sessions, \
         {} clients refused, {} packets resent, {} came twice",
        sum(|tally| &tally.replies),
        sum(|tally| &tally.one_ways),
        time_span::display(elapsed),
        sum(|tally| &tally.bytes_in),
        sum(|tally| &tally.bytes_out),
        sum(|tally| &tally.dropped),
        total(|shard| shard.protocol.sessions_begun),
        total(|shard| shard.clients_refused),
        total(|shard| shard.protocol.packets_resent),
        total(|shard| shard.protocol.packets_duplicate),
    )
}

fn add(counter: &AtomicU64, amount: usize) {
    counter.fetch_add(amount as u64, Ordering::Relaxed);
}
