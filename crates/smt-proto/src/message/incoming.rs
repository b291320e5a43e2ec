// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A message of several records on its way in, from its opened record 0 to the whole body (SPEC
//! §5.4).
//!
//! 1. [`FirstRecord::open`] opens record 0; its inner header is the truth from then on. A message
//!    of one record ends there.
//! 2. [`Incoming::accept`] takes payloads in any order. A record that lies whole in one payload is
//!    opened from there; the others are assembled first. Each opens into its place in the body.
//! 3. [`Incoming::missing`] says what to ask for; [`Incoming::into_body`] yields the message.
//!
//! A record that the carrier has opened ([`Opened`]) is taken like one that opens here, if the
//! carrier names the key that this side gave it for the packet's epoch, and the number that the
//! record has at its place. All other rules are the same: once only, and only what was allowed.
//!
//! Memory follows what the peer may send (unscheduled or granted bytes), never a claimed length.
//! Not here: ids and windows (`session`), grants (`grant`), timers.

use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;
use smt_carrier::Opened;
use smt_record::{IndexBits, NoKey, OpenError, OpenKeys, open_rest, take_opened_rest};
use smt_wire::{Geometry, Grant, InnerHeader, MessageId, RECORD_OVERHEAD, Record};

use crate::grant::ndp::trimmed::TrimmedRanges;
use crate::memory::buffer_pool::BufferPool;
use crate::memory::small_bodies::SmallBodies;
use crate::message::arrived_data::OpenedRecords;
use crate::message::body::Body;
use crate::message::reassembly::{ClaimedRecord, Reassembly};
use crate::message::record_bitmap::RecordBitmap;
use crate::statistics::Statistics;

mod first_record;
mod gaps;

pub(crate) use first_record::{FirstRecord, Message};

/// A message whose record 0 has opened.
#[derive(Debug)]
pub(crate) struct Incoming {
    header: InnerHeader,
    geometry: Geometry,
    /// Bytes of the record stream, and its records.
    length: u32,
    records: u32,
    opened: RecordBitmap,
    body: Body,
    /// Records that have come in part.
    reassembly: Reassembly,
    /// End of the bytes that the peer may send, unscheduled or granted.
    allowed: u32,
    /// Priority of the last grant.
    priority: u8,
    /// End of the unscheduled bytes.
    free: u32,
    /// Its ranges that were trimmed on the way, if any.
    trimmed: Option<Box<TrimmedRanges>>,
    /// Bytes of the record stream in records that have opened.
    arrived: u32,
}

/// The keys of the peer, and the sequence numbers of one message.
pub(crate) struct MessageKeys<'a> {
    pub(crate) open: &'a mut OpenKeys,
    pub(crate) index_bits: IndexBits,
    pub(crate) id: MessageId,
}

/// The state that opening needs beside the bytes.
pub(crate) struct Opener<'a> {
    pub(crate) keys: MessageKeys<'a>,
    pub(crate) scratch: &'a mut Vec<u8>,
    /// Memory of the last record that came in parts.
    pub(crate) record_buffer: &'a mut Vec<u8>,
    pub(crate) bodies: &'a mut SmallBodies,
    pub(crate) buffer_pool: &'a BufferPool,
    pub(crate) statistics: &'a mut Statistics,
}

impl Opener<'_> {
    /// Counts a record that did not open: as forged, unless it could not be tried.
    fn not_opened(&mut self, error: &OpenError) {
        if error.is_unavailable() {
            self.statistics.crypto_unavailable += 1;
            return;
        }
        self.keys.open.failed();
        self.statistics.records_failed += 1;
    }

    /// The epoch of a record that the carrier has opened. `None`, and counted, unless the carrier
    /// names the key that it was given for that epoch byte, and the number of the record `index`.
    fn epoch_of(&mut self, opened: Opened, epoch_byte: u8, index: u32) -> Option<u32> {
        let sequence = self.keys.index_bits.sequence(self.keys.id, index).ok();
        let epoch = self.keys.open.is_carriers(epoch_byte, opened.key);
        let epoch = epoch.filter(|_| sequence == Some(opened.number));
        self.statistics.carrier_records_refused += u64::from(epoch.is_none());
        epoch
    }
}

/// A part of a message's record stream, as a packet claims it.
#[derive(Clone, Copy)]
pub(crate) struct Piece<'a> {
    pub(crate) epoch: u8,
    pub(crate) retransmit: bool,
    pub(crate) message_length: u32,
    pub(crate) offset: u32,
    pub(crate) payload: &'a [u8],
    /// The records in it that the carrier has opened.
    pub(crate) opened: OpenedRecords<'a>,
}

/// The bytes of one record that a packet brings, from `within` on: all of the record or some.
#[derive(Clone, Copy)]
struct RecordPart<'a> {
    epoch: u8,
    within: u32,
    bytes: &'a [u8],
    /// The carrier's word that it has opened it.
    opened: Option<Opened>,
}

impl Incoming {
    /// A message of several records, of which the first has opened, with its bytes of the record
    /// stream and of the body.
    pub(crate) fn new(
        header: InnerHeader,
        geometry: Geometry,
        arrived: u32,
        body: &[u8],
        buffer_pool: &BufferPool,
    ) -> Self {
        let mut opened = RecordBitmap::default();
        opened.insert(0);
        Self {
            header,
            geometry,
            length: geometry.stream_length(header.padded_length),
            records: geometry.records(header.padded_length),
            opened,
            body: Body::starting_with(body, body_room(&header), buffer_pool),
            reassembly: Reassembly::default(),
            allowed: 0,
            priority: 0,
            free: 0,
            trimmed: None,
            arrived,
        }
    }

    /// Takes a payload.
    pub(crate) fn accept(&mut self, piece: Piece<'_>, opener: &mut Opener<'_>) {
        let end = piece.offset as usize + piece.payload.len();
        if piece.message_length != self.header.padded_length
            || end > self.allowed.min(self.length) as usize
        {
            opener.statistics.packets_contradicting += 1;
            return;
        }
        let mut offset = piece.offset;
        let mut rest = piece.payload;
        while !rest.is_empty() {
            let place = self.place(self.geometry.record_at(offset));
            let length = rest.len().min((stream_end(&place) - offset) as usize);
            let (bytes, further) = rest.split_at(length);
            if !self.opened.contains(place.index) {
                let part = RecordPart {
                    epoch: piece.epoch,
                    within: offset - place.stream_start,
                    bytes,
                    opened: piece.opened.at((offset - piece.offset) as usize),
                };
                self.accept_part(&place, part, opener);
            }
            offset += length as u32;
            rest = further;
        }
    }

    /// Raises the end of the bytes that the peer may send.
    pub(crate) fn allow(&mut self, end: u32, priority: u8) {
        let end = record_end(self.geometry, self.header.padded_length, end);
        if self.allowed == 0 {
            self.free = end;
        }
        self.allowed = self.allowed.max(end);
        self.priority = priority;
    }

    /// Whether all bytes of it so far were unscheduled: nothing was granted.
    pub(crate) fn is_ungranted(&self) -> bool {
        self.allowed <= self.free
    }

    /// Its ranges that were trimmed.
    pub(crate) fn trimmed_mut(&mut self) -> &mut TrimmedRanges {
        self.trimmed.get_or_insert_default()
    }

    /// Whether its sender waits for this side: for grants, or for questions about trimmed ranges
    /// that wait for their turn.
    pub(crate) fn waits_for_this_side(&self) -> bool {
        self.has_trimmed_waiting() || self.missing(1).is_empty()
    }

    /// Whether questions for trimmed ranges wait here.
    pub(crate) fn has_trimmed_waiting(&self) -> bool {
        self.trimmed.as_ref().is_some_and(|trimmed| trimmed.waiting > 0)
    }

    /// How many of these bytes, which have come, were not asked for again.
    pub(crate) fn unscheduled_arrived(&mut self, bytes: u32) -> u32 {
        self.trimmed.as_mut().map_or(bytes, |trimmed| trimmed.came(bytes))
    }

    /// End of record 0.
    pub(crate) fn first_end(&self) -> u32 {
        stream_end(&self.place(0))
    }

    /// The GRANT that says how far the peer may send, and how far its message has opened.
    pub(crate) fn grant(&self, id: MessageId) -> Grant {
        Grant { id, granted: self.allowed, received: self.received(), priority: self.priority }
    }

    /// The body of a complete message.
    pub(crate) fn into_body(self) -> Bytes {
        debug_assert!(self.is_complete(), "only a complete message is delivered");
        self.body.into_bytes(self.header.true_length as usize)
    }

    pub(crate) fn header(&self) -> &InnerHeader {
        &self.header
    }

    /// The first application bytes: at least those that record 0 holds.
    pub(crate) fn first_bytes(&self) -> &[u8] {
        self.body.bytes()
    }

    /// Bytes of the record stream.
    pub(crate) fn length(&self) -> u32 {
        self.length
    }

    /// Records of the message.
    pub(crate) fn records(&self) -> u32 {
        self.records
    }

    pub(crate) fn allowed(&self) -> u32 {
        self.allowed
    }

    /// All records that lie wholly below this offset have opened.
    pub(crate) fn received(&self) -> u32 {
        self.stream_start(self.opened.prefix())
    }

    /// Bytes of the record stream that have opened, in order or not.
    pub(crate) fn arrived(&self) -> u32 {
        self.arrived
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.opened.len() == self.records
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        self.body.capacity() + self.reassembly.bytes()
    }

    /// Bytes that may come to be held: records open in any order, and the last one makes room for
    /// all before it.
    pub(crate) fn promised(&self) -> usize {
        self.allowed.min(self.length) as usize
    }

    /// Takes a part of the record at `place`.
    fn accept_part(&mut self, place: &Record, part: RecordPart<'_>, opener: &mut Opener<'_>) {
        let (whole, epoch) = (place.stream_len(), part.epoch);
        if let Some(opened) = part.opened {
            self.take_opened(place, part, opened, opener);
            return;
        }
        if part.bytes.len() == whole {
            self.open(place, epoch, part.bytes, opener);
            return;
        }
        // A claimed epoch that no key can have is worth no memory.
        if let Err(NoKey::NoSuchEpoch) = opener.keys.open.data(epoch) {
            opener.statistics.packets_contradicting += 1;
            return;
        }
        let claimed = ClaimedRecord { index: place.index, epoch };
        let partial = self.reassembly.entry(claimed, whole, opener.record_buffer);
        partial.write(part.within, part.bytes);
        let Some(record) = partial.take_whole() else {
            return;
        };
        self.open(place, epoch, &record, opener);
        match self.reassembly.get_mut(claimed) {
            // The record is still there: it did not open.
            Some(partial) => partial.failed(record),
            None => *opener.record_buffer = record,
        }
    }

    /// Opens a whole record into its place in the body, if it does open.
    fn open(&mut self, place: &Record, epoch: u8, record: &[u8], opener: &mut Opener<'_>) {
        let Ok(sequence) = opener.keys.index_bits.sequence(opener.keys.id, place.index) else {
            return;
        };
        let (epoch, aead) = match opener.keys.open.data(epoch) {
            Ok(key) => key,
            Err(NoKey::NoSuchEpoch) => return,
            Err(NoKey::Unavailable(_)) => {
                opener.statistics.crypto_unavailable += 1;
                return;
            }
        };
        let true_inner = self.true_inner();
        let content = self.content_of(place, opener.buffer_pool);
        if let Err(error) =
            open_rest(aead, sequence, place, true_inner, record, content, opener.scratch)
        {
            opener.not_opened(&error);
            return;
        }
        opener.keys.open.opened(epoch);
        self.note_opened(place);
    }

    /// Takes a record that the carrier has opened, if the carrier's word is good: its bytes are
    /// nothing else that could be used.
    fn take_opened(
        &mut self,
        place: &Record,
        part: RecordPart<'_>,
        opened: Opened,
        opener: &mut Opener<'_>,
    ) {
        let Some(epoch) = opener.epoch_of(opened, part.epoch, place.index) else {
            return;
        };
        let true_inner = self.true_inner();
        let content = self.content_of(place, opener.buffer_pool);
        if let Err(error) = take_opened_rest(place, true_inner, part.bytes, content) {
            opener.not_opened(&error);
            return;
        }
        opener.statistics.records_opened_by_carrier += 1;
        opener.keys.open.opened(epoch);
        self.note_opened(place);
    }

    /// Bytes of the inner stream without padding.
    fn true_inner(&self) -> u32 {
        InnerHeader::LEN as u32 + self.header.true_length
    }

    /// Where a record's content is in the body, and one byte more: `open_rest` borrows it and saves
    /// a copy of the record.
    fn content_of(&mut self, place: &Record, buffer_pool: &BufferPool) -> &mut [u8] {
        let true_inner = self.true_inner();
        let content = place.content(true_inner);
        let start = (place.inner_start as usize).min(true_inner as usize) - InnerHeader::LEN;
        let end = start + content + 1;
        let (promised, whole) = (self.promised(), body_room(&self.header));
        let body = self.body.up_to(end, promised, whole, buffer_pool);
        &mut body[start..]
    }

    /// Notes that a record has opened.
    fn note_opened(&mut self, place: &Record) {
        self.reassembly.remove(place.index);
        self.arrived += place.stream_len() as u32;
        self.opened.insert(place.index);
    }

    /// Where a record begins in the record stream; its end for the index after the last.
    fn stream_start(&self, index: u32) -> u32 {
        if index == self.records { self.length } else { self.place(index).stream_start }
    }

    fn place(&self, index: u32) -> Record {
        self.geometry.record(self.header.padded_length, index)
    }
}

/// Bytes in which a whole body is opened: one more than it has, see [`Incoming::open`].
fn body_room(header: &InnerHeader) -> usize {
    header.true_length as usize + 1
}

/// `end` in the record stream of a message of `padded` inner bytes, rounded up to the end of a
/// record and at most the stream's: a sender must not seal a record that it may then not send,
/// since that would hold up the epoch.
pub(crate) fn record_end(geometry: Geometry, padded: u32, end: u32) -> u32 {
    let index = geometry.record_at(end.saturating_sub(1));
    let last = geometry.records(padded) - 1;
    stream_end(&geometry.record(padded, index.min(last)))
}

fn stream_end(place: &Record) -> u32 {
    place.stream_start + u32::from(place.extent) + RECORD_OVERHEAD as u32
}
