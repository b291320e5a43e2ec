// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The messages that need grants, by session. A session with many of them has at most half of the
//! places while messages of another wait (SPEC §9.2).
//!
//! Each session's messages stand in the order of their bytes left, and the sessions in the order of
//! their first messages. As many sessions as there are places hold all messages that can have one,
//! so a look costs the same however many messages wait.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use smt_wire::SessionIndex;

use crate::grant::policy::Grantable;

/// The rank of a message: bytes left, and age.
pub(super) type Rank = (u32, u64);

/// Messages that need grants, by session.
#[derive(Debug, Default)]
pub(super) struct BySession {
    sessions: BTreeMap<SessionIndex, BTreeMap<Rank, Grantable>>,
    /// The sessions by the rank of their first message.
    first: BTreeSet<(Rank, SessionIndex)>,
    /// Messages that may have a place; the vector's memory is used again.
    merged: Vec<Grantable>,
}

impl BySession {
    pub(super) fn insert(&mut self, rank: Rank, message: Grantable) {
        self.change(message.rpc.session, |messages| {
            messages.insert(rank, message);
        });
    }

    pub(super) fn remove(&mut self, rank: Rank, session: SessionIndex) {
        self.change(session, |messages| {
            messages.remove(&rank);
        });
    }

    fn change(
        &mut self,
        session: SessionIndex,
        change: impl FnOnce(&mut BTreeMap<Rank, Grantable>),
    ) {
        let messages = self.sessions.entry(session).or_default();
        let before = messages.keys().next().copied();
        change(messages);
        let after = messages.keys().next().copied();
        if after.is_none() {
            self.sessions.remove(&session);
        }
        if before == after {
            return;
        }
        if let Some(rank) = before {
            self.first.remove(&(rank, session));
        }
        if let Some(rank) = after {
            self.first.insert((rank, session));
        }
    }

    /// Appends the `most` messages with the fewest bytes left. One session has at most half of them
    /// while messages of others wait.
    pub(super) fn show(&mut self, most: usize, shown: &mut Vec<Grantable>) {
        self.merged.clear();
        for (_, session) in self.first.iter().take(most) {
            let messages = self.sessions.get(session).into_iter();
            self.merged.extend(messages.flat_map(|messages| messages.values().take(most)));
        }
        self.merged
            .sort_unstable_by_key(|message| (message.length - message.arrived, message.order));
        let share = most.div_ceil(2);
        let start = shown.len();
        // First what is within each session's share; then, where places are left, the others.
        self.merged.retain(|message| {
            let of_session = |other: &&Grantable| other.rpc.session == message.rpc.session;
            let taken = &shown[start..];
            let has_place = taken.len() < most && taken.iter().filter(of_session).count() < share;
            if has_place {
                shown.push(*message);
            }
            !has_place
        });
        let left = most - (shown.len() - start);
        shown.extend(self.merged.iter().take(left));
    }
}

#[cfg(test)]
mod tests {
    use smt_wire::MessageId;

    use super::*;
    use crate::event::RpcId;

    fn message(session: u64, order: u64, left: u32) -> (Rank, Grantable) {
        let rpc = RpcId { session: SessionIndex(session), id: MessageId(order) };
        let message = Grantable {
            rpc,
            length: left,
            arrived: 0,
            granted: 0,
            order,
            is_sender_limited: false,
        };
        ((left, order), message)
    }

    /// Sessions of the messages that are shown, of these sessions and bytes left.
    fn shown(messages: &[(u64, u32)], most: usize) -> Vec<u64> {
        let mut by_session = BySession::default();
        for (order, (session, left)) in (0..).zip(messages) {
            let (rank, message) = message(*session, order, *left);
            by_session.insert(rank, message);
        }
        let mut shown = Vec::new();
        by_session.show(most, &mut shown);
        let mut sessions: Vec<_> = shown.iter().map(|message| message.rpc.session.0).collect();
        sessions.sort_unstable();
        sessions
    }

    #[test]
    fn one_session_alone_has_all_places() {
        assert_eq!(shown(&[(1, 10); 9], 8), [1; 8]);
    }

    #[test]
    fn a_session_has_half_of_the_places_while_anothers_messages_wait() {
        let mut messages = vec![(1, 10); 9];
        messages.extend([(2, 1_000); 9]);
        assert_eq!(shown(&messages, 8), [1, 1, 1, 1, 2, 2, 2, 2]);
    }

    #[test]
    fn places_that_no_other_session_wants_are_the_firsts() {
        let mut messages = vec![(1, 10); 9];
        messages.push((2, 1_000));
        assert_eq!(shown(&messages, 8), [1, 1, 1, 1, 1, 1, 1, 2]);
    }

    #[test]
    fn the_sessions_with_the_fewest_bytes_left_have_places() {
        let messages: Vec<_> = (0..20).map(|session| (session, 100 - session as u32)).collect();
        assert_eq!(shown(&messages, 8), [12, 13, 14, 15, 16, 17, 18, 19]);
    }

    #[test]
    fn removed_messages_are_not_shown() {
        let mut by_session = BySession::default();
        let messages = [message(1, 0, 10), message(1, 1, 5), message(2, 2, 7)];
        for (rank, message) in messages {
            by_session.insert(rank, message);
        }
        for (rank, message) in messages {
            by_session.remove(rank, message.rpc.session);
        }
        let mut shown = Vec::new();
        by_session.show(8, &mut shown);
        assert!(shown.is_empty() && by_session.first.is_empty() && by_session.sessions.is_empty());
    }
}
