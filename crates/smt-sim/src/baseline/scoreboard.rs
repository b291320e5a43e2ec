// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The segments that a sender has under way: which have arrived, which are lost.
//!
//! Every transmission has a number. A segment is lost once one that was sent `reordering`
//! transmissions later has arrived: for segments that were sent once that is RFC 6675's rule, and a
//! segment that was sent again and lost again is found too. A segment that arrives although later
//! ones had arrived before raises `reordering`.
//!
//! Which transmission of a segment that was sent again has arrived is told by time: sooner than any
//! round trip, it was the first.

use std::collections::VecDeque;

use smt_proto::Time;

use super::limits::REORDERING_MAX;
use super::segment::{Acknowledgement, Block};

/// Segments from the oldest byte that has not arrived on.
#[derive(Debug)]
pub(super) struct Scoreboard {
    /// In the order of the stream. The first ones' transmissions come first unless they were sent
    /// again.
    segments: VecDeque<Sent>,
    /// All bytes before this one have arrived.
    next: u64,
    /// All bytes before this one were sent.
    end: u64,
    /// Bytes that have neither arrived nor been lost.
    in_flight: u64,
    /// Where lost segments begin, in the order in which they are to be sent again. The first one is
    /// lost; the others may have arrived meanwhile.
    lost: VecDeque<u64>,
    /// Transmissions so far.
    serial: u64,
    /// The latest transmission that has arrived.
    arrived: u64,
    /// How many later transmissions may arrive before a segment.
    reordering: u32,
}

/// A segment that was sent. Its bounds stay when it is sent again.
#[derive(Clone, Copy, Debug)]
struct Sent {
    start: u64,
    /// Its first and its latest transmission.
    first: u64,
    serial: u64,
    sent_at: Time,
    length: u16,
    state: State,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Arrived,
    InFlight,
    Lost,
}

/// The facts that an acknowledgement has told.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Progress {
    /// Bytes reported for the first time.
    pub(super) bytes: u64,
    /// The oldest byte that has not arrived is another one.
    pub(super) has_advanced: bool,
    /// Nanoseconds from the sending of a segment that was sent once.
    pub(super) round_trip: Option<u64>,
    /// Segments turned out to be lost.
    pub(super) has_lost: bool,
}

impl Scoreboard {
    pub(super) fn new(reordering: u32) -> Self {
        Self {
            segments: VecDeque::new(),
            next: 0,
            end: 0,
            in_flight: 0,
            lost: VecDeque::new(),
            serial: 0,
            arrived: 0,
            reordering: reordering.clamp(1, REORDERING_MAX),
        }
    }

    /// A new segment leaves; it begins where the last one ended.
    pub(super) fn send(&mut self, now: Time, length: u16) {
        self.serial += 1;
        self.segments.push_back(Sent {
            start: self.end,
            first: self.serial,
            serial: self.serial,
            sent_at: now,
            length,
            state: State::InFlight,
        });
        self.end += u64::from(length);
        self.in_flight += u64::from(length);
    }

    /// The first lost segment leaves again: its start and length.
    pub(super) fn resend(&mut self, now: Time) -> Option<(u64, u16)> {
        let start = self.lost.pop_front()?;
        let place = self.place(start);
        let segment = self.segments.get_mut(place)?;
        self.serial += 1;
        segment.serial = self.serial;
        segment.sent_at = now;
        segment.state = State::InFlight;
        self.in_flight += u64::from(segment.length);
        let length = segment.length;
        self.skip_arrived();
        Some((start, length))
    }

    /// `round_trip` is the shortest ever seen, in nanoseconds.
    pub(super) fn acknowledge(
        &mut self,
        now: Time,
        acknowledgement: &Acknowledgement,
        round_trip: u64,
    ) -> Progress {
        let mut progress = Progress::default();
        let until = acknowledgement.next.min(self.end);
        while let Some(segment) = self.segments.front().copied()
            && segment.end() <= until
        {
            self.segments.pop_front();
            self.next = segment.end();
            progress.has_advanced = true;
            self.arrive(now, segment, round_trip, &mut progress);
        }
        let blocks = acknowledgement.blocks.iter();
        for block in blocks.take_while(|block| !block.is_empty()) {
            self.acknowledge_block(now, *block, round_trip, &mut progress);
        }
        progress.has_lost = self.find_lost();
        self.skip_arrived();
        progress
    }

    /// Nothing has arrived for a while: all is lost that is not known to have arrived.
    pub(super) fn lose_all(&mut self) {
        self.lost.clear();
        for segment in &mut self.segments {
            if segment.state != State::Arrived {
                segment.state = State::Lost;
                self.lost.push_back(segment.start);
            }
        }
        self.in_flight = 0;
    }

    /// All bytes before this one have arrived.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// All bytes before this one were sent.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Bytes that have neither arrived nor been lost.
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Bytes of the first lost segment.
    pub(super) fn lost_len(&self) -> Option<u16> {
        let start = *self.lost.front()?;
        let segment = self.segments.get(self.place(start))?;
        Some(segment.length)
    }

    fn acknowledge_block(
        &mut self,
        now: Time,
        block: Block,
        round_trip: u64,
        progress: &mut Progress,
    ) {
        for place in self.place(block.start)..self.segments.len() {
            let segment = self.segments[place];
            if segment.end() > block.end {
                break;
            }
            self.segments[place].state = State::Arrived;
            self.arrive(now, segment, round_trip, progress);
        }
    }

    /// A segment is reported, perhaps not for the first time.
    fn arrive(&mut self, now: Time, segment: Sent, round_trip: u64, progress: &mut Progress) {
        let length = u64::from(segment.length);
        match segment.state {
            State::Arrived => return,
            State::InFlight => self.in_flight -= length,
            State::Lost => (),
        }
        progress.bytes += length;
        let elapsed = now.since(segment.sent_at).as_nanos() as u64;
        let was_resent = segment.serial != segment.first;
        if !was_resent {
            progress.round_trip = Some(elapsed);
        }
        let serial = match was_resent && elapsed < round_trip {
            true => segment.first,
            false => segment.serial,
        };
        if serial > self.arrived {
            self.arrived = serial;
            return;
        }
        let distance = (self.arrived - serial).min(u64::from(REORDERING_MAX - 1));
        self.reordering = self.reordering.max(distance as u32 + 1);
    }

    fn find_lost(&mut self) -> bool {
        let Some(latest) = self.arrived.checked_sub(u64::from(self.reordering)) else {
            return false;
        };
        let mut has_lost = false;
        for segment in &mut self.segments {
            // All that follow were sent later.
            if segment.first > latest {
                break;
            }
            if segment.state == State::InFlight && segment.serial <= latest {
                segment.state = State::Lost;
                self.in_flight -= u64::from(segment.length);
                self.lost.push_back(segment.start);
                has_lost = true;
            }
        }
        has_lost
    }

    /// Sees to it that the first lost segment is still lost.
    fn skip_arrived(&mut self) {
        while let Some(start) = self.lost.front() {
            let segment = self.segments.get(self.place(*start));
            let is_lost = |segment: &Sent| segment.start == *start && segment.state == State::Lost;
            if segment.is_some_and(is_lost) {
                return;
            }
            self.lost.pop_front();
        }
    }

    /// The first segment that begins there or later.
    fn place(&self, start: u64) -> usize {
        let segments = &self.segments;
        segments.partition_point(|segment| segment.start < start)
    }
}

impl Sent {
    fn end(&self) -> u64 {
        self.start + u64::from(self.length)
    }
}

#[cfg(test)]
mod tests;
