// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The cutting of a message into packets (SPEC §9.1).
//!
//! Packets that leave alone are full but for the last. In a batch all but the last datagram are
//! equally long, and a shorter one ends it. A message is therefore cut evenly, and the next message
//! of its length follows in the same batch.

use smt_wire::{DataHeader, RECORD_OVERHEAD};

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
        let range = match room {
            Room::Alone(limit) => self.further(payload(limit)),
            Room::InBatch {
                limit,
                segment_size,
            } => self.further_evenly(payload(limit), payload(segment_size)),
        };
        NextPacket {
            range,
            is_again: false,
        }
    }

    /// The next bytes that have not left yet, at most `most`.
    fn further(&self, most: u32) -> ByteRange {
        ByteRange {
            start: self.next,
            end: self.granted.min(self.next.saturating_add(most)),
        }
    }

    /// The next bytes, in pieces of one size: that of the batch's `segment`, that of all that may
    /// be sent, or that of the rest of it. The first of these sizes is taken that needs hardly more
    /// packets than full ones.
    fn further_evenly(&self, most: u32, segment: u32) -> ByteRange {
        let rest = self.granted - self.next;
        // Record 0 travels whole (SPEC §5.3).
        let least = if self.next == 0 { self.first_end() } else { 1 };
        let fewest = rest.div_ceil(most).max(1);
        let whole = self.granted.div_ceil(self.granted.div_ceil(most).max(1));
        let whole = whole.max(self.first_end());
        let piece = if segment > 0 {
            let is_near = rest.div_ceil(segment) <= fewest + fewest / WASTE_PART;
            if segment >= least && is_near {
                segment.min(most)
            } else {
                most
            }
        } else if rest.div_ceil(whole) == fewest {
            whole
        } else {
            rest.div_ceil(fewest).max(least)
        };
        let range = self.further(piece);
        let start = range.end.saturating_sub(piece);
        // The last piece begins a little before what has not left yet rather than to end the batch:
        // within the same record, which is at hand.
        let is_little = self.next.saturating_sub(start) <= most / WASTE_PART;
        let record = |offset| self.geometry.record_at(offset);
        match start > 0 && is_little && record(start) == record(range.end - 1) {
            true => ByteRange { start, ..range },
            false => range,
        }
    }

    /// End of record 0.
    pub(super) fn first_end(&self) -> u32 {
        u32::from(self.geometry.record(self.padded, 0).extent) + RECORD_OVERHEAD as u32
    }
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
    NextPacket {
        range: ByteRange { end, ..range },
        is_again: true,
    }
}

/// Bytes of the record stream in a datagram.
fn payload(datagram: usize) -> u32 {
    datagram.saturating_sub(DataHeader::LEN) as u32
}

/// At most an eighth more is sent so that messages share batches: of a packet's bytes, of a
/// message's packets.
const WASTE_PART: u32 = 8;
