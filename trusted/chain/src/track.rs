// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The stream of a node, and what follows from it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use smt_attestor::Attested;
use smt_replica::Followed;

/// How many FREEZEs of a sender are remembered. An OPEN may refer to one long after its sender has
/// frozen others: a node that forgets it before others do would take a correct head for faulty.
const FREEZES: usize = 2 * FROZEN_MAX as usize;
/// How many configurations a sender may freeze without having entered one. The service makes one
/// at a time, and a node freezes what is made.
const FROZEN_MAX: u32 = 1024;

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
    statements: Followed,
}

impl Stream {
    /// Keeps an authentic statement, if there is room.
    pub(crate) fn put(&mut self, counter: u64, statement: Attested) {
        self.statements.put(self.track.counter, counter, statement);
    }

    /// Whether a statement of this counter and length may still be taken, is not here, and would be
    /// kept.
    pub(crate) fn lacks(&self, counter: u64, length: usize) -> bool {
        !self.track.is_faulty
            && !self.statements.has(counter)
            && self.statements.has_room(self.track.counter, counter, length)
    }

    /// The statement after those that were taken.
    pub(crate) fn next(&self) -> Option<(u64, Attested)> {
        self.statements.next(self.track.counter)
    }

    /// How many statements wait behind those that were taken, without a gap.
    #[cfg(feature = "sim")]
    pub(crate) fn waits_in_a_row(&self) -> u64 {
        self.statements.waits_in_a_row(self.track.counter)
    }

    /// A statement was taken; keeps `retained` of them.
    pub(crate) fn took(&mut self, counter: u64, retained: u64) {
        self.track.counter = counter;
        self.statements.forget(counter.saturating_sub(retained));
    }

    /// Up to `most` of the statements after `counter` that are here. A receiver for whom the first
    /// is gone can take none of them.
    pub(crate) fn after(&self, counter: u64, most: usize) -> impl Iterator<Item = &Attested> {
        self.statements.after(counter, most)
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn no_configuration_is_frozen_after_a_later_one() {
        let mut track = Track::default();
        track.freeze(5, 1, [7; 32]);
        assert!(!track.may_freeze(5) && !track.may_freeze(4) && track.may_freeze(6));
    }
}
