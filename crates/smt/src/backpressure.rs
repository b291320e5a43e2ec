// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests of peers that have too many replies to acknowledge (SPEC §10): these requests wait
//! here, in their order, until those replies are acknowledged. Their own replies would have to be
//! kept too, however many requests the peer has sent at once.
//!
//! Not here: which peer has too many (`smt-proto`), and the memory of the waiting requests (their
//! owner tells it).

use std::collections::VecDeque;

use foldhash::{HashMap, HashMapExt};
use smt_wire::SessionIndex;

/// The waiting requests, by session.
#[derive(Debug)]
pub(crate) struct Backpressure<T> {
    of: HashMap<SessionIndex, VecDeque<T>>,
    /// Each of these sessions once, in the order in which they are looked at.
    turns: VecDeque<SessionIndex>,
}

impl<T> Default for Backpressure<T> {
    fn default() -> Self {
        Self {
            of: HashMap::new(),
            turns: VecDeque::new(),
        }
    }
}

impl<T> Backpressure<T> {
    /// Whether something of this session waits: then what comes after it does so too.
    pub(crate) fn contains(&self, session: SessionIndex) -> bool {
        !self.turns.is_empty() && self.of.contains_key(&session)
    }

    pub(crate) fn push(&mut self, session: SessionIndex, request: T) {
        let waiting = self.of.entry(session).or_default();
        if waiting.is_empty() {
            self.turns.push_back(session);
        }
        waiting.push_back(request);
    }

    /// Whether there is a request whose session does not keep too much any more, among those that
    /// are looked at.
    pub(crate) fn is_ready(&mut self, keeps_too_much: impl Fn(SessionIndex) -> bool) -> bool {
        self.next_session(keeps_too_much).is_some()
    }

    /// The next request of such a session.
    pub(crate) fn pop(&mut self, keeps_too_much: impl Fn(SessionIndex) -> bool) -> Option<T> {
        let session = self.next_session(keeps_too_much)?;
        let waiting = self.of.get_mut(&session)?;
        let request = waiting.pop_front();
        self.turns.pop_front();
        if waiting.is_empty() {
            self.of.remove(&session);
        } else {
            self.turns.push_back(session);
        }
        request
    }

    /// Brings a session to the front whose requests need not wait. A few are looked at, others the
    /// next time.
    fn next_session(
        &mut self,
        keeps_too_much: impl Fn(SessionIndex) -> bool,
    ) -> Option<SessionIndex> {
        for _ in 0..self.turns.len().min(LOOKS) {
            let session = *self.turns.front()?;
            if !keeps_too_much(session) {
                return Some(session);
            }
            self.turns.rotate_left(1);
        }
        None
    }
}

/// Sessions looked at in a turn: with thousands that keep too much, turns would else take long.
const LOOKS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY: fn(SessionIndex) -> bool = |_| false;

    fn backpressure(requests: impl IntoIterator<Item = (u64, u32)>) -> Backpressure<u32> {
        let mut backpressure = Backpressure::default();
        for (session, request) in requests {
            backpressure.push(SessionIndex(session), request);
        }
        backpressure
    }

    #[test]
    fn sessions_take_turns_and_requests_of_one_keep_their_order() {
        let mut backpressure = backpressure([(1, 10), (1, 11), (2, 20), (1, 12), (2, 21)]);
        let order: Vec<_> = std::iter::from_fn(|| backpressure.pop(NOBODY)).collect();
        assert_eq!(order, [10, 20, 11, 21, 12]);
        assert!(!backpressure.contains(SessionIndex(1)));
    }

    #[test]
    fn session_that_keeps_too_much_waits_and_others_do_not() {
        let mut backpressure = backpressure([(1, 10), (2, 20), (1, 11)]);
        let first = |session| session == SessionIndex(1);
        assert_eq!(backpressure.pop(first), Some(20));
        assert_eq!(backpressure.pop(first), None);
        assert!(!backpressure.is_ready(first) && backpressure.contains(SessionIndex(1)));
        assert!(backpressure.is_ready(NOBODY));
    }

    #[test]
    fn each_of_many_sessions_is_looked_at_in_time() {
        let mut backpressure = backpressure((0..100).map(|session| (session, session as u32)));
        let all_but_one = |session| session != SessionIndex(70);
        let looks = (1..).find(|_| backpressure.is_ready(all_but_one));
        assert_eq!(looks, Some(71_usize.div_ceil(LOOKS)));
    }
}
