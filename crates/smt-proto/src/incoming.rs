// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A message on its way in, from its opened record 0 to the whole body (SPEC §5.4).
//!
//! 1. [`Incoming::begin`] opens record 0; its inner header is the truth from then on.
//! 2. [`Incoming::accept`] takes payloads in any order. A record that lies whole in one payload is opened
//!    from there; the others are assembled first. Each opens into its place in the body.
//! 3. [`Incoming::missing`] says what to ask for; [`Incoming::into_body`] yields the message.
//!
//! Memory follows the bytes received: the body grows as records open, never by a claimed length.
//! Not here: ids and windows (`session`), grants (`grants`), timers.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use smt_record::{IndexBits, OpenKeys, open_first, open_rest};
use smt_wire::{Geometry, Grant, InnerHeader, MessageId, RECORD_OVERHEAD, Record};

use crate::assembly::Assembly;
use crate::ranges::Range;
use crate::statistics::Statistics;

/// A message whose record 0 has opened.
#[derive(Debug)]
pub(crate) struct Incoming {
    header: InnerHeader,
    geometry: Geometry,
    /// Bytes of the record stream, and its records.
    length: u32,
    records: u32,
    /// One bit per record that has opened, and how many have.
    opened: Vec<u64>,
    opened_count: u32,
    /// All records below this index have opened.
    prefix: u32,
    body: Vec<u8>,
    /// Records in parts, by index and the epoch that their packets claim.
    assemblies: BTreeMap<(u32, u8), Assembly>,
    /// End of what the peer may send: unscheduled or granted; and the priority of the last grant.
    allowed: u32,
    priority: u8,
    /// Bytes of the record stream in records that have opened.
    arrived: u32,
}

/// What opening needs beside the bytes.
pub(crate) struct Opener<'a> {
    pub(crate) keys: &'a mut OpenKeys,
    pub(crate) index_bits: IndexBits,
    pub(crate) id: MessageId,
    pub(crate) scratch: &'a mut Vec<u8>,
    pub(crate) statistics: &'a mut Statistics,
}

/// A part of a message's record stream, as a packet claims it.
#[derive(Clone, Copy)]
pub(crate) struct Piece<'a> {
    pub(crate) epoch: u8,
    pub(crate) retransmit: bool,
    pub(crate) message_length: u32,
    pub(crate) offset: u32,
    pub(crate) payload: &'a [u8],
}

impl Incoming {
    /// Opens record 0 from the payload of a packet with offset 0. `None` if it does not open: nothing of the
    /// packet is then to be believed.
    pub(crate) fn begin(
        piece: Piece<'_>,
        geometry: Geometry,
        opener: &mut Opener<'_>,
    ) -> Option<Self> {
        let place = geometry.record(piece.message_length, 0);
        let record = piece
            .payload
            .get(..place.extent as usize + RECORD_OVERHEAD)?;
        let sequence = opener.index_bits.sequence(opener.id, 0).ok()?;
        let (epoch, aead) = opener.keys.data(piece.epoch)?;
        let mut body = Vec::new();
        let Ok(header) = open_first(
            aead,
            sequence,
            geometry,
            piece.message_length,
            record,
            &mut body,
        ) else {
            opener.keys.failed();
            opener.statistics.records_failed += 1;
            return None;
        };
        opener.keys.opened(epoch);
        let records = geometry.records(piece.message_length);
        Some(Self {
            header,
            geometry,
            length: geometry.stream_length(piece.message_length),
            records,
            opened: if records == 1 { Vec::new() } else { vec![1] },
            opened_count: 1,
            prefix: 1,
            body,
            assemblies: BTreeMap::new(),
            allowed: 0,
            priority: 0,
            arrived: record.len() as u32,
        })
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
            if !self.is_open(place.index) {
                let from = (offset - place.stream_start, piece.epoch);
                self.accept_part(&place, from, bytes, opener);
            }
            offset += length as u32;
            rest = further;
        }
    }

    /// Raises the end of what the peer may send.
    pub(crate) fn allow(&mut self, end: u32, priority: u8) {
        let end = record_end(self.geometry, self.header.padded_length, end);
        self.allowed = self.allowed.max(end);
        self.priority = priority;
    }

    /// The GRANT that says how far the peer may send, and how far its message has opened.
    pub(crate) fn grant(&self, id: MessageId) -> Grant {
        Grant {
            id,
            granted: self.allowed,
            received: self.received(),
            priority: self.priority,
        }
    }

    /// The body of a complete message.
    pub(crate) fn into_body(self) -> Vec<u8> {
        debug_assert!(self.is_complete(), "only a complete message is delivered");
        self.body
    }

    pub(crate) fn header(&self) -> &InnerHeader {
        &self.header
    }

    /// Bytes of the record stream.
    pub(crate) fn length(&self) -> u32 {
        self.length
    }

    pub(crate) fn allowed(&self) -> u32 {
        self.allowed
    }

    /// All records that lie wholly below this offset have opened.
    pub(crate) fn received(&self) -> u32 {
        if self.prefix == self.records {
            self.length
        } else {
            self.place(self.prefix).stream_start
        }
    }

    /// Bytes of the record stream that have opened, in order or not.
    pub(crate) fn arrived(&self) -> u32 {
        self.arrived
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.opened_count == self.records
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        let assemblies: usize = self
            .assemblies
            .values()
            .map(|assembly| assembly.bytes.capacity())
            .sum();
        self.body.capacity() + assemblies
    }

    /// What is missing of what the peer was allowed to send; at most `most` ranges.
    pub(crate) fn missing(&self, most: usize) -> Vec<Range> {
        let mut missing: Vec<Range> = Vec::new();
        let end = self.allowed.min(self.length);
        for index in self.prefix..self.records {
            let place = self.place(index);
            if place.stream_start >= end || missing.len() > most {
                break;
            }
            if self.is_open(index) {
                continue;
            }
            for gap in self.gaps(&place) {
                let start = place.stream_start + gap.start;
                let stop = (place.stream_start + gap.end).min(end);
                match missing.last_mut() {
                    Some(last) if last.end == start => last.end = stop,
                    _ if start < stop => missing.push(Range { start, end: stop }),
                    _ => {}
                }
            }
        }
        missing.truncate(most);
        missing
    }

    /// What is missing of a record. If some of it came under two epochs, one is forged: all of it.
    fn gaps(&self, place: &Record) -> Vec<Range> {
        let whole = place.stream_len() as u32;
        let mut held = self.assemblies.range(of_record(place.index));
        match (held.next(), held.next()) {
            (Some((_, only)), None) if !only.has_failed => only.filled.gaps(whole).collect(),
            _ => vec![Range {
                start: 0,
                end: whole,
            }],
        }
    }

    /// Takes the bytes of a record from `within` on, all or some.
    fn accept_part(
        &mut self,
        place: &Record,
        (within, epoch): (u32, u8),
        bytes: &[u8],
        opener: &mut Opener<'_>,
    ) {
        let whole = place.stream_len();
        if bytes.len() == whole {
            self.open(place, epoch, bytes, opener);
            return;
        }
        // A claimed epoch that no key can have is worth no memory.
        if opener.keys.data(epoch).is_none() {
            opener.statistics.packets_contradicting += 1;
            return;
        }
        let name = (place.index, epoch);
        let assembly = self
            .assemblies
            .entry(name)
            .or_insert_with(|| Assembly::new(whole));
        assembly.write(within, bytes);
        if !assembly.filled.is_whole(whole as u32) {
            return;
        }
        let record = std::mem::take(&mut assembly.bytes);
        self.open(place, epoch, &record, opener);
        // Still there: it did not open.
        if let Some(assembly) = self.assemblies.get_mut(&name) {
            assembly.bytes = record;
            assembly.failed();
        }
    }

    /// Opens a whole record into its place in the body, if it does open.
    fn open(&mut self, place: &Record, epoch: u8, record: &[u8], opener: &mut Opener<'_>) {
        let Ok(sequence) = opener.index_bits.sequence(opener.id, place.index) else {
            return;
        };
        let Some((epoch, aead)) = opener.keys.data(epoch) else {
            return;
        };
        let true_inner = InnerHeader::LEN as u32 + self.header.true_length;
        let content = place.content(true_inner);
        let start = (place.inner_start as usize).min(true_inner as usize) - InnerHeader::LEN;
        if self.body.len() < start + content {
            self.body.resize(start + content, 0);
        }
        // One byte more where there is one: `open_rest` borrows it and saves a copy of the record.
        let end = self.body.len().min(start + content + 1);
        let body = &mut self.body[start..end];
        if open_rest(
            aead,
            sequence,
            place,
            true_inner,
            record,
            body,
            opener.scratch,
        )
        .is_err()
        {
            opener.keys.failed();
            opener.statistics.records_failed += 1;
            return;
        }
        opener.keys.opened(epoch);
        while let Some((name, _)) = self.assemblies.range(of_record(place.index)).next() {
            let name = *name;
            self.assemblies.remove(&name);
        }
        self.arrived += place.stream_len() as u32;
        self.mark_open(place.index);
    }

    fn mark_open(&mut self, index: u32) {
        let word = index as usize / 64;
        if self.opened.len() <= word {
            self.opened.resize(word + 1, 0);
        }
        self.opened[word] |= 1 << (index % 64);
        self.opened_count += 1;
        while self.prefix < self.records && self.is_open(self.prefix) {
            self.prefix += 1;
        }
    }

    fn is_open(&self, index: u32) -> bool {
        index < self.prefix
            || self
                .opened
                .get(index as usize / 64)
                .is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    fn place(&self, index: u32) -> Record {
        self.geometry.record(self.header.padded_length, index)
    }
}

/// The names of a record's assemblies.
fn of_record(index: u32) -> RangeInclusive<(u32, u8)> {
    (index, 0)..=(index, u8::MAX)
}

/// `end` in the record stream of a message of `padded` inner bytes, rounded up to the end of a record and at
/// most the stream's: nobody seals a record that it may then not send, since that would hold up the epoch.
pub(crate) fn record_end(geometry: Geometry, padded: u32, end: u32) -> u32 {
    let index = geometry.record_at(end.saturating_sub(1));
    let last = geometry.records(padded) - 1;
    stream_end(&geometry.record(padded, index.min(last)))
}

fn stream_end(place: &Record) -> u32 {
    place.stream_start + u32::from(place.extent) + RECORD_OVERHEAD as u32
}
