// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a server has done, for the summary at its end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use smt::Statistics;

use crate::time_span;

/// Counters that all worker threads share.
#[derive(Debug, Default)]
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

    /// A request without a reply.
    pub(super) fn drop(&self, request: usize) {
        add(&self.dropped, 1);
        add(&self.bytes_in, request);
    }

    /// A line for people.
    pub(super) fn summary(&self, elapsed: Duration, statistics: &Statistics) -> String {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let protocol = &statistics.protocol;
        format!(
            "served {} requests and {} one-way messages in {}: {} bytes in, {} bytes out, {} dropped; {} sessions, \
             {} handshakes failed, {} packets resent",
            value(&self.replies),
            value(&self.one_ways),
            time_span::display(elapsed),
            value(&self.bytes_in),
            value(&self.bytes_out),
            value(&self.dropped),
            protocol.sessions_begun,
            protocol.handshakes_failed,
            protocol.packets_resent,
        )
    }
}

fn add(counter: &AtomicU64, amount: usize) {
    counter.fetch_add(amount as u64, Ordering::Relaxed);
}
