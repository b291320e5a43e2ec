// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which sessions keep the tables of their ciphers.
//!
//! Tables take 1.3 KB a session, 2.6 with those for control packets, and come from its keys in half a microsecond: with
//! thousands of sessions in use they are as quickly made as fetched from memory. So a bounded number of sessions keeps
//! them, those that were first, until they rest or end. Who comes beside them is a *guest*: it gives them up when a few
//! other guests have come, so that several packets in a row make them once, and while they are still in the cache.
//!
//! Not here: sessions that nobody uses (`session::rest`).

use std::collections::VecDeque;

use smt_wire::SessionIndex;

/// How warm an endpoint's sessions are.
#[derive(Debug, Default)]
pub(crate) struct Warm {
    /// Sessions that keep their tables.
    keepers: usize,
    /// Sessions that are to give theirs up, in this order.
    guests: VecDeque<SessionIndex>,
}

/// What a session does with the tables of its ciphers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Warmth {
    /// It has none.
    #[default]
    Cold,
    /// It gives them up when others come.
    Guest,
    /// It keeps them.
    Keeper,
}

impl Warm {
    /// A session has made tables. Up to `most` keep them.
    pub(crate) fn enter(&mut self, session: SessionIndex, most: usize) -> Warmth {
        if self.keepers < most {
            self.keepers += 1;
            return Warmth::Keeper;
        }
        self.guests.push_back(session);
        Warmth::Guest
    }

    /// A session rests or has ended.
    pub(crate) fn leave(&mut self, warmth: Warmth) {
        self.keepers -= usize::from(warmth == Warmth::Keeper);
    }

    /// A guest that is to give its tables up, if there are more than a few, or than `most` if that is less. It may have
    /// rested or ended meanwhile.
    pub(crate) fn surplus_guest(&mut self, most: usize) -> Option<SessionIndex> {
        match self.guests.len() > most.min(GUESTS_MAX) {
            true => self.guests.pop_front(),
            false => None,
        }
    }
}

/// Guests that have tables: few, so that the memory that one gives up is at hand for the next one.
const GUESTS_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn entered<const N: usize>(warm: &mut Warm, sessions: [u64; N]) -> [Warmth; N] {
        sessions.map(|index| warm.enter(SessionIndex(index), 2))
    }

    #[test]
    fn who_comes_when_others_keep_their_tables_is_a_guest() {
        let (guest, keeper) = (Warmth::Guest, Warmth::Keeper);
        let mut warm = Warm::default();
        assert_eq!(entered(&mut warm, [7, 5, 9]), [keeper, keeper, guest]);
        warm.leave(guest);
        assert_eq!(entered(&mut warm, [9]), [guest]);
        warm.leave(keeper);
        assert_eq!(entered(&mut warm, [3, 4]), [keeper, guest]);
    }

    #[test]
    fn of_more_than_a_few_guests_the_first_one_gives_its_tables_up() {
        let mut warm = Warm::default();
        entered(&mut warm, [1, 2, 3, 4, 5]);
        assert_eq!(warm.surplus_guest(1_000), None);
        entered(&mut warm, [6, 7]);
        let surplus = |warm: &mut Warm, most| {
            let next = || warm.surplus_guest(most);
            let surplus: Vec<_> = std::iter::from_fn(next).map(|index| index.0).collect();
            surplus
        };
        assert_eq!(surplus(&mut warm, 1_000), [3, 4]);
        assert_eq!(surplus(&mut warm, 1), [5, 6]);
        assert_eq!(surplus(&mut warm, 0), [7]);
    }
}
