// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Back-pressure on peers that acknowledge no replies (SPEC §10).
//!
//! A caller decides when a reply need not be kept any more. Requests of a peer that keeps too many
//! replies wait here, in their order, until some are acknowledged: their answers would be kept too,
//! however many requests the peer has sent at once.
//!
//! Not here: which peers keep too much (`memory::accounting`), and requests that have not been
//! taken from the network.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use smt_wire::SessionIndex;

use super::Endpoint;
use crate::event::{PeerMessage, RpcId};

/// Requests that wait, by session.
#[derive(Debug, Default)]
pub(super) struct Backpressure {
    of: BTreeMap<SessionIndex, VecDeque<PeerMessage>>,
    /// Each of these sessions once, in the order in which they are looked at.
    turns: VecDeque<SessionIndex>,
    /// The requests that wait.
    rpcs: BTreeSet<RpcId>,
}

impl Backpressure {
    pub(super) fn is_empty(&self) -> bool {
        self.rpcs.is_empty()
    }

    pub(super) fn contains(&self, rpc: &RpcId) -> bool {
        self.rpcs.contains(rpc)
    }

    /// Whether a request of this session waits, so that those after it wait too.
    fn has_session(&self, session: SessionIndex) -> bool {
        self.of.contains_key(&session)
    }

    fn push(&mut self, request: PeerMessage) {
        let rpc = request.rpc;
        let waiting = self.of.entry(rpc.session).or_default();
        if waiting.is_empty() {
            self.turns.push_back(rpc.session);
        }
        waiting.push_back(request);
        self.rpcs.insert(rpc);
    }

    /// Whether a session among the next few does not keep too much any more.
    fn is_ready(&self, keeps_too_much: impl Fn(SessionIndex) -> bool) -> bool {
        let mut next = self.turns.iter().take(LOOKS);
        next.any(|session| !keeps_too_much(*session))
    }

    /// The next request of a session that does not keep too much any more. A few sessions are
    /// looked at in a call, others in the next.
    fn pop(&mut self, keeps_too_much: impl Fn(SessionIndex) -> bool) -> Option<PeerMessage> {
        for _ in 0..self.turns.len().min(LOOKS) {
            let session = self.turns.pop_front()?;
            if keeps_too_much(session) {
                self.turns.push_back(session);
                continue;
            }
            let waiting = self.of.get_mut(&session)?;
            let request = waiting.pop_front()?;
            match waiting.is_empty() {
                true => drop(self.of.remove(&session)),
                false => self.turns.push_back(session),
            }
            self.rpcs.remove(&request.rpc);
            return Some(request);
        }
        None
    }

    /// Takes out all requests.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = PeerMessage> + use<> {
        let all = core::mem::take(self);
        all.of.into_values().flatten()
    }
}

impl Endpoint {
    /// Whether a request of this session is not to be given to the application now: it would be
    /// answered, and the peer acknowledges no answers.
    pub(super) fn must_wait(&self, session: SessionIndex) -> bool {
        self.backpressure.has_session(session) || self.keeps_too_much(session)
    }

    /// Whether a peer may keep too much, or a request waits because one did. The answer is cheap
    /// and mostly no.
    pub(super) fn has_backpressure(&self) -> bool {
        let most = self.shared.config.memory_max;
        self.shared.memory.may_keep_too_much(most) || !self.backpressure.is_empty()
    }

    /// Whether a request that had to wait need not wait any more.
    pub(super) fn is_backpressure_over(&self) -> bool {
        let keeps_too_much = |session| self.keeps_too_much(session);
        self.backpressure.is_ready(keeps_too_much)
    }

    /// Lets a request wait that is in the account of what waits.
    pub(super) fn wait_behind_replies(&mut self, request: PeerMessage) {
        self.backpressure.push(request);
    }

    /// The next request that need not wait any more. Its caller may have given up.
    pub(super) fn next_behind_replies(&mut self) -> Option<PeerMessage> {
        let mut backpressure = core::mem::take(&mut self.backpressure);
        let next = backpressure.pop(|session| self.keeps_too_much(session));
        self.backpressure = backpressure;
        let request = next?;
        self.shared.memory.leave_waiting(request.cost());
        Some(request)
    }
}

/// Sessions looked at in a turn: with thousands that keep too much, turns would else take long.
const LOOKS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use smt_wire::MessageId;
    use std::prelude::v1::Vec;

    const NO_SESSION: fn(SessionIndex) -> bool = |_| false;

    fn request(session: u64, id: u64) -> PeerMessage {
        PeerMessage {
            rpc: RpcId { session: SessionIndex(session), id: MessageId(id) },
            body: Bytes::new(),
            metadata: Default::default(),
            deadline: None,
            is_one_way: false,
            parts: Default::default(),
            is_early: false,
        }
    }

    fn waiting(requests: impl IntoIterator<Item = (u64, u64)>) -> Backpressure {
        let mut backpressure = Backpressure::default();
        for (session, id) in requests {
            backpressure.push(request(session, id));
        }
        backpressure
    }

    fn popped(
        backpressure: &mut Backpressure,
        keeps_too_much: impl Fn(SessionIndex) -> bool,
    ) -> Option<u64> {
        Some(backpressure.pop(keeps_too_much)?.rpc.id.0)
    }

    #[test]
    fn sessions_take_turns_and_requests_of_one_keep_their_order() {
        let mut backpressure = waiting([(1, 10), (1, 11), (2, 20), (1, 12), (2, 21)]);
        let order: Vec<_> = core::iter::from_fn(|| popped(&mut backpressure, NO_SESSION)).collect();
        assert_eq!(order, [10, 20, 11, 21, 12]);
        assert!(!backpressure.has_session(SessionIndex(1)));
    }

    #[test]
    fn a_session_that_keeps_too_much_waits_and_others_do_not() {
        let mut backpressure = waiting([(1, 10), (2, 20), (1, 11)]);
        let first = |session| session == SessionIndex(1);
        assert_eq!(popped(&mut backpressure, first), Some(20));
        assert_eq!(popped(&mut backpressure, first), None);
        assert!(!backpressure.is_ready(first) && backpressure.has_session(SessionIndex(1)));
        assert!(backpressure.is_ready(NO_SESSION));
    }

    #[test]
    fn each_of_many_sessions_is_looked_at_in_time() {
        let mut backpressure = waiting((0..100).map(|session| (session, session)));
        let all_but_one = |session| session != SessionIndex(70);
        let looks = (1..).find(|_| popped(&mut backpressure, all_but_one).is_some());
        assert_eq!(looks, Some(71_usize.div_ceil(LOOKS)));
    }
}
