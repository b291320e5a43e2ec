// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The stream of a node, and what follows from it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use smt_attestor::Attested;

/// How many FREEZEs of a sender are remembered. An OPEN may refer to one long after its sender has
/// frozen others: a node that forgets it before others do would take a correct head for faulty.
const FREEZES: usize = 2 * FROZEN_MAX as usize;
/// How many configurations a sender may freeze without having entered one. The service makes one
/// at a time, and a node freezes what is made.
const FROZEN_MAX: u32 = 1024;
/// How many statements may wait for an earlier one.
const AHEAD: u64 = 4096;
/// Bytes of the statements that may wait for an earlier one, or for what they refer to.
const AHEAD_BYTES: usize = 8 << 20;

/// Where a sender stands: a function of its stream alone, thus the same for all who have taken as
/// much.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Track {
    /// The counter that was taken last.
    pub(crate) counter: u64,
    /// The configuration that it has entered, and the place up to which it has proved its log.
    pub(crate) at: (u64, u64),
    /// The configuration below which it says nothing more.
    pub(crate) promised: u64,
    /// How many configurations it has frozen since it has entered one.
    pub(crate) frozen: u32,
    /// Its last FREEZEs, by configuration.
    pub(crate) freezes: BTreeMap<u64, Frozen>,
    /// It has said what no correct node says; nothing more of it is taken.
    pub(crate) is_faulty: bool,
}

/// A FREEZE, and where its sender stood.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Frozen {
    pub(crate) counter: u64,
    pub(crate) mac: [u8; 32],
    pub(crate) at: (u64, u64),
}

impl Track {
    /// Whether it may freeze a configuration: a later one than before, and not too many in vain.
    pub(crate) fn may_freeze(&self, configuration: u64) -> bool {
        configuration > self.promised && self.frozen < FROZEN_MAX
    }

    /// Remembers a FREEZE.
    pub(crate) fn freeze(&mut self, configuration: u64, counter: u64, mac: [u8; 32]) {
        self.promised = configuration;
        self.frozen += 1;
        self.freezes.insert(configuration, Frozen { counter, mac, at: self.at });
        while self.freezes.len() > FREEZES {
            self.freezes.pop_first();
        }
    }
}

/// The statements of a node.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Stream {
    pub(crate) track: Track,
    /// Authentic statements: those that were taken, for others, and some that wait.
    statements: BTreeMap<u64, Attested>,
}

impl Stream {
    /// Keeps an authentic statement, if there is room. Those that are further from their turn give
    /// way to it: they are asked for again.
    pub(crate) fn put(&mut self, counter: u64, statement: Attested) {
        if !self.has_room(counter, statement.body.len()) {
            return;
        }
        self.statements.entry(counter).or_insert(statement);
        let mut waiting = self.waiting(u64::MAX);
        while waiting > AHEAD_BYTES
            && let Some(last) = self.statements.last_entry()
            && *last.key() > self.track.counter + 1
        {
            waiting -= last.remove().body.len();
        }
    }

    /// Whether a statement of this counter and length may still be taken, is not here, and would be
    /// kept.
    pub(crate) fn lacks(&self, counter: u64, length: usize) -> bool {
        !self.track.is_faulty
            && !self.statements.contains_key(&counter)
            && self.has_room(counter, length)
    }

    /// Whether a statement may wait here. The next one may at any time; another one beside those
    /// that come before it. One that had to give way thus does not come back before another one was
    /// taken.
    fn has_room(&self, counter: u64, length: usize) -> bool {
        match counter.checked_sub(self.track.counter) {
            None | Some(0) => false,
            Some(1) => true,
            Some(ahead) => {
                ahead <= AHEAD && self.waiting(counter).saturating_add(length) <= AHEAD_BYTES
            }
        }
    }

    /// Bytes of the statements that wait, up to this counter, which is above those that were taken.
    fn waiting(&self, counter: u64) -> usize {
        let first = self.track.counter.saturating_add(1);
        self.statements.range(first..=counter).map(|it| it.1.body.len()).sum()
    }

    /// The statement after those that were taken.
    pub(crate) fn next(&self) -> Option<(u64, Attested)> {
        let counter = self.track.counter.checked_add(1)?;
        self.statements.get(&counter).map(|it| (counter, it.clone()))
    }

    /// How many statements wait behind those that were taken, without a gap.
    #[cfg(feature = "sim")]
    pub(crate) fn waits_in_a_row(&self) -> u64 {
        let next = self.track.counter.saturating_add(1);
        (next..).zip(self.statements.range(next..)).take_while(|it| it.0 == *it.1.0).count() as u64
    }

    /// A statement was taken; keeps `retained` of them.
    pub(crate) fn took(&mut self, counter: u64, retained: u64) {
        self.track.counter = counter;
        if let Some(last) = counter.checked_sub(retained) {
            self.statements.remove(&last);
        }
    }

    /// Up to `most` of the statements after `counter` that are here. A receiver for whom the first
    /// is gone can take none of them.
    pub(crate) fn after(&self, counter: u64, most: usize) -> impl Iterator<Item = &Attested> {
        self.statements.range(counter.saturating_add(1)..).take(most).map(|it| it.1)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    // A head opens by a FREEZE that it has taken. A node that had forgotten it would take the head
    // for a liar.
    #[test]
    fn a_freeze_is_remembered_however_many_others_its_sender_has_said_since() {
        let mut track = Track::default();
        for round in 0..2_u64 {
            let first = 10_000 * (round + 1);
            let mut last = first;
            while track.may_freeze(last) {
                track.freeze(last, last, [7; 32]);
                last += 1;
            }
            assert_eq!(last - first, u64::from(FROZEN_MAX));
            // It enters one, and may freeze others again.
            track.frozen = 0;
        }
        assert!(track.freezes.contains_key(&10_000));
    }

    fn said(bytes: usize) -> Attested {
        Attested { attestation: [[0; 32]; 2], body: vec![0; bytes] }
    }

    #[test]
    fn statements_that_wait_for_an_earlier_one_have_bounded_bytes() {
        let mut stream = Stream::default();
        for counter in 2..=4096 {
            if stream.lacks(counter, 64 << 10) {
                stream.put(counter, said(64 << 10));
            }
        }
        let waiting = |it: &Stream| it.statements.values().map(|it| it.body.len()).sum::<usize>();
        assert_eq!(waiting(&stream), AHEAD_BYTES);
        let last = *stream.statements.keys().last().unwrap();
        assert!(!stream.lacks(last + 1, 1), "it is asked for again when others were taken");
        // The next one has room at any time, and ends the wait.
        assert!(stream.lacks(1, AHEAD_BYTES));
        stream.put(1, said(64 << 10));
        assert_eq!(stream.next().map(|it| it.0), Some(1));
        assert!(waiting(&stream) <= AHEAD_BYTES && !stream.statements.contains_key(&last));
        stream.took(1, 1 << 20);
        assert!(stream.lacks(last, 64 << 10), "there is room again");
    }

    // Statements that arrive in another order would otherwise keep each other out for ever, and be
    // in the log each time.
    #[test]
    fn the_nearest_of_the_statements_that_wait_stay_and_no_other_comes_back_before_one_is_taken() {
        let mut stream = Stream::default();
        stream.put(30, said(AHEAD_BYTES - 8));
        stream.put(20, said(16));
        assert!(stream.statements.keys().eq([&20]));
        assert!(!stream.lacks(30, AHEAD_BYTES - 8) && stream.lacks(40, 8));
        stream.put(40, said(8));
        assert!(stream.statements.keys().eq([&20, &40]));
    }

    #[test]
    fn no_configuration_is_frozen_after_a_later_one() {
        let mut track = Track::default();
        track.freeze(5, 1, [7; 32]);
        assert!(!track.may_freeze(5) && !track.may_freeze(4) && track.may_freeze(6));
    }
}
