// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The cutting of a message into packets (SPEC §9.1).
//!
//! Packets that leave alone are full but for the last. In a batch all but the last datagram are
//! equally long, and a shorter one ends it. A message is therefore cut evenly, and the next message
//! of its length follows in the same batch.

use smt_wire::{DataHeader, Geometry, RECORD_OVERHEAD};

use super::Transmitting;
use crate::collections::byte_ranges::ByteRange;
use crate::limits::DATAGRAM_FLOOR;

/// The packet that leaves next: a part of the record stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextPacket {
    pub(super) range: ByteRange,
    /// Whether the peer has asked for the bytes.
    pub(crate) is_again: bool,
}

/// The room that the next packet leaves in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Room {
    /// A datagram of its own, of at most this many bytes.
    Alone(usize),
    /// A batch of datagrams of at most `limit` bytes; the first had `segment_size`, 0 if this is
    /// the first.
    InBatch { limit: usize, segment_size: usize },
}

impl NextPacket {
    /// Bytes of the packet.
    pub(crate) fn len(&self) -> usize {
        DataHeader::LEN + (self.range.end - self.range.start) as usize
    }
}

impl Transmitting {
    /// The packet that leaves next; there must be something to send.
    pub(crate) fn next_packet(&self, room: Room) -> NextPacket {
        let (Room::Alone(limit) | Room::InBatch { limit, .. }) = room;
        if let Some(range) = self.resend.first() {
            return again(range, limit);
        }
        let unsent = self.unsent();
        let range = match room {
            Room::Alone(limit) => unsent.next_piece(payload(limit)),
            Room::InBatch { limit, segment_size } => {
                unsent.next_even_piece(payload(limit), payload(segment_size))
            }
        };
        NextPacket { range, is_again: false }
    }

    /// The bytes that leave next as one stream of at most `packets` packets, of `limit` bytes each,
    /// if that is worth it: there are more than a packet, and none is to leave again before.
    pub(crate) fn next_stream(&self, limit: usize, packets: usize) -> Option<ByteRange> {
        if !self.resend.is_empty() {
            return None;
        }
        self.unsent().next_stream(payload(limit), packets as u32)
    }

    fn unsent(&self) -> Unsent {
        Unsent {
            next: self.next,
            granted: self.granted,
            first_end: self.first_end(),
            geometry: self.geometry,
        }
    }

    /// End of record 0.
    pub(super) fn first_end(&self) -> u32 {
        u32::from(self.geometry.record(self.padded, 0).extent) + RECORD_OVERHEAD as u32
    }
}

/// The bytes of a message that may leave and have not, in its record stream:
///
/// ```text
///   0          first_end          next                             granted
///   ├─ record 0 ─┤    have left     ├──────────── rest ──────────────┤
///                                   ├─ piece ─┼─ piece ─┼─ piece ─┼──┤
///                                                         ├─ piece ──┤  the last one, moved back
/// ```
/// Nothing has left, or at least record 0, which travels whole (SPEC §5.3).
#[derive(Clone, Copy, Debug)]
struct Unsent {
    next: u32,
    granted: u32,
    first_end: u32,
    geometry: Geometry,
}

impl Unsent {
    fn rest(&self) -> u32 {
        self.granted - self.next
    }

    /// The next bytes, at most `most`.
    fn next_piece(&self, most: u32) -> ByteRange {
        ByteRange { start: self.next, end: self.granted.min(self.next.saturating_add(most)) }
    }

    /// The next bytes as a stream of at most `packets` pieces of at most `most` bytes. Where it
    /// can, the stream ends with a record: a record in two streams cannot be left to the carrier.
    fn next_stream(&self, most: u32, packets: u32) -> Option<ByteRange> {
        if self.rest() <= most {
            return None;
        }
        let ByteRange { start, mut end } = self.next_piece(most.saturating_mul(packets));
        if end < self.granted {
            let record = self.geometry.record_at(end);
            // A record begins at the same place in messages of every length.
            let record_start = self.geometry.record(0, record).stream_start;
            end = if record_start > start { record_start } else { end };
        }
        Some(ByteRange { start, end })
    }

    /// The next bytes, in pieces of one size of at most `most`. `segment` is the size of the pieces
    /// that are in the batch, 0 if none is.
    fn next_even_piece(&self, most: u32, segment: u32) -> ByteRange {
        let size = self.piece_size(most, segment);
        let range = self.moved_back(self.next_piece(size), size, most);
        debug_assert!(range.start <= self.next && self.next < range.end);
        debug_assert!(range.end - range.start <= most, "a piece fits a datagram");
        debug_assert!(self.next > 0 || range.end >= self.first_end, "record 0 is whole");
        range
    }

    /// The size of the next pieces. The first of these is taken that needs hardly more packets than
    /// full ones:
    /// 1. that of the batch;
    /// 2. that which cuts all of the message evenly, so that messages of its length share batches;
    /// 3. that which cuts the rest evenly.
    fn piece_size(&self, most: u32, segment: u32) -> u32 {
        let rest = self.rest();
        let fewest = packets(rest, most);
        let least = if self.next == 0 { self.first_end } else { 1 };
        if segment > 0 {
            // A full piece ends a batch of smaller ones, and what follows is cut anew.
            let is_near = packets(rest, segment) <= fewest + fewest / WASTE_PART;
            return match segment >= least && is_near {
                true => segment.min(most),
                false => most,
            };
        }
        let of_all = even_size(self.granted, most).max(self.first_end);
        match packets(rest, of_all) == fewest {
            true => of_all,
            false => even_size(rest, most).max(least),
        }
    }

    /// The last piece, if it is a little shorter than the others, begins a little before what has
    /// not left yet: a shorter datagram would end the batch. The bytes that leave again are of the
    /// same record, which is at hand.
    fn moved_back(&self, piece: ByteRange, size: u32, most: u32) -> ByteRange {
        let start = piece.end.saturating_sub(size);
        let is_little = piece.start - start <= most / WASTE_PART;
        let record = |offset| self.geometry.record_at(offset);
        match is_little && record(start) == record(piece.end - 1) {
            true => ByteRange { start, ..piece },
            false => piece,
        }
    }
}

/// The packets that `bytes` bytes take in pieces of this size; one for none.
fn packets(bytes: u32, size: u32) -> u32 {
    bytes.div_ceil(size).max(1)
}

/// The size of pieces of `bytes` bytes, all equally long but the last, that are as few as full
/// ones.
fn even_size(bytes: u32, most: u32) -> u32 {
    bytes.div_ceil(packets(bytes, most))
}

/// The packet for a range that was asked for again. Record 0 goes out again in a datagram that
/// every path carries: the peer must see the message before it can ask for the rest, and only its
/// questions tell whether large datagrams get lost (SPEC §9.8).
fn again(range: ByteRange, limit: usize) -> NextPacket {
    let limit = match range.start {
        0 => limit.min(DATAGRAM_FLOOR),
        _ => limit,
    };
    let end = range.end.min(range.start + payload(limit));
    NextPacket { range: ByteRange { end, ..range }, is_again: true }
}

/// Bytes of the record stream in a datagram.
fn payload(datagram: usize) -> u32 {
    datagram.saturating_sub(DataHeader::LEN) as u32
}

/// At most an eighth more is sent so that messages share batches: of a packet's bytes, of a
/// message's packets.
const WASTE_PART: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::vec::Vec;

    /// Record 0 ends at 122, record 1 at 16,528.
    const GEOMETRY: Geometry = match Geometry::new(100, 16_384) {
        Some(geometry) => geometry,
        None => panic!("records of these sizes"),
    };
    const FIRST_END: u32 = 122;
    const MOST: u32 = 1_000;

    fn unsent(next: u32, granted: u32) -> Unsent {
        Unsent { next, granted, first_end: FIRST_END, geometry: GEOMETRY }
    }

    #[test]
    fn the_next_piece_has_the_size_that_shares_batches() {
        // Bytes that have left, and that may leave; the size of the batch's pieces; the next piece.
        let cases = [
            // The first piece of a batch cuts the message evenly, into as few as full ones.
            (0, 122, 0, 0..122),
            (0, 1_000, 0, 0..1_000),
            (0, 1_001, 0, 0..501),
            (0, 2_000, 0, 0..1_000),
            (0, 2_001, 0, 0..667),
            // The size of the whole message serves for the rest of it, too...
            (1_000, 2_100, 0, 1_000..1_700),
            (1_000, 2_900, 0, 1_000..1_967),
            // ... unless the rest would need one packet more.
            (1_100, 4_100, 0, 1_100..2_100),
            // Pieces like the batch's, if they are hardly more than full ones: 18 for 16.
            (1_000, 17_000, 1_000, 1_000..2_000),
            (1_000, 17_000, 889, 1_000..1_889),
            (1_000, 17_000, 888, 1_000..2_000),
            (1_000, 5_000, 500, 1_000..2_000),
            // The batch's pieces are never exceeded by a smaller limit.
            (1_000, 5_000, 1_100, 1_000..2_000),
            // A piece that is an eighth of a packet too short begins earlier; a shorter one ends
            // the batch.
            (501, 1_001, 501, 500..1_001),
            (1_000, 1_775, 900, 875..1_775),
            (1_000, 1_774, 900, 1_000..1_774),
            // ... and so does one that would begin in the record before.
            (16_528, 17_400, 900, 16_528..17_400),
            (16_556, 17_428, 900, 16_528..17_428),
        ];
        for (next, granted, segment, piece) in cases {
            let found = unsent(next, granted).next_even_piece(MOST, segment);
            let name = format!("{next} of {granted} have left, {segment} in the batch");
            assert_eq!(found.start..found.end, piece, "{name}");
        }
    }

    // SMT [5.3-5]
    #[test]
    fn record_0_travels_whole_behind_smaller_pieces() {
        let found = unsent(0, 1_240).next_even_piece(124, 121);
        assert_eq!((found.start, found.end), (0, 124));
        let short = unsent(0, FIRST_END).next_even_piece(MOST, 50);
        assert_eq!((short.start, short.end), (0, FIRST_END));
    }

    #[test]
    fn a_message_alone_in_a_batch_leaves_in_equal_pieces_as_few_as_full_ones() {
        for granted in FIRST_END..=10 * MOST {
            let (mut next, mut sizes) = (0, Vec::new());
            while next < granted {
                let segment = sizes.first().copied().unwrap_or_default();
                let piece = unsent(next, granted).next_even_piece(MOST, segment);
                sizes.push(piece.end - piece.start);
                next = piece.end;
            }
            let (last, before) = sizes.split_last().unwrap();
            assert!(before.iter().all(|size| *size == sizes[0]), "{sizes:?}");
            assert!(*last <= sizes[0] && *last + 9 >= sizes[0], "{sizes:?}");
            assert_eq!(sizes.len() as u32, packets(granted, MOST));
        }
    }

    #[test]
    fn a_stream_ends_with_a_record_where_it_can() {
        let stream = |next, granted, packets| {
            let range = unsent(next, granted).next_stream(MOST, packets);
            range.map(|range| (range.start, range.end))
        };
        assert_eq!(stream(0, MOST, 64), None, "a packet is enough");
        assert_eq!(stream(0, 20_000, 64), Some((0, 20_000)));
        assert_eq!(stream(0, 40_000, 20), Some((0, 16_528)));
        assert_eq!(stream(0, 20_000, 10), Some((0, 122)));
        assert_eq!(stream(122, 40_000, 10), Some((122, 10_122)));
        assert_eq!(stream(10_122, 40_000, 10), Some((10_122, 16_528)));
    }

    #[test]
    fn packets_that_leave_alone_are_full() {
        let alone = |next, granted| {
            let piece = unsent(next, granted).next_piece(MOST);
            (piece.start, piece.end)
        };
        assert_eq!(alone(0, 1_001), (0, 1_000));
        assert_eq!(alone(1_000, 1_001), (1_000, 1_001));
    }
}
