// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams for one destination that leave together, as a carrier gets them.

use crate::associations::AssociationHandle;
use crate::capabilities::{Capabilities, HeaderCopy, Sealing};
use crate::keys::Unsealed;
use crate::limits::PRIORITY_LEVELS;
use crate::path::Path;

/// Datagrams for one destination that leave together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Batch<'a> {
    /// Where to, and from which of this host's addresses.
    pub path: Path,
    /// `0..=7`, 7 most urgent; becomes the top bits of DSCP where the carrier has that.
    pub priority: u8,
    /// Batches of one flow leave by one queue, in order, where a carrier has several queues.
    pub flow: FlowId,
    /// How the datagrams lie in `bytes`.
    pub layout: Layout<'a>,
    /// The contents of the datagrams.
    pub bytes: &'a [u8],
    /// The records that the carrier seals, in the order in which they lie in `bytes`.
    pub unsealed: &'a [Unsealed],
    /// The association under which the carrier seals each datagram; `None` for datagrams that
    /// leave as they are.
    pub association: Option<AssociationHandle>,
}

/// A flow: the batches of one session, for example.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct FlowId(pub u64);

/// How the datagrams of a batch lie in its bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Layout<'a> {
    /// The bytes are whole datagrams, one behind the other.
    Datagrams {
        /// Bytes of each datagram but the last, which may be shorter; at least 1.
        segment_size: usize,
    },
    /// The bytes are one contiguous stream. The carrier cuts it and puts a copy of the header
    /// before each part ([`HeaderCopy::Replicated`]). To the offset in a copy, its last four bytes,
    /// it adds the part's distance from the beginning of the stream.
    Segmented {
        /// The DATA header of all parts.
        header: &'a [u8; SEGMENT_HEADER_BYTES],
        /// Bytes of the stream in each datagram but the last, which may be shorter; at least 1.
        payload_max: usize,
    },
}

/// Bytes of the header that a carrier copies: SMT's DATA header.
pub const SEGMENT_HEADER_BYTES: usize = 36;

impl<'a> Batch<'a> {
    /// Whole datagrams of this size, the last perhaps shorter, of the least priority and of no
    /// flow.
    #[must_use]
    pub const fn datagrams(path: Path, segment_size: usize, bytes: &'a [u8]) -> Self {
        Self {
            path,
            priority: 0,
            flow: FlowId(0),
            layout: Layout::Datagrams { segment_size },
            bytes,
            unsealed: &[],
            association: None,
        }
    }

    /// The same with this priority.
    #[must_use]
    pub const fn with_priority(mut self, priority: u8) -> Self {
        self.priority = priority;
        self
    }

    /// Checks what every carrier relies on, and that the batch asks for nothing that a carrier of
    /// these abilities cannot do; a carrier calls it first.
    ///
    /// # Panics
    /// If a segment has no byte or the priority is above 7, if the carrier does not copy headers or
    /// does not seal and the batch relies on that, or if the records to be sealed do not lie in
    /// `bytes` one behind the other, each with its header before and room for its tag behind it. If
    /// both records and packets are to be sealed.
    pub fn assert_valid(&self, capabilities: &Capabilities) {
        assert!(self.priority < PRIORITY_LEVELS, "a priority is 0..=7");
        let size = match self.layout {
            Layout::Datagrams { segment_size } => segment_size,
            Layout::Segmented { payload_max, .. } => {
                let is_copied = capabilities.headers == HeaderCopy::Replicated;
                assert!(is_copied, "this carrier copies no headers");
                payload_max
            }
        };
        assert!(size > 0, "a segment has at least one byte");
        if self.association.is_some() {
            assert!(capabilities.seals_packets, "this carrier seals no packets");
            assert!(self.unsealed.is_empty(), "records in sealed packets are as they are");
        }
        if self.unsealed.is_empty() {
            return;
        }
        let is_sealer = capabilities.seals == Sealing::WholeRecords;
        assert!(is_sealer, "this carrier seals no records");
        let mut free_from = 0;
        for record in self.unsealed {
            let place = record.record();
            let is_apart = place.start >= free_from && place.end <= self.bytes.len();
            assert!(is_apart, "records lie in the batch one behind the other");
            free_from = place.end;
        }
    }

    /// The size of the datagrams of a batch as a carrier takes it that copies no headers and seals
    /// no records. Checks the batch like [`Self::assert_valid`].
    ///
    /// # Panics
    /// As [`Self::assert_valid`] for such a carrier.
    #[must_use]
    pub fn plain_segment_size(&self) -> usize {
        self.assert_valid(&Capabilities::new(0));
        let (Layout::Datagrams { segment_size: size }
        | Layout::Segmented { payload_max: size, .. }) = self.layout;
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::KeyHandle;

    const HEADER: [u8; SEGMENT_HEADER_BYTES] = [0; SEGMENT_HEADER_BYTES];
    const SEALER: Capabilities = Capabilities::new(1_472)
        .with_headers(HeaderCopy::Replicated)
        .with_seals(Sealing::WholeRecords);

    fn batch(segment_size: usize) -> Batch<'static> {
        let path = Path::to("192.0.2.7:9".parse().unwrap());
        Batch::datagrams(path, segment_size, &[0; 100])
    }

    fn segmented() -> Batch<'static> {
        Batch { layout: Layout::Segmented { header: &HEADER, payload_max: 10 }, ..batch(1) }
    }

    const fn record(at: u32, length: u32) -> Unsealed {
        Unsealed { at, length, key: KeyHandle(1), number: 7 }
    }

    mod plain_segment_size {
        use super::*;

        #[test]
        fn extremes_are_accepted() {
            assert_eq!(batch(1).with_priority(7).plain_segment_size(), 1);
        }

        #[test]
        #[should_panic(expected = "at least one byte")]
        fn an_empty_segment_is_the_callers_mistake() {
            let _ = batch(0).plain_segment_size();
        }

        #[test]
        #[should_panic(expected = "0..=7")]
        fn priority_eight_is_the_callers_mistake() {
            let _ = batch(1).with_priority(8).plain_segment_size();
        }

        #[test]
        #[should_panic(expected = "copies no headers")]
        fn a_stream_to_be_cut_is_the_callers_mistake() {
            let _ = segmented().plain_segment_size();
        }

        #[test]
        #[should_panic(expected = "seals no records")]
        fn a_record_to_be_sealed_is_the_callers_mistake() {
            let unsealed = &[record(5, 10)];
            let _ = Batch { unsealed, ..batch(1) }.plain_segment_size();
        }
    }

    mod assert_valid {
        use super::*;
        use crate::associations::AssociationHandle;

        const PACKET_SEALER: Capabilities = SEALER.with_seals_packets(true);

        fn under_association(unsealed: &[Unsealed]) -> Batch<'_> {
            Batch { unsealed, association: Some(AssociationHandle(1)), ..segmented() }
        }

        #[test]
        fn a_carrier_that_seals_packets_takes_an_association() {
            under_association(&[]).assert_valid(&PACKET_SEALER);
        }

        #[test]
        #[should_panic(expected = "seals no packets")]
        fn packets_to_be_sealed_by_another_carrier_are_the_callers_mistake() {
            under_association(&[]).assert_valid(&SEALER);
        }

        #[test]
        #[should_panic(expected = "as they are")]
        fn a_record_to_be_sealed_in_a_sealed_packet_is_the_callers_mistake() {
            under_association(&[record(5, 29)]).assert_valid(&PACKET_SEALER);
        }

        fn check(unsealed: &[Unsealed]) {
            Batch { unsealed, ..segmented() }.assert_valid(&SEALER);
        }

        #[test]
        fn records_may_fill_the_batch() {
            check(&[record(5, 29), record(55, 29)]);
        }

        #[test]
        #[should_panic(expected = "one behind the other")]
        fn a_record_without_room_for_its_tag_is_the_callers_mistake() {
            check(&[record(5, 80)]);
        }

        #[test]
        #[should_panic(expected = "one behind the other")]
        fn a_record_in_anothers_tag_is_the_callers_mistake() {
            check(&[record(5, 10), record(35, 10)]);
        }
    }
}
