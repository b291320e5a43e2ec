// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A message that is being transmitted: frozen, and sent at least in part, until it is acknowledged
//! (SPEC §5.5, §9.1).
//!
//! Records are sealed as they leave. Bytes asked for again are sealed again from the frozen
//! message: same key, number and bytes. No ciphertext is kept. A record that spans packets is
//! sealed once into the endpoint's [`SealScratch`].

use smt_record::{FrozenMessage, Placed, SealError, SealKeys};
use smt_wire::{DataHeader, Geometry, Grant, MessageId, Record, SessionIndex};

use crate::collections::byte_ranges::{ByteRange, ByteRanges};
use crate::message::incoming::record_end;
use crate::send::buffer::TransmitBuffer;

mod packetizer;

pub(crate) use packetizer::{NextPacket, Room};

/// A message that is being transmitted.
#[derive(Debug)]
pub(crate) struct Transmitting {
    frozen: FrozenMessage,
    geometry: Geometry,
    padded: u32,
    /// Bytes of the record stream.
    length: u32,
    /// All bytes below this offset were sent once.
    next: u32,
    /// End of the bytes that may be sent, granted or unscheduled.
    granted: u32,
    /// End of the bytes that need no grant.
    unscheduled: u32,
    /// The peer has opened all records below this offset.
    released: u32,
    resend: ByteRanges,
    /// The offset at which the peer's questions for bytes began, since it has last got further.
    asked_from: Option<u32>,
    /// Priority of the scheduled bytes, from the last GRANT.
    pub(crate) priority: u8,
}

/// The packets that a message may write now.
pub(crate) struct PacketWriter<'a> {
    pub(crate) version: u8,
    /// This side's index of the session, which is unique here.
    pub(crate) own: SessionIndex,
    /// The peer's index of the session, which the packets name.
    pub(crate) remote: SessionIndex,
    pub(crate) keys: &'a mut SealKeys,
    pub(crate) scratch: &'a mut SealScratch,
}

/// The last record that was sealed for more than one packet.
#[derive(Debug, Default)]
pub(crate) struct SealScratch {
    record: Option<(SessionIndex, MessageId, u32)>,
    bytes: TransmitBuffer,
}

impl Transmitting {
    /// A message of which nothing has left yet. `unscheduled` bytes of its record stream may leave
    /// at once, record 0 in any case.
    pub(crate) fn new(frozen: FrozenMessage, geometry: Geometry, unscheduled: u32) -> Self {
        let padded = frozen.padded_length();
        let unscheduled = record_end(geometry, padded, unscheduled);
        Self {
            geometry,
            padded,
            length: geometry.stream_length(padded),
            next: 0,
            granted: unscheduled,
            unscheduled,
            released: 0,
            resend: ByteRanges::new(),
            asked_from: None,
            priority: 0,
            frozen,
        }
    }

    pub(crate) fn id(&self) -> MessageId {
        self.frozen.id()
    }

    /// Takes a grant: the peer permits sending up to `granted`, and has opened all records below
    /// `received`. Returns whether it said more than before.
    pub(crate) fn grant(&mut self, grant: &Grant) -> bool {
        let before = (self.granted, self.released);
        let granted = record_end(self.geometry, self.padded, grant.granted);
        self.granted = self.granted.max(granted);
        self.released = self.released.max(grant.received.min(self.next));
        self.priority = grant.priority.min(PRIORITY_MAX);
        let says_more = before != (self.granted, self.released);
        if says_more {
            self.asked_from = None;
        }
        says_more
    }

    /// Queues a range that the peer asks for again. Bytes that were never sent are not sent by
    /// this. Returns whether the peer has asked for the same before: then the bytes sent since have
    /// not arrived either.
    pub(crate) fn ask_again(&mut self, offset: u32, length: u32) -> bool {
        let first = self.first_end();
        let end = offset.saturating_add(length).min(self.next);
        // Record 0 travels whole (SPEC §5.3).
        let range = if offset < first {
            ByteRange { start: 0, end: end.max(first.min(self.next)) }
        } else {
            ByteRange { start: offset, end }
        };
        self.resend.insert(range);
        // One question asks for several ranges, in order: the first one tells whether it is the
        // same.
        let is_same = self.asked_from == Some(offset);
        self.asked_from = Some(self.asked_from.map_or(offset, |from| from.min(offset)));
        is_same && self.next > 0
    }

    /// Queues all sent bytes to be sent again (NEVER_SEEN).
    pub(crate) fn ask_all_again(&mut self) {
        self.ask_again(0, u32::MAX);
        self.asked_from = None;
    }

    /// Queues all of a bundle to be sent again, since a member of it is missed. The repetition is
    /// no answer to questions about the rest of the bundle, which go on in their order (SPEC §9.8).
    /// Returns whether anything leaves again.
    pub(crate) fn repeat(&mut self) -> bool {
        let asked_from = self.asked_from;
        self.ask_again(0, u32::MAX);
        self.asked_from = asked_from;
        self.is_resending()
    }

    /// Drops the ranges that were asked for again: they cannot be sealed any more, since their
    /// epoch is finished.
    pub(crate) fn forget_questions(&mut self) {
        self.resend.clear();
    }

    pub(crate) fn is_sendable(&self) -> bool {
        !self.resend.is_empty() || self.next < self.granted
    }

    pub(crate) fn is_resending(&self) -> bool {
        !self.resend.is_empty()
    }

    /// Whether the next new bytes were granted, not unscheduled.
    pub(crate) fn is_scheduled(&self) -> bool {
        self.next >= self.unscheduled
    }

    /// Whether every byte has left at least once.
    pub(crate) fn has_all_left(&self) -> bool {
        self.next == self.length
    }

    /// Whether every byte has left, and none is to leave again.
    pub(crate) fn is_sent(&self) -> bool {
        self.has_all_left() && self.resend.is_empty()
    }

    pub(crate) fn has_started(&self) -> bool {
        self.next > 0
    }

    /// Bytes that have not left yet: what shortest-remaining-first compares.
    pub(crate) fn remaining(&self) -> u32 {
        self.length - self.next
    }

    pub(crate) fn length(&self) -> u32 {
        self.length
    }

    /// The peer has opened all records below this offset.
    pub(crate) fn released(&self) -> u32 {
        self.released
    }

    /// Whether anything sealed in `epoch` or before may still be asked for.
    pub(crate) fn holds_epoch(&self, epoch: u32) -> bool {
        let first_unreleased = self.geometry.record_at(self.released.min(self.length - 1));
        self.released < self.length
            && self.frozen.epoch_of(first_unreleased).is_some_and(|sealed| sealed <= epoch)
    }

    /// Records that have not been sealed yet.
    pub(crate) fn records_unsealed(&self) -> u32 {
        self.frozen.records() - self.frozen.sealed_records()
    }

    /// Bytes of the records that must be sealed again for the next packet: as a whole, however
    /// little of them is asked for, but for the last one that was sealed in parts.
    pub(crate) fn sealed_again(&self, packet: &NextPacket, writer: &PacketWriter<'_>) -> usize {
        if !packet.is_again {
            return 0;
        }
        let range = packet.range;
        let records = self.geometry.record_at(range.start)..=self.geometry.record_at(range.end - 1);
        records
            .filter(|index| writer.scratch.record != Some((writer.own, self.id(), *index)))
            .map(|index| self.geometry.record(self.padded, index).stream_len())
            .sum()
    }

    /// Writes the next packet at the end of `out`.
    ///
    /// # Errors
    /// The key's records are used up; nothing was written.
    pub(crate) fn write_packet(
        &mut self,
        NextPacket { range, is_again }: NextPacket,
        writer: &mut PacketWriter<'_>,
        out: &mut TransmitBuffer,
    ) -> Result<(), SealError> {
        let start = out.len();
        out.grow_zeroed(DataHeader::LEN);
        let written = self.write_records(range, writer, out);
        let written = written.inspect_err(|_| out.truncate(start))?;
        let place: &mut [u8; DataHeader::LEN] = (&mut out[start..start + DataHeader::LEN])
            .try_into()
            .expect("the place has the header's length");
        let header = self.header(range.start, written.epoch, is_again, writer);
        header.emit(writer.version, place);
        if is_again {
            self.resend.take_first(written.end - range.start);
        } else {
            self.next = self.next.max(written.end);
        }
        Ok(())
    }

    /// Writes the next stream into the empty `out`, and returns the header of its packets.
    ///
    /// # Errors
    /// As [`Self::write_packet`].
    pub(crate) fn write_stream(
        &mut self,
        range: ByteRange,
        writer: &mut PacketWriter<'_>,
        out: &mut TransmitBuffer,
    ) -> Result<[u8; DataHeader::LEN], SealError> {
        let written = self.write_records(range, writer, out);
        let written = written.inspect_err(|_| out.truncate(0))?;
        let mut bytes = [0; DataHeader::LEN];
        let header = self.header(range.start, written.epoch, false, writer);
        header.emit(writer.version, &mut bytes);
        self.next = self.next.max(written.end);
        Ok(bytes)
    }

    fn header(
        &self,
        offset: u32,
        epoch: u32,
        retransmit: bool,
        writer: &PacketWriter<'_>,
    ) -> DataHeader {
        DataHeader {
            epoch: epoch as u8,
            retransmit,
            session: writer.remote,
            id: self.id(),
            message_length: self.padded,
            offset,
        }
    }

    /// Appends the bytes of the record stream in `range`, as far as one packet may have them.
    fn write_records(
        &mut self,
        range: ByteRange,
        writer: &mut PacketWriter<'_>,
        out: &mut TransmitBuffer,
    ) -> Result<WrittenRecords, SealError> {
        let mut offset = range.start;
        let mut epoch = None;
        while offset < range.end {
            let index = self.geometry.record_at(offset);
            let record_epoch = self.frozen.epoch_of(index).unwrap_or_else(|| writer.keys.epoch());
            // One packet names one epoch.
            if *epoch.get_or_insert(record_epoch) != record_epoch {
                break;
            }
            let part = ByteRange { start: offset, end: range.end };
            let place = self.geometry.record(self.padded, index);
            offset += append_record_part(&mut self.frozen, &place, part, writer, out)?;
        }
        Ok(WrittenRecords { end: offset, epoch: epoch.unwrap_or_default() })
    }
}

/// The bytes of a record stream that were written.
struct WrittenRecords {
    /// Where they end.
    end: u32,
    /// The epoch of all of them.
    epoch: u32,
}

/// Appends the bytes of the record at `place` that lie in `part`; returns how many. A whole record
/// is left to the carrier, if the carrier seals records.
fn append_record_part(
    frozen: &mut FrozenMessage,
    place: &Record,
    part: ByteRange,
    writer: &mut PacketWriter<'_>,
    out: &mut TransmitBuffer,
) -> Result<u32, SealError> {
    let index = place.index;
    let length = place.stream_len() as u32;
    let from = part.start - place.stream_start;
    let to = (part.end - place.stream_start).min(length);
    if from == 0 && to == length {
        if let Placed::Plain { length, key, number } =
            frozen.place(index, writer.keys, out.grow(length as usize))?
        {
            out.leave_unsealed(length, key, number);
        }
        return Ok(length);
    }
    let name = (writer.own, frozen.id(), index);
    let scratch = &mut *writer.scratch;
    if scratch.record != Some(name) {
        scratch.record = None;
        scratch.bytes.clear();
        frozen.seal(index, writer.keys, scratch.bytes.grow(length as usize))?;
        scratch.record = Some(name);
    }
    out.append(&scratch.bytes[from as usize..to as usize]);
    Ok(to - from)
}

/// Priorities are 0 to 7, whatever a packet says.
const PRIORITY_MAX: u8 = 7;
