// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where a message's bytes stand in its records, and its records in its stream (SPEC §5.3).
//!
//! Three counts of bytes: *application* bytes, *inner* bytes (40 of header before them, padding
//! behind) and *stream* bytes (22 more per record). Offsets in DATA, GRANT and RESEND are stream
//! bytes; padded and true lengths are inner bytes.
//!
//! Pure arithmetic, total for every u32: lengths from clear headers may be computed with before
//! they are believed, and saturate where they are absurd.

use crate::limits::{INDEX_BITS, RECORD_OVERHEAD, RECORD_SIZE};

/// The sizes of records in a session, in inner bytes.
#[non_exhaustive] // so that other crates must use `new`, which keeps `rest` from being 0
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Geometry {
    /// Bytes of record 0 (N0).
    pub first: u16,
    /// Bytes of every further record (N); the last record holds the remaining bytes.
    pub rest: u16,
}

impl Geometry {
    /// The geometry of an agreement; `None` unless 64 <= `first` <= `rest` <= 16,384.
    pub const fn new(first: u16, rest: u16) -> Option<Self> {
        if first < *RECORD_SIZE.start() || first > rest || rest > *RECORD_SIZE.end() {
            return None;
        }
        Some(Self { first, rest })
    }

    /// Records of a message of `padded` inner bytes, at least 1.
    pub const fn records(&self, padded: u32) -> u32 {
        1 + padded.saturating_sub(self.first as u32).div_ceil(self.rest as u32)
    }

    /// Bytes of the record stream of a message of `padded` inner bytes.
    ///
    /// `u32::MAX` stands for that and anything above; see [`Geometry::padded_max`].
    pub const fn stream_length(&self, padded: u32) -> u32 {
        saturate(padded as u64 + OVERHEAD * self.records(padded) as u64)
    }

    /// The record that holds the byte at `stream_offset`, if the message is long enough.
    pub const fn record_at(&self, stream_offset: u32) -> u32 {
        let overhead = RECORD_OVERHEAD as u32;
        match stream_offset.checked_sub(self.first as u32 + overhead) {
            None => 0,
            Some(offset) => 1 + offset / (self.rest as u32 + overhead),
        }
    }

    /// Where record `index` of a message of `padded` inner bytes stands.
    ///
    /// The extent is 0 for an `index` at or past [`Geometry::records`], and in a message of no
    /// inner byte. Starts saturate at `u32::MAX`.
    pub const fn record(&self, padded: u32, index: u32) -> Record {
        let (inner_start, size) = match index.checked_sub(1) {
            None => (0, self.first),
            Some(before) => (self.first as u64 + before as u64 * self.rest as u64, self.rest),
        };
        let stream_start = inner_start + OVERHEAD * index as u64;
        let left = (padded as u64).saturating_sub(inner_start);
        // At most `size`, a u16.
        let extent = if left < size as u64 { left as u16 } else { size };
        Record {
            index,
            stream_start: saturate(stream_start),
            inner_start: saturate(inner_start),
            extent,
        }
    }

    /// The largest padded length that record indices of `index_bits` bits can number.
    ///
    /// # Panics
    /// If `index_bits` is not 8..=17, which no agreement permits (SPEC §6.3).
    pub const fn padded_max(&self, index_bits: u8) -> u32 {
        assert!(
            *INDEX_BITS.start() <= index_bits && index_bits <= *INDEX_BITS.end(),
            "8 to 17 index bits"
        );
        self.first as u32 + ((1 << index_bits) - 1) * self.rest as u32
    }
}

/// The place of one record.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Record {
    /// Its index in the message.
    pub index: u32,
    /// Its first byte in the record stream.
    pub stream_start: u32,
    /// Its first byte in the inner stream.
    pub inner_start: u32,
    /// Inner bytes that it holds, padding included.
    pub extent: u16,
}

impl Record {
    /// Bytes of the record in the record stream.
    pub const fn stream_len(&self) -> usize {
        self.extent as usize + RECORD_OVERHEAD
    }

    /// Bytes of the record that are content, in a message of `true_inner` inner bytes without
    /// padding (T of SPEC §5.2).
    pub const fn content(&self, true_inner: u32) -> usize {
        let left = true_inner.saturating_sub(self.inner_start);
        if left < self.extent as u32 { left as usize } else { self.extent as usize }
    }
}

const fn saturate(value: u64) -> u32 {
    if value > u32::MAX as u64 { u32::MAX } else { value as u32 }
}

const OVERHEAD: u64 = RECORD_OVERHEAD as u64;

// `padded_max` and its stream length fit u32 for every geometry and number of index bits.
const _: () = {
    let records = 1u64 << *INDEX_BITS.end();
    assert!(records * (*RECORD_SIZE.end() as u64 + OVERHEAD) <= u32::MAX as u64);
};

#[cfg(test)]
mod tests;
