// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The stream of a device in one epoch, and what follows from it.

use std::collections::BTreeMap;

use crate::message::Attested;

/// How many VIEW-CHANGEs of a sender are remembered. A NEW-VIEW may refer to one long after its
/// sender has wanted others: a replica that forgets it before others do would take a correct leader
/// for faulty.
const CHANGES: usize = 2 * WANTED_MAX as usize;
/// How many views a sender may want without having entered one. Timeouts double: a correct replica
/// does not come that far.
pub(crate) const WANTED_MAX: u32 = 1024;
/// How many statements may wait for an earlier one.
const AHEAD: u64 = 1024;

/// Where a sender stands after the statements that were taken: a function of its stream alone, thus
/// the same for all who have taken as much.
#[derive(Clone, Debug, Default)]
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
#[derive(Clone, Debug, Eq, PartialEq)]
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
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    pub(crate) track: Track,
    /// Authentic statements: those that were taken, for others, and some that wait.
    statements: BTreeMap<u64, Attested>,
}

impl Stream {
    pub(crate) fn new(track: Track) -> Self {
        Self { track, statements: BTreeMap::new() }
    }

    /// Keeps an authentic statement.
    pub(crate) fn put(&mut self, counter: u64, statement: Attested) {
        let taken = self.track.counter;
        if counter > taken && counter - taken <= AHEAD {
            self.statements.entry(counter).or_insert(statement);
        }
    }

    /// The statement after those that were taken.
    pub(crate) fn next(&self) -> Option<(u64, Attested)> {
        let counter = self.track.counter.checked_add(1)?;
        self.statements.get(&counter).map(|it| (counter, it.clone()))
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
