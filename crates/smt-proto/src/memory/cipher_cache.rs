// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The choice of sessions that keep the tables of their ciphers.
//!
//! Tables take 1.3 KB a session, 2.6 with those for control packets, and come from its keys in half
//! a microsecond: with thousands of sessions in use they are as quickly made as fetched from
//! memory. A bounded number of sessions therefore keeps them, those that were first, until they
//! hibernate or end. Any other session in use is *transient*: it gives its tables up when a few
//! other transient sessions have come. Several packets in a row make the tables once, while they
//! are still in the processor's cache.
//!
//! Not here: sessions that are not in use (`session::hibernate`).

use alloc::collections::VecDeque;

use smt_wire::SessionIndex;

/// The sessions of an endpoint that have tables.
#[derive(Debug, Default)]
pub(crate) struct CipherCache {
    /// Sessions that keep their tables.
    residents: usize,
    /// Transient sessions, which are to give their tables up in this order.
    transients: VecDeque<SessionIndex>,
}

/// How a session holds the tables of its ciphers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CipherSlot {
    /// The session has no tables.
    #[default]
    Empty,
    /// The session gives its tables up when others come.
    Transient,
    /// The session keeps its tables.
    Resident,
}

impl CipherCache {
    /// Takes a session that has made tables. Up to `most` sessions keep them.
    pub(crate) fn enter(&mut self, session: SessionIndex, most: usize) -> CipherSlot {
        if self.residents < most {
            self.residents += 1;
            return CipherSlot::Resident;
        }
        self.transients.push_back(session);
        CipherSlot::Transient
    }

    /// Takes out a session that hibernates or has ended.
    pub(crate) fn leave(&mut self, cipher_slot: CipherSlot) {
        self.residents -= usize::from(cipher_slot == CipherSlot::Resident);
    }

    /// A transient session that is to give its tables up, if there are more than a few, or than
    /// `most` if that is less. It may have hibernated or ended meanwhile.
    pub(crate) fn surplus_transient(&mut self, most: usize) -> Option<SessionIndex> {
        match self.transients.len() > most.min(TRANSIENTS_MAX) {
            true => self.transients.pop_front(),
            false => None,
        }
    }
}

/// Transient sessions that have tables: few, so that the memory that one gives up is at hand for
/// the next one.
const TRANSIENTS_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    fn entered<const N: usize>(
        cipher_cache: &mut CipherCache,
        sessions: [u64; N],
    ) -> [CipherSlot; N] {
        sessions.map(|index| cipher_cache.enter(SessionIndex(index), 2))
    }

    #[test]
    fn a_session_that_comes_when_others_keep_their_tables_is_transient() {
        let (transient, resident) = (CipherSlot::Transient, CipherSlot::Resident);
        let mut cipher_cache = CipherCache::default();
        assert_eq!(entered(&mut cipher_cache, [7, 5, 9]), [resident, resident, transient]);
        cipher_cache.leave(transient);
        assert_eq!(entered(&mut cipher_cache, [9]), [transient]);
        cipher_cache.leave(resident);
        assert_eq!(entered(&mut cipher_cache, [3, 4]), [resident, transient]);
    }

    #[test]
    fn the_first_of_more_than_a_few_transient_sessions_gives_its_tables_up() {
        let mut cipher_cache = CipherCache::default();
        entered(&mut cipher_cache, [1, 2, 3, 4, 5]);
        assert_eq!(cipher_cache.surplus_transient(1_000), None);
        entered(&mut cipher_cache, [6, 7]);
        let surplus = |cipher_cache: &mut CipherCache, most| {
            let next = || cipher_cache.surplus_transient(most);
            let surplus: Vec<_> = std::iter::from_fn(next).map(|index| index.0).collect();
            surplus
        };
        assert_eq!(surplus(&mut cipher_cache, 1_000), [3, 4]);
        assert_eq!(surplus(&mut cipher_cache, 1), [5, 6]);
        assert_eq!(surplus(&mut cipher_cache, 0), [7]);
    }
}
