// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The checker `Parts`: what readers of calls in parts get, compared with what was sent.
//!
//! 1. A reader gets exactly the parts that were sent, in their order, each once.
//! 2. It is told of the end after the last part, and of nothing behind.
//! 3. Parts that were sent and not taken never count more than the reader's window.

use std::collections::BTreeMap;

use bytes::Bytes;
use smt_wire::PART_OVERHEAD;

use super::{Checker, Failure, PartStream};

/// A report about the parts of a call.
#[derive(Debug)]
pub enum PartReport {
    /// A writer handed a part to its endpoint.
    Sent {
        /// Its bytes.
        length: u32,
        /// Whether it is the last part of a request.
        is_last: bool,
        /// The window of its reader, in bytes.
        window: u32,
    },
    /// A reader got a part.
    Taken(Bytes),
    /// A reader was told that there are no more: by the end of a request's parts, or by the reply.
    End,
}

/// The parts of all calls of a run.
#[derive(Debug, Default)]
pub(crate) struct PartStreams {
    streams: BTreeMap<PartStream, Progress>,
    taken: u64,
}

/// How far a stream of parts is.
#[derive(Debug, Default)]
struct Progress {
    /// The length of each part that was sent.
    sent: Vec<u32>,
    /// How many were taken.
    taken: usize,
    /// Window that was used and not taken.
    used: u64,
    /// Whether the reader was told of the end.
    has_ended: bool,
}

impl PartStreams {
    /// Takes a report. Returns the failure that it shows.
    pub(crate) fn take(&mut self, stream: PartStream, report: PartReport) -> Option<Failure> {
        self.taken += u64::from(matches!(report, PartReport::Taken(_)));
        let progress = self.streams.entry(stream).or_default();
        let problem = match report {
            PartReport::Sent { length, is_last, window } => progress.sent(length, is_last, window),
            PartReport::Taken(body) => progress.taken(stream, &body),
            PartReport::End => progress.ended(),
        };
        problem.map(|problem| Failure::new(Checker::Parts, format!("{stream:?}: {problem}")))
    }

    /// How many parts were taken.
    pub(crate) fn taken_count(&self) -> u64 {
        self.taken
    }
}

impl Progress {
    fn sent(&mut self, length: u32, is_last: bool, window: u32) -> Option<String> {
        self.used += cost(length);
        // An empty last part is an end, and no part (SPEC §5.9).
        if length > 0 || !is_last {
            self.sent.push(length);
        }
        let used = self.used;
        (used > u64::from(window))
            .then(|| format!("parts that count {used} B wait for a window of {window} B"))
    }

    fn taken(&mut self, stream: PartStream, body: &Bytes) -> Option<String> {
        let index = self.taken;
        if self.has_ended {
            return Some(format!("part {index} was taken behind the end"));
        }
        let Some(length) = self.sent.get(index).copied() else {
            return Some(format!("part {index} was taken and never sent"));
        };
        self.taken += 1;
        self.used = self.used.saturating_sub(cost(length));
        (*body != stream.part(index as u32, length))
            .then(|| format!("another part was taken than part {index} of {length} B"))
    }

    fn ended(&mut self) -> Option<String> {
        let (taken, sent) = (self.taken, self.sent.len());
        if std::mem::replace(&mut self.has_ended, true) {
            return Some("it ended twice".to_owned());
        }
        (taken != sent).then(|| format!("it ended after {taken} of {sent} parts"))
    }
}

/// The bytes that a part counts in a window.
fn cost(length: u32) -> u64 {
    u64::from(length) + u64::from(PART_OVERHEAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: PartStream = PartStream { call: 7, is_reply: false };

    fn sent(length: u32) -> PartReport {
        PartReport::Sent { length, is_last: false, window: 4_096 }
    }

    fn taken(index: u32, length: u32) -> PartReport {
        PartReport::Taken(STREAM.part(index, length))
    }

    /// The failure found at the last of these reports; nothing is found before.
    fn found(reports: impl IntoIterator<Item = PartReport>) -> Option<String> {
        let mut streams = PartStreams::default();
        let reports = reports.into_iter();
        let mut found: Vec<_> = reports.map(|report| streams.take(STREAM, report)).collect();
        let last = found.pop().unwrap();
        assert!(found.iter().all(Option::is_none), "{found:?}");
        last.map(|failure| failure.text)
    }

    #[test]
    fn parts_that_are_taken_in_order_and_end_are_well() {
        let reports = [sent(5), sent(0), taken(0, 5), taken(1, 0), PartReport::End];
        assert_eq!(found(reports), None);
    }

    #[test]
    fn a_part_out_of_its_order_is_found() {
        assert!(found([sent(5), sent(5), taken(1, 5)]).is_some());
    }

    #[test]
    fn a_part_that_is_taken_twice_is_found() {
        assert!(found([sent(5), sent(5), taken(0, 5), taken(0, 5)]).is_some());
        assert!(found([sent(5), taken(0, 5), taken(0, 5)]).is_some());
    }

    #[test]
    fn an_end_before_the_last_part_is_found() {
        assert!(found([sent(5), sent(5), taken(0, 5), PartReport::End]).is_some());
    }

    #[test]
    fn a_part_behind_the_end_is_found() {
        assert!(found([PartReport::End, sent(5), taken(0, 5)]).is_some());
        assert!(found([PartReport::End, PartReport::End]).is_some());
    }

    #[test]
    fn an_empty_last_part_is_no_part() {
        let last = PartReport::Sent { length: 0, is_last: true, window: 4_096 };
        assert_eq!(found([last, PartReport::End]), None);
    }

    #[test]
    fn parts_beyond_the_window_are_found() {
        let most = 4_096 - PART_OVERHEAD;
        assert_eq!(found([sent(most), taken(0, most), sent(most)]), None);
        assert!(found([sent(most), sent(0)]).is_some());
    }
}
