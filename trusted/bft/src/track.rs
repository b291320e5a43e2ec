// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The stream of a device in one epoch, and what follows from it.

use std::collections::BTreeMap;

use smt_attestor::Attested;

use serde::{Deserialize, Serialize};

/// How many VIEW-CHANGEs of a sender are remembered. A NEW-VIEW may refer to one long after its
/// sender has wanted others: a replica that forgets it before others do would take a correct leader
/// for faulty.
const CHANGES: usize = 2 * WANTED_MAX as usize;
/// How many views a sender may want without having entered one. Timeouts double: a correct replica
/// does not come that far.
pub(crate) const WANTED_MAX: u32 = 1024;
/// How many statements may wait for an earlier one.
const AHEAD: u64 = 1024;
/// Bytes of the statements that may wait for an earlier one, or for what they refer to.
const AHEAD_BYTES: usize = 8 << 20;

/// Where a sender stands after the statements that were taken: a function of its stream alone, thus
/// the same for all who have taken as much.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Track {
    /// The counter that was taken last.
    pub(crate) counter: u64,
    /// The view that it has entered, and the length of that view's log that it has committed to.
    pub(crate) at: Option<(u64, u64)>,
    /// The view below which it says nothing more.
    pub(crate) promised: u64,
    /// Its votes for newer epochs of others, since it has entered its view.
    pub(crate) ballots: BTreeMap<u32, u64>,
    /// How many views it has wanted since it has entered one.
    pub(crate) wanted: u32,
    /// Its last VIEW-CHANGEs, by view.
    pub(crate) changes: BTreeMap<u64, Change>,
    /// Its last CHECKPOINT.
    pub(crate) checkpoint: u64,
    /// It has said what no correct replica says; nothing more of it is taken.
    pub(crate) is_faulty: bool,
    /// The nonce of its start, if it began with HELLO.
    pub(crate) nonce: Option<[u8; 16]>,
}

/// A VIEW-CHANGE, and where its sender stood.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Change {
    pub(crate) counter: u64,
    pub(crate) mac: [u8; 32],
    pub(crate) at: Option<(u64, u64)>,
    pub(crate) ballots: BTreeMap<u32, u64>,
}

impl Track {
    /// A member of the group as it was formed.
    pub(crate) fn first() -> Self {
        Self { at: Some((0, 0)), ..Self::default() }
    }

    /// Remembers a VIEW-CHANGE.
    pub(crate) fn change(&mut self, view: u64, counter: u64, mac: [u8; 32]) {
        self.wanted += 1;
        let (at, ballots) = (self.at, self.ballots.clone());
        self.changes.insert(view, Change { counter, mac, at, ballots });
        while self.changes.len() > CHANGES {
            self.changes.pop_first();
        }
    }
}

/// The statements of a device in one epoch.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Stream {
    pub(crate) track: Track,
    /// Authentic statements: those that were taken, for others, and some that wait.
    statements: BTreeMap<u64, Attested>,
}

impl Stream {
    pub(crate) fn new(track: Track) -> Self {
        Self { track, statements: BTreeMap::new() }
    }

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
    #[cfg(feature = "broken")]
    pub(crate) fn waits_in_a_row(&self) -> u64 {
        let next = self.track.counter.saturating_add(1);
        (next..).zip(self.statements.range(next..)).take_while(|it| it.0 == *it.1.0).count() as u64
    }

    /// The next statement that is there, whatever is missing before it.
    #[cfg(feature = "broken")]
    pub(crate) fn next_with_gap(&self) -> Option<(u64, Attested)> {
        let after = self.track.counter.checked_add(1)?;
        self.statements.range(after..).next().map(|(counter, it)| (*counter, it.clone()))
    }

    /// A statement was taken; keeps `retained` of them.
    pub(crate) fn took(&mut self, counter: u64, retained: u64) {
        self.track.counter = counter;
        if let Some(last) = counter.checked_sub(retained) {
            self.statements.remove(&last);
        }
    }

    /// Up to `most` statements after `counter`; none if the first of them is gone.
    pub(crate) fn after(&self, counter: u64, most: usize) -> impl Iterator<Item = &Attested> {
        self.statements.range(counter.saturating_add(1)..).take(most).map(|it| it.1)
    }

    /// Stands where a view's opening says, if that is later.
    pub(crate) fn jump(&mut self, track: Track) {
        if self.track.counter < track.counter && !self.track.is_faulty {
            self.statements = self.statements.split_off(&(track.counter + 1));
            self.track = track;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn said(bytes: usize) -> Attested {
        Attested { attestation: [[0; 32]; 2], body: vec![0; bytes] }
    }

    #[test]
    fn statements_that_wait_for_an_earlier_one_have_bounded_bytes() {
        let mut stream = Stream::default();
        for counter in 2..=1024 {
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
}
