// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The TLS engine of the receive side: it opens records of SMT on their way to the host (SMT paper
//! §7, which only wishes for it).
//!
//! The context block of a receive context is, big-endian:
//!
//! | off | size | field |
//! |--:|--:|:--|
//! | 0 | 1 | engine: 1 |
//! | 1 | 1 | direction: 1, receiving |
//! | 2 | 2 | suite: its code in TLS 1.3 |
//! | 4 | 32 | key; shorter ones first, zeros behind |
//! | 36 | 12 | IV |
//! | 48 | 8 | session index that this host has chosen (SPEC §6.3) |
//! | 56 | 1 | epoch byte (SPEC §3.1) |
//! | 57 | 1 | index bits of the sender (SPEC §5.1) |
//! | 58 | 2 | N0, bytes of record 0 (SPEC §5.3) |
//! | 60 | 2 | N, bytes of the further records |
//!
//! A context has no number that counts: session, epoch, message and offset are in the clear header
//! of each packet, and with the agreed record sizes they say where records begin and which numbers
//! they have. Packets may therefore come in any order.
//!
//! 1. A record is opened if it lies whole in the payload and its clear header is the expected one.
//! 2. An arrival costs [`OPENINGS_MAX`] openings at most, whatever is in it.
//! 3. All else stays as it came, for the host's software: parts of records, records of flows
//!    without a context, and records whose tag is wrong.
//! 4. After [`FAILURES_MAX`] wrong tags a context opens nothing more.
//!
//! **The engine does not know which records have come before.** It opens a repeated record again.
//! The transport sees to it that each record counts once (SPEC §4.2).

use core::fmt;
use core::ops::Range;

use super::{RecordKey, key_of};
use crate::big_endian::{u16_at, u64_at};
use crate::engine::{BadContextBlock, ContextBlock};
use crate::tls::record_key::{APPLICATION_DATA, HEADER, TAG};

/// Openings of one arrival at most.
pub const OPENINGS_MAX: usize = 2;
/// Wrong tags after which a context opens nothing more. The host's own limit is lower by as many
/// (SPEC §7.3).
pub const FAILURES_MAX: u64 = 1 << 30;
/// The direction in byte 1 of a context block.
pub const RECEIVING: u8 = 1;

/// The session and the epoch of a packet, which find its context.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ReceiveFlow {
    /// The session index of this host.
    pub session: u64,
    /// The epoch byte.
    pub epoch: u8,
}

/// The context of a receive flow.
#[derive(Clone)]
pub struct ReceiveContext {
    key: RecordKey,
    flow: ReceiveFlow,
    index_bits: u8,
    /// Bytes of the record stream in record 0, and in each further one (SPEC §5.3).
    first: u64,
    rest: u64,
    failures: u64,
}

/// A part of a message's record stream, as a clear header claims it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StreamPart {
    /// The message's id.
    pub id: u64,
    /// Its padded length.
    pub message_length: u32,
    /// The first byte's offset in the record stream.
    pub offset: u32,
}

/// The records of an arrival that were opened: one, or two that follow each other.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct OpenedRecords {
    /// The number of the first of them.
    pub number: u64,
    /// Where in the payload the first begins, with its header.
    pub first: usize,
    /// Where the second begins, if there is one.
    pub second: Option<usize>,
}

/// The work on one arrival.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Opening {
    /// The records that were opened.
    pub opened: Option<OpenedRecords>,
    /// Tags that were computed.
    pub openings: u64,
    /// Bytes of plaintext in the records that were opened.
    pub bytes: u64,
}

/// The place of a record in its message's record stream.
struct Place {
    index: u64,
    /// In the record stream, header and tag included.
    range: Range<u64>,
}

impl ReceiveContext {
    /// Makes a context of a block.
    ///
    /// # Errors
    /// The block is another engine's, of an unknown suite, or its sizes are out of SPEC §6.3.
    pub fn create(block: &ContextBlock) -> Result<Self, BadContextBlock> {
        let key = key_of(block, RECEIVING)?;
        let bytes = block.bytes();
        let (n0, n) = (u16_at(bytes, 58), u16_at(bytes, 60));
        let is_possible = (64..=n).contains(&n0) && n <= 16_384;
        if !is_possible || !(8..=17).contains(&bytes[57]) {
            return Err(BadContextBlock::BadSizes);
        }
        Ok(Self {
            key,
            flow: ReceiveFlow { session: u64_at(bytes, 48), epoch: bytes[56] },
            index_bits: bytes[57],
            first: u64::from(n0) + OVERHEAD,
            rest: u64::from(n) + OVERHEAD,
            failures: 0,
        })
    }

    /// The packets that the context is for.
    #[must_use]
    pub fn flow(&self) -> ReceiveFlow {
        self.flow
    }

    /// Opens records that lie whole in a payload, in place.
    pub fn open(&mut self, part: StreamPart, payload: &mut [u8]) -> Opening {
        let mut done = Opening::default();
        for place in self.whole_records(part, payload.len()).take(OPENINGS_MAX) {
            let Some(number) = self.number(part.id, place.index) else {
                break;
            };
            let at = (place.range.start - u64::from(part.offset)) as usize;
            let length = (place.range.end - place.range.start) as usize;
            let record = &mut payload[at..at + length];
            let body = (length - HEADER) as u16;
            let [high, low] = body.to_be_bytes();
            if record[..HEADER] != [APPLICATION_DATA, 3, 3, high, low]
                || self.failures >= FAILURES_MAX
            {
                continue;
            }
            done.openings += 1;
            if self.key.open(number, record).is_err() {
                self.failures += 1;
                continue;
            }
            done.bytes += (length - HEADER - TAG) as u64;
            match &mut done.opened {
                Some(before) => before.second = Some(at),
                None => {
                    done.opened = Some(OpenedRecords { number, first: at, second: None });
                }
            }
        }
        done
    }

    /// The place in a payload where its arrival ends so that it has as many whole records as are
    /// opened at once, and more behind them.
    #[must_use]
    pub fn cut(&self, part: StreamPart, payload_bytes: usize) -> Option<usize> {
        let mut records = self.whole_records(part, payload_bytes);
        let last = records.nth(OPENINGS_MAX - 1)?;
        records.next()?;
        Some((last.range.end - u64::from(part.offset)) as usize)
    }

    /// The records that lie whole in a payload, in order.
    fn whole_records(
        &self,
        part: StreamPart,
        payload_bytes: usize,
    ) -> impl Iterator<Item = Place> + use<> {
        let (first, rest) = (self.first, self.rest);
        let (offset, length) = (u64::from(part.offset), u64::from(part.message_length));
        let end = offset + payload_bytes as u64;
        let from = match offset {
            0 => 0,
            offset => 1 + offset.saturating_sub(first).div_ceil(rest),
        };
        (from..).map_while(move |index| {
            let [size, start, before] = match index.checked_sub(1) {
                None => [first, 0, 0],
                Some(further) => {
                    [rest, first + further * rest, first - OVERHEAD + further * (rest - OVERHEAD)]
                }
            };
            // The message ends before it, or in it.
            let inner = length.checked_sub(before).filter(|left| *left > 0)?;
            let range = start..start + inner.min(size - OVERHEAD) + OVERHEAD;
            (range.end <= end).then_some(Place { index, range })
        })
    }

    /// The number of a record (SPEC §5.1).
    fn number(&self, id: u64, index: u64) -> Option<u64> {
        let bits = u32::from(self.index_bits);
        let is_possible = id >> (u64::BITS - bits) == 0 && index >> bits == 0;
        is_possible.then_some(id << bits | index)
    }
}

/// No byte of a key.
impl fmt::Debug for ReceiveContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiveContext")
            .field("flow", &self.flow)
            .field("failures", &self.failures)
            .finish_non_exhaustive()
    }
}

/// Bytes of a record beside its bytes of the inner stream: header, content type and tag.
const OVERHEAD: u64 = (HEADER + 1 + TAG) as u64;

#[cfg(test)]
mod tests;
