// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which faults have struck in a simulation, and how often.

use std::collections::BTreeSet;

use super::FaultKind;
use crate::net::adversary::Move;

/// How often each kind has struck, and which moves an attacker has made.
#[derive(Clone, Debug, Default)]
pub struct Strikes {
    faults: [u64; FaultKind::ALL.len()],
    moves: BTreeSet<Move>,
}

impl Strikes {
    /// Notes a strike.
    pub fn note(&mut self, kind: FaultKind) {
        self.faults[kind as usize] += 1;
    }

    /// Notes a move of an attacker that has changed something.
    pub fn note_move(&mut self, made: Move) {
        self.note(FaultKind::Adversary);
        self.moves.insert(made);
    }

    /// How often this kind has struck.
    pub fn of(&self, kind: FaultKind) -> u64 {
        self.faults[kind as usize]
    }

    /// Whether an attacker has made this move.
    pub fn has(&self, made: Move) -> bool {
        self.moves.contains(&made)
    }
}
