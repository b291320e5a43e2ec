// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How much a connection may have under way: DCTCP (RFC 8257) on top of RFC 5681.
//!
//! - Below the threshold the window grows by what arrives (slow start), above it by a segment per
//!   window. It grows only if it was what held the sender back, and not between a cut and the first
//!   acknowledgement of what was sent after it.
//! - The share of marked bytes is averaged per window: alpha. A mark cuts the window by alpha / 2,
//!   a loss by half: each at most once per window, and marks not after a loss. A loss halves what a
//!   mark has cut already, as Linux has it (RFC 8257 §3.5 wants losses treated as by any TCP).
//! - A timeout leaves one segment, and slow start up to half.
//!
//! Integers only, so that a run repeats on any machine.

use super::limits::{SEGMENT_MAX, WINDOW_INITIAL, WINDOW_MAX, WINDOW_MIN};

/// A congestion window, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    size: u64,
    /// Slow start ends here.
    threshold: u64,
    /// Bytes acknowledged since the last growth above the threshold.
    grown: u64,
    /// Average share of marked bytes, of [`ALPHA_ONE`].
    alpha: u64,
    /// Bytes that arrived in the window that is being observed, and those of them that were marked.
    arrived: u64,
    marked: u64,
    /// The observed window ends when this byte is acknowledged.
    observed_until: u64,
    /// The end of the bytes that were under way at the last cut.
    cut_until: u64,
    /// The same of the last cut for a loss.
    halved_until: u64,
    /// After a cut, until something later is acknowledged.
    is_held: bool,
}

/// The facts that a sender learns from an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// Bytes that it reports for the first time.
    pub(super) bytes: u64,
    pub(super) is_marked: bool,
    /// The window held something back when what has arrived was under way.
    pub(super) was_full: bool,
    /// All bytes before this one have arrived.
    pub(super) next: u64,
    /// All bytes before this one were sent.
    pub(super) sent: u64,
}

impl Window {
    pub(super) fn new() -> Self {
        Self {
            size: WINDOW_INITIAL,
            threshold: u64::MAX,
            grown: 0,
            // RFC 8257 §4.2: begin as cautiously as TCP.
            alpha: ALPHA_ONE,
            arrived: 0,
            marked: 0,
            observed_until: 0,
            cut_until: 0,
            halved_until: 0,
            is_held: false,
        }
    }

    pub(super) fn handle_arrival(&mut self, arrival: Arrival) {
        self.observe(&arrival);
        if arrival.next > self.cut_until {
            self.is_held = false;
        }
        if arrival.is_marked && arrival.next > self.cut_until {
            let cut = self.size * self.alpha / (2 * ALPHA_ONE);
            self.shrink(self.size - cut, arrival.sent);
        } else if arrival.was_full && !self.is_held {
            self.grow(arrival.bytes);
        }
    }

    /// Something is lost: `next` is the oldest byte that has not arrived, `sent` the first that was
    /// never sent.
    pub(super) fn handle_loss(&mut self, next: u64, sent: u64) {
        if next >= self.halved_until {
            self.shrink(self.size / 2, sent);
            self.halved_until = sent;
        }
    }

    /// Nothing has arrived for a while.
    pub(super) fn handle_timeout(&mut self, sent: u64) {
        // RFC 5681 §3.1: not when the same is lost again.
        if self.size > SEGMENT_MAX as u64 {
            self.threshold = (self.size / 2).max(WINDOW_MIN);
        }
        self.size = SEGMENT_MAX as u64;
        self.grown = 0;
        self.cut_until = sent;
        self.halved_until = sent;
        self.is_held = false;
    }

    /// Nothing was sent for a while: what the network bears is not known any more.
    pub(super) fn handle_rest(&mut self) {
        self.threshold = self.threshold.max(self.size / 4 * 3);
        self.size = self.size.min(WINDOW_INITIAL);
        self.grown = 0;
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    fn observe(&mut self, arrival: &Arrival) {
        self.arrived += arrival.bytes;
        self.marked += if arrival.is_marked { arrival.bytes } else { 0 };
        if arrival.next > self.observed_until && self.arrived > 0 {
            let share = self.marked * ALPHA_ONE / self.arrived;
            self.alpha = (self.alpha * (GAIN - 1) + share) / GAIN;
            (self.arrived, self.marked) = (0, 0);
            self.observed_until = arrival.sent;
        }
    }

    fn grow(&mut self, bytes: u64) {
        if self.size < self.threshold {
            // RFC 3465 §2.3: what an acknowledgement says all at once does not leave all at once.
            self.size += bytes.min(2 * SEGMENT_MAX as u64);
        } else {
            self.grown += bytes;
            if self.grown >= self.size {
                self.grown -= self.size;
                self.size += SEGMENT_MAX as u64;
            }
        }
        self.size = self.size.min(WINDOW_MAX);
    }

    fn shrink(&mut self, to: u64, sent: u64) {
        self.size = to.max(WINDOW_MIN);
        self.threshold = self.size;
        self.grown = 0;
        self.cut_until = sent;
        self.is_held = true;
    }
}

/// All bytes were marked.
const ALPHA_ONE: u64 = 1 << 16;
/// A new window counts for 1/16 (RFC 8257 §4.2).
const GAIN: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = SEGMENT_MAX as u64;

    /// A sender that always fills its window; time passes by windows.
    struct Flow {
        window: Window,
        next: u64,
    }

    impl Flow {
        fn new() -> Self {
            Self { window: Window::new(), next: 0 }
        }

        /// All segments under way arrive, the first `marked` of them marked.
        fn pass(&mut self, marked: u64) {
            let segments = self.window.size() / SEGMENT;
            for at in 0..segments {
                self.next += SEGMENT;
                let arrival = Arrival {
                    bytes: SEGMENT,
                    is_marked: at < marked,
                    was_full: true,
                    next: self.next,
                    sent: self.next + self.window.size() / SEGMENT * SEGMENT,
                };
                self.window.handle_arrival(arrival);
            }
        }

        fn segments(&self) -> u64 {
            self.window.size() / SEGMENT
        }
    }

    #[test]
    fn slow_start_doubles_and_avoidance_adds_one() {
        let mut flow = Flow::new();
        assert_eq!(flow.segments(), 10);
        flow.pass(0);
        assert_eq!(flow.segments(), 20);
        flow.window.threshold = 20 * SEGMENT;
        flow.pass(0);
        flow.pass(0);
        assert_eq!(flow.segments(), 22);
    }

    #[test]
    fn the_first_mark_halves_and_the_rest_of_its_window_do_nothing() {
        let mut flow = Flow::new();
        flow.pass(0);
        flow.pass(20);
        // Alpha was 1, then 15/16 after a window without marks, and is 1/16 of 20 marks nearer to 1
        // by the cut.
        assert!((10..=11).contains(&flow.segments()), "{}", flow.segments());
    }

    #[test]
    fn few_marks_cut_little() {
        let mut flow = Flow::new();
        let mut least = 100;
        for _ in 0..200 {
            (flow.window.size, flow.window.threshold) = (100 * SEGMENT, 100 * SEGMENT);
            flow.pass(4);
            least = flow.segments();
            if flow.window.alpha < ALPHA_ONE / 20 && least < 100 {
                break;
            }
        }
        // Alpha is nearly 4 %, so a cut takes 2 %.
        assert!((97..=98).contains(&least), "{:?}", flow.window);
    }

    #[test]
    fn alpha_follows_the_share_of_marks() {
        let mut flow = Flow::new();
        (0..200).for_each(|_| flow.pass(0));
        assert_eq!(flow.window.alpha, 0);
        (0..200).for_each(|_| flow.pass(u64::MAX));
        assert!(flow.window.alpha > ALPHA_ONE - 100, "{:?}", flow.window);
        assert_eq!(flow.window.size(), WINDOW_MIN);
    }

    #[test]
    fn losses_halve_once_per_window() {
        let mut flow = Flow::new();
        flow.pass(0);
        let sent = flow.next + 20 * SEGMENT;
        flow.window.handle_loss(flow.next, sent);
        flow.window.handle_loss(flow.next + SEGMENT, sent + SEGMENT);
        assert_eq!(flow.segments(), 10);
        flow.window.handle_loss(sent, sent + 10 * SEGMENT);
        assert_eq!(flow.segments(), 5);
    }

    #[test]
    fn a_loss_halves_what_a_mark_has_cut() {
        let mut flow = Flow::new();
        flow.window.alpha = 0;
        flow.pass(1);
        let size = flow.window.size();
        let sent = flow.next + size;
        flow.window.handle_loss(flow.next, sent);
        assert_eq!(flow.window.size(), size / 2);
        flow.window.handle_loss(flow.next, sent);
        assert_eq!(flow.window.size(), size / 2);
    }

    #[test]
    fn the_window_grows_again_when_what_followed_a_cut_has_arrived() {
        let mut flow = Flow::new();
        let sent = flow.next + 15 * SEGMENT;
        flow.window.handle_loss(flow.next, sent);
        (0..3).for_each(|_| flow.pass(0));
        assert_eq!((flow.next, flow.segments()), (sent, 5));
        flow.pass(0);
        assert_eq!(flow.segments(), 6);
    }

    #[test]
    fn a_timeout_leaves_one_segment_and_grows_again() {
        let mut flow = Flow::new();
        flow.window.handle_timeout(flow.next + 10 * SEGMENT);
        flow.window.handle_timeout(flow.next + 10 * SEGMENT);
        assert_eq!(flow.segments(), 1);
        flow.pass(0);
        flow.pass(0);
        assert_eq!(flow.segments(), 4);
        assert_eq!(flow.window.threshold, 5 * SEGMENT);
    }

    #[test]
    fn rest_takes_what_is_above_the_initial_window_and_nothing_else() {
        let mut flow = Flow::new();
        (0..3).for_each(|_| flow.pass(0));
        assert_eq!(flow.segments(), 80);
        flow.window.handle_rest();
        assert_eq!(flow.segments(), 10);
        flow.window.handle_loss(flow.next, flow.next);
        flow.window.handle_rest();
        assert_eq!(flow.segments(), 5);
    }

    #[test]
    fn a_window_that_held_nobody_back_does_not_grow() {
        let mut window = Window::new();
        window.handle_arrival(Arrival {
            bytes: SEGMENT,
            is_marked: false,
            was_full: false,
            next: SEGMENT,
            sent: SEGMENT,
        });
        assert_eq!(window.size(), WINDOW_INITIAL);
    }
}
