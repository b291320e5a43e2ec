// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Discovery of the datagram size (SPEC §9.8).
//!
//! Begins at the floor; every larger size of interest is probed a few times with authenticated
//! packets, and only their answers raise the size. Unanswered questions about large datagrams lower
//! it (black hole).

use crate::limits::{
    BLACK_HOLE_QUESTIONS, DATAGRAM_FLOOR, PROBE_AGAIN, PROBE_INTERVAL, PROBE_SIZES, PROBE_TRIES,
    RESEND_INTERVAL,
};
use crate::time::Time;
use alloc::vec::Vec;

/// The datagram size of one session, and the search for a larger one.
#[derive(Debug)]
pub(crate) struct Pmtud {
    size: usize,
    limit: usize,
    tries: u32,
    due: Option<Time>,
    unanswered: u32,
    stalled_at: Option<Time>,
}

impl Pmtud {
    /// A search that begins at the floor. `limit` is the lesser of what this host's carrier and the
    /// peer can do.
    pub(crate) fn new(now: Time, limit: usize) -> Self {
        Self {
            size: DATAGRAM_FLOOR,
            limit,
            tries: 0,
            due: (limit > DATAGRAM_FLOOR).then_some(now),
            unanswered: 0,
            stalled_at: None,
        }
    }

    /// UDP payload bytes of a datagram.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn due(&self) -> Option<Time> {
        self.due
    }

    /// The sizes to probe now.
    pub(crate) fn probe(&mut self, now: Time) -> Vec<usize> {
        if self.due.is_none_or(|due| now < due) {
            return Vec::new();
        }
        self.tries += 1;
        self.due = (self.tries < PROBE_TRIES).then_some(now + PROBE_INTERVAL);
        let mut sizes: Vec<usize> = self.candidates().filter(|size| *size > self.size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        if sizes.is_empty() {
            self.due = None;
        }
        sizes
    }

    /// The sizes that are worth a probe. A carrier's own limit is one: a tunnel's, or a peer's
    /// receive buffer.
    fn candidates(&self) -> impl Iterator<Item = usize> {
        let limit = self.limit;
        let sizes = PROBE_SIZES.into_iter().chain([limit]);
        sizes.filter(move |size| *size <= limit)
    }

    /// Takes the peer's word that a probe of this size arrived; it cannot be true of a size that
    /// was not probed.
    pub(crate) fn answered(&mut self, size: usize) {
        if self.tries > 0 && self.candidates().any(|probed| probed == size) {
            self.size = self.size.max(size);
            self.unanswered = 0;
        }
    }

    /// The peer has answered a question that needed large datagrams.
    pub(crate) fn progressed(&mut self) {
        self.unanswered = 0;
    }

    /// Counts a question about bytes that left in large datagrams which brought no progress.
    pub(crate) fn stalled(&mut self, now: Time) {
        // Many messages behind one queue may each be asked for; together they are one sign.
        let is_same = self.stalled_at.is_some_and(|at| now.since(at) < RESEND_INTERVAL);
        if self.size == DATAGRAM_FLOOR || is_same {
            return;
        }
        self.stalled_at = Some(now);
        self.unanswered += 1;
        if self.unanswered >= BLACK_HOLE_QUESTIONS {
            self.unanswered = 0;
            self.size = DATAGRAM_FLOOR;
            self.tries = 0;
            self.due = Some(now + PROBE_AGAIN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // SMT [9.8-1], [9.8-3]
    #[test]
    fn only_an_answer_raises_the_size() {
        let mut pmtud = Pmtud::new(Time::default(), 9_000);
        assert_eq!(pmtud.probe(Time::default()), [1_452, 1_472, 8_952, 8_972, 9_000]);
        assert_eq!(pmtud.size(), DATAGRAM_FLOOR);
        pmtud.answered(1_472);
        assert_eq!(pmtud.size(), 1_472);
        assert_eq!(pmtud.probe(Time::default() + PROBE_INTERVAL), [8_952, 8_972, 9_000]);
        for never_probed in [65_507, 8_960, 1_473] {
            pmtud.answered(never_probed);
            assert_eq!(pmtud.size(), 1_472, "{never_probed}");
        }
    }

    #[test]
    fn it_ends_after_a_few_tries() {
        let mut pmtud = Pmtud::new(Time::default(), 65_507);
        let mut rounds = 0;
        while let Some(due) = pmtud.due() {
            pmtud.probe(due);
            rounds += 1;
        }
        assert_eq!(rounds, PROBE_TRIES);
    }

    // SMT [9.8-8]
    #[test]
    fn progress_ends_the_row_of_questions() {
        let mut pmtud = Pmtud::new(Time::default(), 65_507);
        pmtud.probe(Time::default());
        pmtud.answered(65_507);
        let mut now = Time::default();
        for _ in 0..10 {
            for _ in 1..BLACK_HOLE_QUESTIONS {
                pmtud.stalled(now);
                now = now + RESEND_INTERVAL;
            }
            pmtud.progressed();
        }
        assert_eq!(pmtud.size(), 65_507);
    }

    // SMT [9.8-7]
    #[test]
    fn a_black_hole_brings_the_floor_back() {
        let mut pmtud = Pmtud::new(Time::default(), 65_507);
        pmtud.probe(Time::default());
        pmtud.answered(65_507);
        let mut now = Time::default();
        for _ in 1..BLACK_HOLE_QUESTIONS {
            // Ten messages stall at once.
            (0..10).for_each(|_| pmtud.stalled(now));
            assert_eq!(pmtud.size(), 65_507);
            now = now + RESEND_INTERVAL;
        }
        pmtud.stalled(now);
        assert_eq!(pmtud.size(), DATAGRAM_FLOOR);
        assert_eq!(pmtud.due(), Some(now + PROBE_AGAIN));
    }
}
