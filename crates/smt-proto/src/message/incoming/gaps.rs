// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The missing ranges of a message on its way in, which questions ask for (SPEC §9.3, §9.10).
//!
//! Parts of an unopened record that wait to be assembled are not asked for again. Forged parts may
//! be many, so a question looks at a few records.

use alloc::vec::Vec;
use core::ops::Range as Span;

use super::{Incoming, stream_end};
use crate::collections::byte_ranges::ByteRange;

impl Incoming {
    /// The missing ranges of what the peer was allowed to send; at most `most` ranges.
    pub(crate) fn missing(&self, most: usize) -> Vec<ByteRange> {
        let end = self.allowed.min(self.length);
        let records = self.geometry.record_at(end.saturating_sub(1)) + 1;
        let mut missing = Vec::new();
        for run in self.opened.missing(records.min(self.records)) {
            self.missing_of(run, most, &mut missing);
            if missing.len() > most {
                break;
            }
        }
        missing.truncate(most);
        missing
    }

    /// The missing part of a range from its beginning on; `None` if its first byte is there, or
    /// beyond what the peer may send.
    pub(crate) fn gap_in(&self, range: ByteRange) -> Option<ByteRange> {
        let most = range.end.min(self.allowed).min(self.length);
        let mut end = range.start;
        while end < most {
            let place = self.place(self.geometry.record_at(end));
            if self.opened.contains(place.index) {
                break;
            }
            let within = end - place.stream_start;
            let parts = self.reassembly.gaps(place.index, place.stream_len() as u32, GAPS_SEARCHED);
            let Some(gap) = parts.iter().find(|gap| gap.start <= within && within < gap.end) else {
                break;
            };
            end = place.stream_start + gap.end;
            if end < stream_end(&place) {
                break;
            }
        }
        let end = end.min(most);
        (range.start < end).then_some(ByteRange { start: range.start, end })
    }

    /// Adds the missing ranges of a run of records, none of which has opened: all but what has come
    /// in parts.
    fn missing_of(&self, run: Span<u32>, most: usize, missing: &mut Vec<ByteRange>) {
        let mut from = run.start;
        // Forged parts may be many; what is left out here is asked for next time.
        for _ in 0..PARTIAL_RECORDS_ASKED {
            let Some(index) = self.reassembly.first_of(from..run.end) else {
                break;
            };
            let place = self.place(index);
            push(missing, self.stream_start(from)..self.stream_start(index));
            let length = place.stream_len() as u32;
            for gap in self.reassembly.gaps(index, length, most + 1) {
                push(missing, place.stream_start + gap.start..place.stream_start + gap.end);
            }
            from = index + 1;
            if missing.len() > most {
                return;
            }
        }
        let rest = self.reassembly.first_of(from..run.end).unwrap_or(run.end);
        push(missing, self.stream_start(from)..self.stream_start(rest));
    }
}

/// Adds a range behind the others; to the last one, if they touch.
fn push(ranges: &mut Vec<ByteRange>, Span { start, end }: Span<u32>) {
    match ranges.last_mut() {
        Some(last) if last.end == start => last.end = end,
        _ if start < end => ranges.push(ByteRange { start, end }),
        _ => {}
    }
}

/// Parts of a record among which the place of a packet is looked for.
const GAPS_SEARCHED: usize = 64;
/// Records in parts that one question looks at: a window of 512 KiB, twice the budget, has 32 of
/// the default size.
const PARTIAL_RECORDS_ASKED: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collections::step_count::steps_of;
    use crate::message::reassembly::{ClaimedRecord, Reassembly};
    use crate::message::record_bitmap::RecordBitmap;
    use smt_wire::{Geometry, InnerHeader};

    const GEOMETRY: Geometry = match Geometry::new(64, 64) {
        Some(geometry) => geometry,
        None => panic!("the least records"),
    };

    /// A message of `records` records of which these have opened, and all may be sent.
    fn message(records: u32, opened: impl Iterator<Item = u32>) -> Incoming {
        let padded = 64 * records;
        let mut set = RecordBitmap::default();
        opened.for_each(|index| set.insert(index));
        Incoming {
            header: InnerHeader {
                true_length: padded - InnerHeader::LEN as u32,
                padded_length: padded,
                kind: smt_wire::Kind::Request,
                deadline_us: 0,
                reply_unscheduled: 0,
                failure: None,
                has_metadata: false,
                parts: smt_wire::PartMarks::default(),
                window: 0,
                ack: None,
            },
            geometry: GEOMETRY,
            length: GEOMETRY.stream_length(padded),
            records,
            opened: set,
            body: crate::message::body::Body::Own(Vec::new()),
            reassembly: Reassembly::default(),
            allowed: u32::MAX,
            priority: 0,
            free: 0,
            trimmed: None,
            arrived: 0,
        }
    }

    /// Writes a part of a record of 86 bytes.
    fn write(incoming: &mut Incoming, index: u32, epoch: u8, within: u32, bytes: &[u8]) {
        let claimed = ClaimedRecord { index, epoch };
        let partial = incoming.reassembly.entry(claimed, 86, &mut Vec::new());
        partial.write(within, bytes);
    }

    fn range(start: u32, end: u32) -> ByteRange {
        ByteRange { start, end }
    }

    #[test]
    fn a_question_about_a_long_message_takes_few_steps() {
        let long = message(131_072, (0..131_072).filter(|index| *index != 1));
        let (steps, missing) = steps_of(|| long.missing(16));
        assert_eq!(missing, [range(86, 2 * 86)]);
        assert!(steps <= 131_072 / 64 + 10, "{steps} steps");
        let empty = message(131_072, 0..1);
        let (steps, missing) = steps_of(|| empty.missing(16));
        assert_eq!(missing, [range(86, 131_072 * 86)]);
        assert!(steps <= 10, "{steps} steps");
    }

    #[test]
    fn missing_ranges_are_neither_open_nor_there_in_part() {
        let mut incoming = message(10, [0, 1, 4].into_iter());
        write(&mut incoming, 3, 0, 10, &[1; 20]);
        write(&mut incoming, 9, 0, 0, &[1; 86]);
        let expected =
            [range(2 * 86, 3 * 86 + 10), range(3 * 86 + 30, 4 * 86), range(5 * 86, 9 * 86)];
        assert_eq!(incoming.missing(16), expected);
        assert_eq!(incoming.missing(2), expected[..2]);
        incoming.allowed = 3 * 86;
        assert_eq!(incoming.missing(16), [range(2 * 86, 3 * 86)]);
        assert_eq!(incoming.received(), 2 * 86);
    }

    #[test]
    fn the_gap_in_a_range_ends_where_something_is() {
        let mut incoming = message(10, [0, 4].into_iter());
        write(&mut incoming, 2, 0, 10, &[1; 20]);
        let gap = |start, end| incoming.gap_in(range(start, end));
        assert_eq!(gap(86, 1_000), Some(range(86, 2 * 86 + 10)));
        assert_eq!(gap(2 * 86 + 10, 1_000), None);
        assert_eq!(gap(2 * 86 + 40, 3 * 86), Some(range(2 * 86 + 40, 3 * 86)));
        assert_eq!(gap(2 * 86 + 40, 1_000), Some(range(2 * 86 + 40, 4 * 86)));
        assert_eq!(gap(4 * 86, 1_000), None);
        assert_eq!(gap(9 * 86, u32::MAX), Some(range(9 * 86, 10 * 86)));
        assert_eq!(gap(10 * 86, u32::MAX), None);
        assert_eq!(gap(u32::MAX - 1, u32::MAX), None);
    }

    #[test]
    fn forged_parts_of_many_records_are_asked_for_a_few_at_a_time() {
        let mut incoming = message(1_000, 0..1);
        for index in 1..1_000 {
            write(&mut incoming, index, 0, 0, &[1]);
            write(&mut incoming, index, 1, 0, &[1]);
        }
        let first = range(86, (1 + PARTIAL_RECORDS_ASKED as u32) * 86);
        assert_eq!(incoming.missing(16), [first]);
    }
}
