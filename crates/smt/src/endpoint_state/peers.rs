// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Peers of an endpoint, by session. A peer is known until the last message that came before the
//! end of its session was accepted.

use std::collections::VecDeque;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use smt_wire::SessionIndex;

use crate::peer::Peer;

/// The peers of all live sessions, and of those that ended not long ago.
pub(super) struct Peers {
    of: HashMap<SessionIndex, Arc<Peer>>,
    /// Sessions that have ended, in that order.
    ended: VecDeque<Ended>,
}

/// A session that has ended.
struct Ended {
    session: SessionIndex,
    /// Messages that had come to the accept queue by then.
    arrived: u64,
}

impl Peers {
    pub(super) fn new() -> Self {
        Self { of: HashMap::new(), ended: VecDeque::new() }
    }

    pub(super) fn insert(&mut self, session: SessionIndex, peer: Peer) {
        self.of.insert(session, Arc::new(peer));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (SessionIndex, Arc<Peer>)> {
        self.of.iter().map(|(session, peer)| (*session, Arc::clone(peer)))
    }

    pub(super) fn get(&self, session: SessionIndex) -> Option<&Arc<Peer>> {
        self.of.get(&session)
    }

    /// A session has ended when `arrived` messages had come to the accept queue. The peer is known
    /// until those have left the queue.
    pub(super) fn end(&mut self, session: SessionIndex, arrived: u64) {
        if self.of.contains_key(&session) {
            self.ended.push_back(Ended { session, arrived });
        }
    }

    /// The first `left` messages have left the accept queue.
    pub(super) fn forget(&mut self, left: u64) {
        while let Some(ended) = self.ended.front().filter(|ended| ended.arrived <= left) {
            self.of.remove(&ended.session);
            self.ended.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_known_until_its_last_message_has_left_the_queue() {
        let mut peers = Peers::new();
        let (first, second) = (SessionIndex(1), SessionIndex(2));
        peers.insert(first, Peer::unknown());
        peers.insert(second, Peer::unknown());
        peers.end(first, 3);
        peers.forget(2);
        assert!(peers.get(first).is_some());
        peers.forget(3);
        assert!(peers.get(first).is_none() && peers.get(second).is_some());
        assert!(peers.ended.is_empty());
    }

    #[test]
    fn a_session_without_a_known_peer_leaves_no_trace() {
        let mut peers = Peers::new();
        peers.end(SessionIndex(1), 9);
        assert!(peers.ended.is_empty());
    }
}
