// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events as the application takes them, and back-pressure on peers that acknowledge no replies
//! (SPEC §10).
//!
//! A caller decides when a reply need not be kept any more. Requests of a peer that keeps too many
//! replies wait here, in their order, until some are acknowledged: their answers would be kept too,
//! however many requests the peer has sent at once.
//!
//! Not here: which peers keep too much (`memory::accounting`), and requests that have not been
//! taken from the network.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use smt_wire::{AbortCode, SessionIndex};

use super::Endpoint;
use crate::event::{Event, RpcId};
use crate::time::Time;

/// Requests that wait, by session.
#[derive(Debug, Default)]
pub(super) struct Backpressure {
    of: BTreeMap<SessionIndex, VecDeque<Event>>,
    /// Each of these sessions once, in the order in which they are looked at.
    turns: VecDeque<SessionIndex>,
    /// The requests that wait.
    rpcs: BTreeSet<RpcId>,
}

impl Backpressure {
    /// Whether a request of this session waits, so that those after it wait too.
    fn has_session(&self, session: SessionIndex) -> bool {
        self.of.contains_key(&session)
    }

    fn push(&mut self, rpc: RpcId, request: Event) {
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
    fn pop(&mut self, keeps_too_much: impl Fn(SessionIndex) -> bool) -> Option<Event> {
        for _ in 0..self.turns.len().min(LOOKS) {
            let session = self.turns.pop_front()?;
            if keeps_too_much(session) {
                self.turns.push_back(session);
                continue;
            }
            let waiting = self.of.get_mut(&session)?;
            let request = waiting.pop_front();
            match waiting.is_empty() {
                true => drop(self.of.remove(&session)),
                false => self.turns.push_back(session),
            }
            return request;
        }
        None
    }
}

impl Endpoint {
    /// The next event. Requests of a peer that keeps too many replies wait until it has
    /// acknowledged some, and later events overtake them ([`Self::keeps_too_much`]).
    pub fn poll_event(&mut self) -> Option<Event> {
        // The common case: no peer keeps much.
        let is_possible = self
            .shared
            .memory
            .may_keep_too_much(self.shared.config.memory_max);
        if !is_possible && self.backpressure.rpcs.is_empty() {
            return self.shared.events.pop_front();
        }
        self.poll_event_behind_replies()
    }

    /// The next event, while some peer keeps much or requests wait.
    #[cold]
    fn poll_event_behind_replies(&mut self) -> Option<Event> {
        loop {
            match self.shared.events.front() {
                Some(Event::Request { rpc, .. }) if self.must_wait(rpc.session) => {
                    self.hold_first_event();
                }
                // The application has not been told of the request.
                Some(Event::Cancelled(rpc)) if self.backpressure.rpcs.contains(rpc) => {
                    self.shared.events.pop_front();
                }
                Some(_) => return self.shared.events.pop_front(),
                None => return self.next_waiting(),
            }
        }
    }

    /// Whether [`Self::poll_event`] has something to tell.
    #[must_use]
    pub fn has_events(&self) -> bool {
        let keeps_too_much = |session| self.keeps_too_much(session);
        !self.shared.events.is_empty() || self.backpressure.is_ready(keeps_too_much)
    }

    fn must_wait(&self, session: SessionIndex) -> bool {
        self.backpressure.has_session(session) || self.keeps_too_much(session)
    }

    /// The first event is a request that waits.
    fn hold_first_event(&mut self) {
        let Some(request) = self.shared.events.pop_front() else {
            return;
        };
        if let Event::Request { rpc, body, .. } = &request {
            self.shared.memory.enter_waiting(cost(body.len()));
            self.backpressure.push(*rpc, request);
        }
    }

    /// Refuses all requests that the application has not been told of, as those that come later are
    /// refused: the endpoint shuts down.
    pub(super) fn refuse_untold_requests(&mut self, now: Time) {
        let waiting = core::mem::take(&mut self.backpressure);
        let mut untold = waiting.rpcs;
        for request in waiting.of.into_values().flatten() {
            if let Event::Request { body, .. } = request {
                self.shared.memory.leave_waiting(cost(body.len()));
            }
        }
        self.shared.events.retain(|event| match event {
            Event::Request { rpc, .. } => {
                untold.insert(*rpc);
                false
            }
            Event::Cancelled(rpc) => !untold.contains(rpc),
            _ => true,
        });
        for rpc in untold {
            // Without success where its caller has given up.
            let _ = self.abort(now, rpc, AbortCode::Refused);
        }
    }

    /// The next request that need not wait any more, if its caller has not given up.
    fn next_waiting(&mut self) -> Option<Event> {
        loop {
            let mut backpressure = core::mem::take(&mut self.backpressure);
            let next = backpressure.pop(|session| self.keeps_too_much(session));
            self.backpressure = backpressure;
            let request = next?;
            let Event::Request { rpc, body, .. } = &request else {
                return None;
            };
            self.backpressure.rpcs.remove(rpc);
            self.shared.memory.leave_waiting(cost(body.len()));
            if self.is_wanted(*rpc) {
                return Some(request);
            }
        }
    }
}

/// Memory of a request that waits.
fn cost(body: usize) -> usize {
    size_of::<(RpcId, Event)>() + body
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

    fn request(session: u64, id: u64) -> (RpcId, Event) {
        let rpc = RpcId {
            session: SessionIndex(session),
            id: MessageId(id),
        };
        let request = Event::Request {
            rpc,
            body: Bytes::new(),
            deadline: None,
        };
        (rpc, request)
    }

    fn waiting(requests: impl IntoIterator<Item = (u64, u64)>) -> Backpressure {
        let mut backpressure = Backpressure::default();
        for (session, id) in requests {
            let (rpc, request) = request(session, id);
            backpressure.push(rpc, request);
        }
        backpressure
    }

    fn popped(
        backpressure: &mut Backpressure,
        keeps_too_much: impl Fn(SessionIndex) -> bool,
    ) -> Option<u64> {
        match backpressure.pop(keeps_too_much)? {
            Event::Request { rpc, .. } => Some(rpc.id.0),
            other => panic!("no request: {other:?}"),
        }
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
