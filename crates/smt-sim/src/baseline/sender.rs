// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The sending end of a stream: what may leave next, and what acknowledgements and silence change
//! about that.

use std::time::Duration;

use smt_proto::Time;

use super::congestion::{Arrival, Window};
use super::framing::{Frame, FrameWriter};
use super::limits::SEGMENT_MAX;
use super::round_trip::RoundTrip;
use super::scoreboard::Scoreboard;
use super::segment::Acknowledgement;

/// A stream's sending end.
#[derive(Debug)]
pub(super) struct Sender {
    frames: FrameWriter,
    scoreboard: Scoreboard,
    window: Window,
    round_trip: RoundTrip,
    /// When to give up waiting for an acknowledgement.
    deadline: Option<Time>,
    /// When something was last sent.
    sent_at: Time,
    /// When the window last held something back, what was under way ended here.
    full_until: u64,
    /// A loss was just found: its repair does not wait for the window (RFC 6675 §5, step 4.3).
    is_urgent: bool,
}

/// A segment to send.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Outgoing {
    pub(super) start: u64,
    pub(super) length: u16,
    pub(super) is_resent: bool,
}

impl Sender {
    /// `reordering`: how many later segments may overtake one. A round trip takes so many
    /// nanoseconds at first.
    pub(super) fn new(reordering: u32, round_trip: u64) -> Self {
        Self {
            frames: FrameWriter::default(),
            scoreboard: Scoreboard::new(reordering),
            window: Window::new(),
            round_trip: RoundTrip::new(round_trip),
            deadline: None,
            sent_at: Time::default(),
            full_until: 0,
            is_urgent: false,
        }
    }

    /// Appends a message.
    pub(super) fn push(&mut self, now: Time, frame: Frame) {
        let timeout = Duration::from_nanos(self.round_trip.timeout());
        if self.queued() == 0 && now > self.sent_at + timeout {
            self.window.handle_rest();
        }
        self.frames.push(frame);
        self.note_full();
    }

    /// The next segment, if one may leave.
    pub(super) fn transmit(&mut self, now: Time) -> Option<Outgoing> {
        if !self.is_ready() {
            return None;
        }
        let resent = self.scoreboard.resend(now);
        let (start, length) = resent.unwrap_or_else(|| {
            let (start, length) = (self.scoreboard.end(), self.unsent_len());
            self.scoreboard.send(now, length);
            (start, length)
        });
        self.is_urgent = false;
        self.sent_at = now;
        self.deadline = self.deadline.or_else(|| self.deadline_from(now));
        self.note_full();
        Some(Outgoing { start, length, is_resent: resent.is_some() })
    }

    /// Writes what is not zero of a segment's stream bytes.
    pub(super) fn fill(&self, start: u64, bytes: &mut [u8]) {
        self.frames.fill(start, bytes);
    }

    /// Whether segments turned out to be lost.
    pub(super) fn handle_acknowledgement(
        &mut self,
        now: Time,
        acknowledgement: &Acknowledgement,
    ) -> bool {
        let was_full = self.scoreboard.next() < self.full_until;
        let least = self.round_trip.least();
        let progress = self.scoreboard.acknowledge(now, acknowledgement, least);
        if let Some(nanos) = progress.round_trip {
            self.round_trip.measure(nanos);
        }
        let (next, sent) = (self.scoreboard.next(), self.scoreboard.end());
        // First, so that the window does not grow by what shows that it was too large.
        if progress.has_lost {
            self.window.handle_loss(next, sent);
            self.is_urgent = true;
        }
        self.window.handle_arrival(Arrival {
            bytes: progress.bytes,
            is_marked: acknowledgement.is_marked,
            was_full,
            next,
            sent,
        });
        if progress.has_advanced {
            self.frames.forget(next);
            let is_waiting = !self.scoreboard.is_empty();
            self.deadline = self.deadline_from(now).filter(|_| is_waiting);
        }
        progress.has_lost
    }

    /// The deadline has passed.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        self.window.handle_timeout(self.scoreboard.end());
        self.scoreboard.lose_all();
        self.round_trip.back_off();
        self.deadline = self.deadline_from(now);
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// Whether a segment may leave.
    pub(super) fn is_ready(&self) -> bool {
        let in_flight = self.scoreboard.in_flight();
        let fits = |length: u16| in_flight + u64::from(length) <= self.window.size();
        match self.scoreboard.lost_len() {
            Some(length) => self.is_urgent || fits(length),
            None => self.unsent_len() > 0 && fits(self.unsent_len()),
        }
    }

    /// Bytes that have not been acknowledged, whether sent or not.
    pub(super) fn queued(&self) -> u64 {
        self.frames.end() - self.scoreboard.next()
    }

    /// Bytes of the next new segment. It does not wait for more (no Nagle).
    fn unsent_len(&self) -> u16 {
        let unsent = self.frames.end() - self.scoreboard.end();
        unsent.min(SEGMENT_MAX as u64) as u16
    }

    /// Only a window that holds something back may grow from what is under way.
    fn note_full(&mut self) {
        let is_waiting = self.scoreboard.lost_len().is_some() || self.unsent_len() > 0;
        if is_waiting && !self.is_ready() {
            self.full_until = self.scoreboard.end();
        }
    }

    fn deadline_from(&self, now: Time) -> Option<Time> {
        Some(now + Duration::from_nanos(self.round_trip.timeout()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::segment::Block;

    /// A sender whose segments take 10 us to be acknowledged.
    struct Flow {
        sender: Sender,
        nanos: u64,
    }

    impl Flow {
        fn new(length: u32) -> Self {
            let mut flow = Self { sender: Sender::new(3, 10_000), nanos: 0 };
            flow.push(length);
            flow
        }

        fn push(&mut self, length: u32) {
            let now = Time::from_nanos(self.nanos);
            self.sender.push(now, Frame { message: 0, length });
        }

        /// Lengths of the segments that leave.
        fn transmit(&mut self) -> Vec<usize> {
            let now = Time::from_nanos(self.nanos);
            let segments = std::iter::from_fn(|| self.sender.transmit(now));
            segments.map(|sent| usize::from(sent.length)).collect()
        }

        /// One acknowledgement for each segment under way; what that permits leaves at the end.
        fn pass(&mut self) -> usize {
            self.nanos += 10_000;
            let (next, end) = (self.sender.scoreboard.next(), self.sender.scoreboard.end());
            for at in (next..end).step_by(SEGMENT_MAX) {
                self.acknowledge(end.min(at + SEGMENT_MAX as u64), Block::default());
            }
            self.transmit().len()
        }

        fn acknowledge(&mut self, next: u64, block: Block) {
            let acknowledgement = Acknowledgement {
                next,
                blocks: [block, Block::default(), Block::default()],
                ..Acknowledgement::default()
            };
            let now = Time::from_nanos(self.nanos);
            self.sender.handle_acknowledgement(now, &acknowledgement);
        }
    }

    #[test]
    fn ten_segments_leave_at_once_and_twice_as_many_a_round_trip_later() {
        let mut flow = Flow::new(1_000_000);
        assert_eq!(flow.transmit(), [SEGMENT_MAX; 10]);
        assert_eq!(flow.pass(), 20);
    }

    #[test]
    fn less_than_a_segment_leaves_at_once() {
        let mut flow = Flow::new(SEGMENT_MAX as u32);
        assert_eq!(flow.transmit(), [SEGMENT_MAX, 12 + 22]);
    }

    #[test]
    fn a_window_that_held_nothing_back_does_not_grow() {
        let mut flow = Flow::new(9 * SEGMENT_MAX as u32);
        flow.transmit();
        flow.pass();
        flow.push(1_000_000);
        assert_eq!(flow.transmit().len(), 10);
    }

    #[test]
    fn rest_of_a_timeout_takes_the_window_back() {
        for (rest, expected) in [(1_000_000, 80), (1_000_001, 10)] {
            let mut flow = Flow::new(100 * SEGMENT_MAX as u32);
            assert_eq!(flow.transmit().len(), 10);
            assert_eq!([flow.pass(), flow.pass(), flow.pass(), flow.pass()], [20, 40, 31, 0]);
            flow.nanos = flow.sender.sent_at.as_nanos() + rest;
            flow.push(1_000_000);
            assert_eq!(flow.transmit().len(), expected);
        }
    }

    #[test]
    fn sender_that_waits_for_acknowledgements_is_not_idle() {
        let mut flow = Flow::new(100 * SEGMENT_MAX as u32);
        flow.transmit();
        assert_eq!([flow.pass(), flow.pass(), flow.pass()], [20, 40, 31]);
        flow.nanos += 900_000;
        flow.acknowledge(75 * SEGMENT_MAX as u64, Block::default());
        flow.nanos += 200_000;
        flow.push(1_000_000);
        assert!(flow.transmit().len() > 30);
    }

    #[test]
    fn one_segment_leaves_after_a_timeout() {
        let mut flow = Flow::new(1_000_000);
        flow.transmit();
        flow.nanos = 1_000_000;
        flow.sender.handle_timeout(Time::from_nanos(flow.nanos));
        assert_eq!(flow.transmit(), [SEGMENT_MAX]);
    }

    #[test]
    fn one_lost_segment_leaves_again_before_the_window_permits_it() {
        let mut flow = Flow::new(1_000_000);
        flow.transmit();
        flow.nanos += 10_000;
        let (start, end) = (SEGMENT_MAX as u64, 4 * SEGMENT_MAX as u64);
        flow.acknowledge(0, Block { start, end });
        assert!(flow.sender.scoreboard.in_flight() > flow.sender.window.size());
        assert_eq!(flow.transmit(), [SEGMENT_MAX]);
    }

    #[test]
    fn the_timer_runs_only_while_something_is_under_way() {
        let mut flow = Flow::new(100);
        assert_eq!(flow.sender.deadline(), None);
        flow.transmit();
        assert_eq!(flow.sender.deadline(), Some(Time::from_nanos(1_000_000)));
        flow.pass();
        assert_eq!(flow.sender.deadline(), None);
    }
}
