// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counts of a carrier's work so far.

use std::sync::atomic::{AtomicU64, Ordering};

/// A snapshot of a carrier's counters since it was opened. The fields are read one after the other,
/// so they need not agree to the last datagram while the carrier works.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Statistics {
    /// Bytes of payload that arrived and were handed over.
    pub bytes_received: u64,
    /// Bytes of payload that left.
    pub bytes_sent: u64,
    /// Datagrams lost because this end's receive queue was full.
    pub datagrams_dropped: u64,
    /// Datagrams that arrived and were handed over.
    pub datagrams_received: u64,
    /// Datagrams that left.
    pub datagrams_sent: u64,
    /// Datagrams that were another shard's, and were handed over to it.
    pub datagrams_strayed: u64,
    /// Batches dropped because the caller's buffer was too small for them.
    pub datagrams_truncated: u64,
    /// System calls to receive, those that found nothing included.
    pub receive_calls: u64,
    /// Times that the system refused segmentation offload; after the first the carrier does
    /// without.
    pub segmentation_refused: u64,
    /// System calls to send, those that failed included.
    pub send_calls: u64,
    /// System calls that changed how long a receive call waits.
    pub timeout_changes: u64,
    /// Times that the system refused a priority; after the first the carrier sends none.
    pub traffic_class_refused: u64,
    /// Reports of an unreachable peer or a smaller path (ICMP), by whichever call they came.
    pub unreachable_hints: u64,
}

/// The live counters of one carrier.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) sending: Sending,
    pub(crate) receiving: Receiving,
}

/// Counters that the sending thread writes; apart from [`Receiving`], so that a sending and a
/// receiving thread do not pull one cache line to and fro (128: lines are fetched in pairs).
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Sending {
    pub(crate) bytes: Counter,
    pub(crate) calls: Counter,
    pub(crate) datagrams: Counter,
    pub(crate) hints: Counter,
    pub(crate) segmentation_refused: Counter,
    pub(crate) traffic_class_refused: Counter,
}

/// Counters that the receiving thread writes.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Receiving {
    pub(crate) bytes: Counter,
    pub(crate) calls: Counter,
    pub(crate) datagrams: Counter,
    pub(crate) dropped: Counter,
    pub(crate) hints: Counter,
    pub(crate) strays: Counter,
    pub(crate) timeout_changes: Counter,
    pub(crate) truncated: Counter,
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, amount: usize) {
        self.0.fetch_add(amount as u64, Ordering::Relaxed);
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    pub(crate) fn snapshot(&self) -> Statistics {
        let Self { sending, receiving } = self;
        Statistics {
            bytes_received: receiving.bytes.value(),
            bytes_sent: sending.bytes.value(),
            datagrams_dropped: receiving.dropped.value(),
            datagrams_received: receiving.datagrams.value(),
            datagrams_sent: sending.datagrams.value(),
            datagrams_strayed: receiving.strays.value(),
            datagrams_truncated: receiving.truncated.value(),
            receive_calls: receiving.calls.value(),
            segmentation_refused: sending.segmentation_refused.value(),
            send_calls: sending.calls.value(),
            timeout_changes: receiving.timeout_changes.value(),
            traffic_class_refused: sending.traffic_class_refused.value(),
            unreachable_hints: sending.hints.value() + receiving.hints.value(),
        }
    }
}

impl Sending {
    /// Notes that `bytes` left as datagrams of `segment_size`.
    pub(crate) fn note(&self, bytes: usize, segment_size: usize) {
        self.bytes.add(bytes);
        self.datagrams.add(bytes.div_ceil(segment_size.max(1)));
    }
}

impl Receiving {
    /// Notes that `bytes` arrived as datagrams of `segment_size`; an empty datagram is one too.
    pub(crate) fn note(&self, bytes: usize, segment_size: usize) {
        self.bytes.add(bytes);
        self.datagrams.add(bytes.div_ceil(segment_size.max(1)).max(1));
    }
}
