// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A file that is too large for a message, fetched in ranges (docs/SERVE.md).
//!
//! 1. The first range tells the size of the file, its version, and how much of it a reply takes.
//! 2. A few threads ask for the other ranges. Each keeps one until its turn has come: that bounds
//!    the memory.
//! 3. The ranges are written in their order. One of another version ends all.

use std::ops::Range;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::Scope;
use std::time::{Duration, Instant};

use bytes::Bytes;
use smt::blocking::Client;
use smt::{Metadata, OpenError, OutgoingMessage};

use super::Arguments;
use super::attempts::{Attempts, execution};
use super::output::Output;
use crate::failure::Failure;
use crate::file_range::{HEADER_LEN, IF_MATCH, Part, RANGE, Tag, range_text};

/// A file at a server.
pub(super) struct RangeFetch<'a> {
    pub(super) arguments: &'a Arguments,
    pub(super) client: Client,
    /// The request for the file.
    pub(super) request: &'a Bytes,
    pub(super) metadata: &'a Metadata,
    /// When the whole call began, which has a deadline.
    pub(super) began: Instant,
}

/// Why a file was not fetched.
pub(super) enum FetchError {
    /// A call has failed.
    Call(OpenError),
    /// Anything here.
    Here(Failure),
}

/// The rest of a file, behind its first range.
#[derive(Clone, Copy)]
struct Rest {
    size: u64,
    tag: Tag,
    /// Bytes of each range but the last.
    step: u64,
}

impl RangeFetch<'_> {
    /// Writes the file to the output.
    pub(super) fn write_to(&self, output: &mut Output) -> Result<(), FetchError> {
        let room = u64::from(self.arguments.message_limit).saturating_sub(HEADER_LEN as u64);
        let first = self.part(0..room.clamp(1, RANGE_LEN), None)?;
        let step = first.bytes.len() as u64;
        if step == 0 && first.size > 0 {
            return Err(wrong("it is empty"));
        }
        output.write(&first.bytes)?;
        let (size, tag) = (first.size, first.tag);
        drop(first);
        self.write_rest(Rest { size, tag, step }, output)
    }

    fn write_rest(&self, rest: Rest, output: &mut Output) -> Result<(), FetchError> {
        let ranges = rest.ranges();
        tracing::info!("{} bytes come in {} ranges", rest.size, ranges + 1);
        let workers = OUTSTANDING.min(ranges);
        std::thread::scope(|scope| {
            let workers = 0..workers;
            let parts: Vec<_> = workers.map(|worker| self.start(scope, rest, worker)).collect();
            for number in 0..ranges {
                let part = parts[(number % OUTSTANDING) as usize].recv();
                let part = part.map_err(|_| wrong("its thread has ended"))??;
                output.write(&part.bytes)?;
            }
            Ok(())
        })
    }

    /// Starts a thread that fetches every range whose turn it is. It ends when nobody takes them.
    fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        rest: Rest,
        worker: u64,
    ) -> Receiver<Result<Part, FetchError>> {
        let (fetched, parts) = sync_channel(0);
        scope.spawn(move || {
            for number in (worker..rest.ranges()).step_by(OUTSTANDING as usize) {
                let part = self.later_part(rest, number);
                let has_failed = part.is_err();
                if fetched.send(part).is_err() || has_failed {
                    return;
                }
            }
        });
        parts
    }

    /// A range that must be of the same version as the first, and whole.
    fn later_part(&self, rest: Rest, number: u64) -> Result<Part, FetchError> {
        let first = rest.step * (number + 1);
        let length = rest.step.min(rest.size - first);
        let part = self.part(first..first + length, Some(&rest.tag))?;
        let is_right = (part.size, part.tag) == (rest.size, rest.tag);
        match is_right && part.bytes.len() as u64 == length {
            true => Ok(part),
            false => Err(wrong("it is of another version or length than was asked for")),
        }
    }

    /// Reading twice does no harm: a range is asked for again if the user wants repetitions.
    fn part(&self, range: Range<u64>, tag: Option<&Tag>) -> Result<Part, FetchError> {
        let mut metadata = self.metadata.clone();
        let text = range_text(range.start, range.end - range.start);
        metadata.push(RANGE, text.as_bytes())?;
        if let Some(tag) = tag {
            metadata.push(IF_MATCH, tag)?;
        }
        let mut attempts = Attempts::new(self.arguments.retry, true);
        loop {
            let error = match self.call(metadata.clone()) {
                Ok(body) => return Part::decode(body).ok_or_else(|| wrong("it is too short")),
                Err(error) => OpenError::from(error),
            };
            let pause = attempts.pause_after(execution(&error), error.is_transient());
            let left = self.time_left();
            let pause = pause.filter(|pause| left.is_none_or(|left| *pause < left));
            let Some(pause) = pause else {
                return Err(FetchError::Call(error));
            };
            std::thread::sleep(pause);
        }
    }

    fn call(&self, metadata: Metadata) -> Result<Bytes, smt::Error> {
        let message = OutgoingMessage::new(self.request.clone()).with_metadata(metadata);
        let call = self.client.call(message);
        match self.time_left() {
            Some(left) => call.deadline(left).wait(),
            None => call.wait(),
        }
    }

    fn time_left(&self) -> Option<Duration> {
        let deadline = self.arguments.deadline?;
        Some(deadline.saturating_sub(self.began.elapsed()))
    }
}

impl Rest {
    /// Number of ranges behind the first.
    fn ranges(&self) -> u64 {
        match self.step {
            0 => 0,
            step => (self.size - step.min(self.size)).div_ceil(step),
        }
    }
}

impl From<Failure> for FetchError {
    fn from(failure: Failure) -> Self {
        Self::Here(failure)
    }
}

impl From<smt::MetadataError> for FetchError {
    fn from(error: smt::MetadataError) -> Self {
        Self::Here(error.into())
    }
}

fn wrong(what: &str) -> FetchError {
    let text = format!("peer: the server's reply with a range of the file is wrong: {what}");
    FetchError::Here(Failure::new(text))
}

/// Bytes of a range, if replies may be as long: long enough to fill a link, short enough for the
/// memory of several.
const RANGE_LEN: u64 = 4 << 20;
/// Ranges that are asked for at a time, or wait for their turn.
const OUTSTANDING: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_as_many_ranges_as_it_takes() {
        for (size, step, ranges) in [(0, 0, 0), (7, 7, 0), (8, 7, 1), (14, 7, 1), (15, 7, 2)] {
            let rest = Rest { size, tag: [0; 24], step };
            assert_eq!(rest.ranges(), ranges, "{size} by {step}");
        }
    }
}
