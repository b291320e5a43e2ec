// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The abilities of a carrier, as the protocol core obeys them.

use crate::limits::BATCH_BYTES_MAX;

/// The abilities of a carrier: how much it takes at once, and which work it does itself.
///
/// Begin with [`Capabilities::new`], which promises least, and add what the carrier has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Bytes of the largest datagram that may leave. The way to a peer may carry less; it never
    /// carries more. SMT sends datagrams of 1,200 bytes over every carrier, and searches above
    /// that.
    pub datagram_max: usize,
    /// Datagrams in one batch at most; at least 1. A carrier over the system's sockets cuts a batch
    /// itself where the system takes less at once.
    pub segments_max: u16,
    /// Bytes in one batch at most. A single datagram may be longer.
    pub batch_max: usize,
    /// How the header of a message's packets gets into each of them.
    pub headers: HeaderCopy,
    /// Which records the carrier seals itself.
    pub seals: Sealing,
    /// Whether the carrier seals whole packets ([`Associations`](crate::Associations)).
    pub seals_packets: bool,
    /// Whether the priority of a batch means something to the network.
    pub priorities: bool,
    /// Whether the carrier can tell a datagram that a switch has trimmed from a whole one.
    pub trims: bool,
}

/// How the header of a message's packets gets into each of them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HeaderCopy {
    /// The core writes a header before the payload of each datagram.
    PerSegment,
    /// The core writes one header and one contiguous stream; the carrier cuts the stream and puts a
    /// copy of the header before each part, as segmentation of TCP does. It adds the part's
    /// distance to the offset in its copy.
    Replicated,
}

/// Which records a carrier seals itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sealing {
    /// The carrier seals no record: all bytes are sealed when they come to it.
    No,
    /// The carrier seals records that are whole in one batch, under keys that it was given
    /// ([`KeyStore`](crate::KeyStore)). Parts of records are sealed when they come to it.
    WholeRecords,
}

impl Capabilities {
    /// A carrier of single datagrams of at most this many bytes, and nothing more.
    #[must_use]
    pub const fn new(datagram_max: usize) -> Self {
        Self {
            datagram_max,
            segments_max: 1,
            batch_max: BATCH_BYTES_MAX,
            headers: HeaderCopy::PerSegment,
            seals: Sealing::No,
            seals_packets: false,
            priorities: false,
            trims: false,
        }
    }

    /// The same with batches of at most this many datagrams; 0 means 1.
    #[must_use]
    pub const fn with_segments_max(mut self, segments: u16) -> Self {
        self.segments_max = if segments == 0 { 1 } else { segments };
        self
    }

    /// The same with batches of at most this many bytes.
    #[must_use]
    pub const fn with_batch_max(mut self, bytes: usize) -> Self {
        self.batch_max = bytes;
        self
    }

    /// The same with headers that get into packets in this way.
    #[must_use]
    pub const fn with_headers(mut self, headers: HeaderCopy) -> Self {
        self.headers = headers;
        self
    }

    /// The same with these records sealed by the carrier.
    #[must_use]
    pub const fn with_seals(mut self, seals: Sealing) -> Self {
        self.seals = seals;
        self
    }

    /// The same with packets sealed by the carrier, or not.
    #[must_use]
    pub const fn with_seals_packets(mut self, on: bool) -> Self {
        self.seals_packets = on;
        self
    }

    /// The same with priorities that mean something, or not.
    #[must_use]
    pub const fn with_priorities(mut self, on: bool) -> Self {
        self.priorities = on;
        self
    }

    /// The same with trimmed datagrams told from whole ones, or not.
    #[must_use]
    pub const fn with_trims(mut self, on: bool) -> Self {
        self.trims = on;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::{Capabilities, HeaderCopy, Sealing};

    #[test]
    fn a_new_carrier_promises_least() {
        let least = Capabilities::new(1_472);
        assert_eq!((least.datagram_max, least.segments_max), (1_472, 1));
        assert_eq!(least.headers, HeaderCopy::PerSegment);
        assert_eq!(least.seals, Sealing::No);
        assert!(!least.seals_packets && !least.priorities && !least.trims);
    }

    #[test]
    fn a_batch_has_at_least_one_datagram() {
        assert_eq!(Capabilities::new(1_472).with_segments_max(0).segments_max, 1);
    }
}
