// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The statements of a stream that is followed, in the order of their counters.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use smt_attestor::Attested;

/// How many statements may wait for an earlier one.
pub const AHEAD_MAX: u64 = 1024;
/// Bytes of the statements that may wait for an earlier one, or for what they refer to.
const AHEAD_BYTES: usize = 8 << 20;

/// Authentic statements of a device: those that were taken, for others, and some that wait. Each
/// method is given the counter of the last one that was taken, which follows from the stream.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Followed(BTreeMap<u64, Attested>);

impl Followed {
    /// Keeps an authentic statement, if there is room. Those that are further from their turn give
    /// way to it: they are asked for again.
    pub fn put(&mut self, taken: u64, counter: u64, statement: Attested) {
        if !self.has_room(taken, counter, statement.body.len()) {
            return;
        }
        self.0.entry(counter).or_insert(statement);
        let mut waiting = self.waiting(taken, u64::MAX);
        while waiting > AHEAD_BYTES
            && let Some(last) = self.0.last_entry()
            && *last.key() > taken + 1
        {
            waiting -= last.remove().body.len();
        }
    }

    /// Keeps a statement of the own device, which nobody else has yet.
    pub fn put_own(&mut self, counter: u64, statement: Attested) {
        self.0.entry(counter).or_insert(statement);
    }

    /// Whether the statement of this counter is here.
    #[must_use]
    pub fn has(&self, counter: u64) -> bool {
        self.0.contains_key(&counter)
    }

    /// Whether a statement may wait here. The next one may at any time; another one beside those
    /// that come before it. One that had to give way thus does not come back before another one was
    /// taken.
    #[must_use]
    pub fn has_room(&self, taken: u64, counter: u64, length: usize) -> bool {
        match counter.checked_sub(taken) {
            None | Some(0) => false,
            Some(1) => true,
            Some(ahead) => {
                let waiting = || self.waiting(taken, counter);
                ahead <= AHEAD_MAX && waiting().saturating_add(length) <= AHEAD_BYTES
            }
        }
    }

    /// Bytes of the statements that wait, up to this counter, which is above those that were taken.
    fn waiting(&self, taken: u64, counter: u64) -> usize {
        let first = taken.saturating_add(1);
        self.0.range(first..=counter).map(|it| it.1.body.len()).sum()
    }

    /// The statement after those that were taken.
    #[must_use]
    pub fn next(&self, taken: u64) -> Option<(u64, Attested)> {
        let counter = taken.checked_add(1)?;
        self.0.get(&counter).map(|it| (counter, it.clone()))
    }

    /// How many statements wait behind those that were taken, without a gap.
    #[must_use]
    pub fn waits_in_a_row(&self, taken: u64) -> u64 {
        let next = taken.saturating_add(1);
        (next..).zip(self.0.range(next..)).take_while(|it| it.0 == *it.1.0).count() as u64
    }

    /// Up to `most` of the statements after `counter` that are here. A receiver for whom the first
    /// is gone can take none of them.
    pub fn after(&self, counter: u64, most: usize) -> impl Iterator<Item = &Attested> {
        self.0.range(counter.saturating_add(1)..).take(most).map(|it| it.1)
    }

    /// Forgets statements up to a counter.
    pub fn forget(&mut self, last: u64) {
        while self.0.first_key_value().is_some_and(|it| *it.0 <= last) {
            self.0.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(bytes: usize) -> Attested {
        Attested { attestation: [[0; 32]; 2], body: vec![0; bytes] }
    }

    fn bytes(it: &Followed) -> usize {
        it.0.values().map(|it| it.body.len()).sum()
    }

    fn counters(it: &Followed) -> Vec<u64> {
        it.0.keys().copied().collect()
    }

    #[test]
    fn statements_that_wait_for_an_earlier_one_have_bounded_bytes() {
        let mut stream = Followed::default();
        for counter in 2..=1024 {
            if stream.has_room(0, counter, 64 << 10) {
                stream.put(0, counter, said(64 << 10));
            }
        }
        assert_eq!(bytes(&stream), AHEAD_BYTES);
        let last = counters(&stream).last().copied().unwrap_or(0);
        assert!(!stream.has_room(0, last + 1, 1), "it is asked for again when others were taken");
        // The next one has room at any time, and ends the wait.
        assert!(stream.has_room(0, 1, AHEAD_BYTES));
        stream.put(0, 1, said(64 << 10));
        assert_eq!(stream.next(0).map(|it| it.0), Some(1));
        assert!(bytes(&stream) <= AHEAD_BYTES && !stream.has(last));
        assert!(stream.has_room(1, last, 64 << 10), "there is room again");
    }

    // Statements that arrive in another order would otherwise keep each other out for ever, and be
    // in the log each time.
    #[test]
    fn the_nearest_of_the_statements_that_wait_stay_and_no_other_comes_back_before_one_is_taken() {
        let mut stream = Followed::default();
        stream.put(0, 30, said(AHEAD_BYTES - 8));
        stream.put(0, 20, said(16));
        assert_eq!(counters(&stream), [20]);
        assert!(!stream.has_room(0, 30, AHEAD_BYTES - 8) && stream.has_room(0, 40, 8));
        stream.put(0, 40, said(8));
        assert_eq!(counters(&stream), [20, 40]);
    }

    #[test]
    fn no_statement_waits_that_is_further_than_the_most_from_its_turn() {
        let mut stream = Followed::default();
        for (counter, waits) in [(AHEAD_MAX + 7, true), (AHEAD_MAX + 8, false)] {
            stream.put(7, counter, said(8));
            assert_eq!(stream.has(counter), waits, "{counter}");
        }
    }

    #[test]
    fn statements_that_are_forgotten_are_those_up_to_a_counter() {
        let mut stream = Followed::default();
        (1..=5).for_each(|it| stream.put(0, it, said(8)));
        stream.forget(3);
        assert_eq!(counters(&stream), [4, 5]);
        assert_eq!(stream.after(0, 9).count(), 2);
        assert_eq!((stream.waits_in_a_row(3), stream.waits_in_a_row(2)), (2, 0));
    }
}
