// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of what acknowledgements tell, and what they do not.

use super::*;

const LENGTH: u16 = 1_000;
const ROUND_TRIP: u64 = 100;

/// A scoreboard with segments under way, sent 1 ns apart.
struct Board(Scoreboard, u64);

impl Board {
    fn new(segments: u64) -> Self {
        let mut board = Self(Scoreboard::new(3), 0);
        board.send(segments);
        board
    }

    fn send(&mut self, segments: u64) {
        for _ in 0..segments {
            self.1 += 1;
            self.0.send(Time::from_nanos(self.1), LENGTH);
        }
    }

    fn resend(&mut self) -> Option<u64> {
        self.1 += 1;
        let resent = self.0.resend(Time::from_nanos(self.1));
        resent.map(|(start, _)| start / u64::from(LENGTH))
    }

    /// In segments, after so many nanoseconds.
    fn acknowledge(&mut self, after: u64, next: u64, blocks: &[(u64, u64)]) -> Progress {
        self.1 += after;
        let length = u64::from(LENGTH);
        let mut acknowledgement =
            Acknowledgement { next: next * length, ..Acknowledgement::default() };
        for (block, (start, end)) in acknowledgement.blocks.iter_mut().zip(blocks) {
            *block = Block { start: start * length, end: end * length };
        }
        let now = Time::from_nanos(self.1);
        self.0.acknowledge(now, &acknowledgement, ROUND_TRIP)
    }

    fn in_flight(&self) -> u64 {
        self.0.in_flight() / u64::from(LENGTH)
    }
}

#[test]
fn three_later_ones_make_a_loss_and_two_do_not() {
    let mut board = Board::new(10);
    assert!(!board.acknowledge(ROUND_TRIP, 2, &[(3, 5)]).has_lost);
    assert_eq!(board.0.lost_len(), None);
    assert!(board.acknowledge(1, 2, &[(3, 6)]).has_lost);
    assert_eq!(board.in_flight(), 4);
    assert_eq!(board.resend(), Some(2));
    assert_eq!(board.resend(), None);
    assert_eq!(board.in_flight(), 5);
}

#[test]
fn bytes_count_once_however_often_they_are_reported() {
    let mut board = Board::new(10);
    let bytes = [
        board.acknowledge(ROUND_TRIP, 1, &[(4, 6)]).bytes,
        board.acknowledge(1, 1, &[(4, 6)]).bytes,
        board.acknowledge(1, 3, &[(7, 8), (4, 6)]).bytes,
        board.acknowledge(1, 10, &[]).bytes,
    ];
    assert_eq!(bytes, [3_000, 0, 3_000, 4_000]);
    assert!(board.0.is_empty() && board.in_flight() == 0);
}

#[test]
fn one_that_was_sent_again_and_lost_again_is_found() {
    let mut board = Board::new(6);
    board.acknowledge(ROUND_TRIP, 0, &[(1, 6)]);
    assert_eq!(board.resend(), Some(0));
    board.send(3);
    assert!(!board.acknowledge(ROUND_TRIP, 0, &[(1, 8)]).has_lost);
    assert!(board.acknowledge(1, 0, &[(1, 9)]).has_lost);
    assert_eq!(board.resend(), Some(0));
}

#[test]
fn segment_that_arrives_late_raises_the_tolerance() {
    let mut board = Board::new(3);
    board.acknowledge(ROUND_TRIP, 0, &[(1, 3)]);
    board.acknowledge(1, 3, &[]);
    assert_eq!(board.0.reordering, 3);
    // Segment 3 is taken for lost, is sent again, and arrives before that can have come back.
    board.send(6);
    board.acknowledge(ROUND_TRIP, 3, &[(4, 9)]);
    assert_eq!(board.resend(), Some(3));
    board.acknowledge(ROUND_TRIP / 2, 9, &[]);
    assert_eq!(board.0.reordering, 6);
    board.send(6);
    assert!(!board.acknowledge(ROUND_TRIP, 9, &[(10, 15)]).has_lost);
}

#[test]
fn a_repaired_loss_does_not_raise_the_tolerance() {
    let mut board = Board::new(20);
    board.acknowledge(ROUND_TRIP, 0, &[(1, 20)]);
    assert_eq!(board.resend(), Some(0));
    board.acknowledge(ROUND_TRIP, 20, &[]);
    assert_eq!(board.0.reordering, 3);
}

#[test]
fn a_timeout_loses_all_but_what_has_arrived() {
    let mut board = Board::new(5);
    board.acknowledge(ROUND_TRIP, 1, &[(3, 4)]);
    board.0.lose_all();
    assert_eq!(board.in_flight(), 0);
    let resent: Vec<u64> = std::iter::from_fn(|| board.resend()).collect();
    assert_eq!(resent, [1, 2, 4]);
}

#[test]
fn a_timeout_begins_with_the_oldest() {
    let mut board = Board::new(8);
    board.acknowledge(ROUND_TRIP, 1, &[(3, 8)]);
    assert_eq!(board.resend(), Some(1));
    board.0.lose_all();
    let resent: Vec<u64> = std::iter::from_fn(|| board.resend()).collect();
    assert_eq!(resent, [1, 2]);
}

#[test]
fn segment_that_arrives_before_it_is_sent_again_is_not_sent_again() {
    let mut board = Board::new(5);
    board.0.lose_all();
    board.acknowledge(ROUND_TRIP, 2, &[(3, 4)]);
    assert_eq!(board.in_flight(), 0);
    let resent: Vec<u64> = std::iter::from_fn(|| board.resend()).collect();
    assert_eq!(resent, [2, 4]);
}

#[test]
fn round_trips_are_measured_on_what_was_sent_once() {
    let mut board = Board::new(5);
    let progress = board.acknowledge(ROUND_TRIP, 0, &[(1, 5)]);
    assert_eq!(progress.round_trip, Some(ROUND_TRIP));
    board.resend();
    assert_eq!(board.acknowledge(ROUND_TRIP, 5, &[]).round_trip, None);
}

#[test]
fn bytes_that_were_never_sent_are_not_acknowledged() {
    let mut board = Board::new(5);
    let progress = board.acknowledge(ROUND_TRIP, 100, &[(200, 300)]);
    assert_eq!(progress.bytes, 5_000);
    assert_eq!(board.0.next(), 5_000);
}
