// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Waiting for requests to be given up by their callers, and for the endpoint to begin to close.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
#[cfg(feature = "async")]
use std::task::Poll;
use std::task::Waker;

use smt_proto::RpcId;
use smt_wire::{MessageId, SessionIndex};

use super::EndpointState;

/// Tasks that wait for a request to be given up, by request and ticket; and those that wait for the
/// endpoint to begin to close, by ticket.
#[derive(Default)]
pub(super) struct CancelWaiters {
    waiting: BTreeMap<(RpcId, u64), Waker>,
    closing: BTreeMap<u64, Waker>,
    /// Sessions that end once no call is in progress, though the endpoint goes on.
    finishing: BTreeSet<SessionIndex>,
}

impl CancelWaiters {
    /// Takes the wakers of those who wait for this request.
    fn take(&mut self, rpc: RpcId) -> Vec<Waker> {
        self.take_between((rpc, 0), (rpc, u64::MAX))
    }

    /// Takes the wakers of those who wait for requests of this session.
    fn take_session(&mut self, session: SessionIndex) -> Vec<Waker> {
        let of = |id| RpcId { session, id: MessageId(id) };
        self.take_between((of(0), 0), (of(u64::MAX), u64::MAX))
    }

    fn take_between(&mut self, first: (RpcId, u64), last: (RpcId, u64)) -> Vec<Waker> {
        let range = (Bound::Included(first), Bound::Included(last));
        let keys: Vec<_> = self.waiting.range(range).map(|(key, _)| *key).collect();
        let wakers = keys.iter().filter_map(|key| self.waiting.remove(key));
        wakers.collect()
    }
}

impl EndpointState {
    /// Ready when nobody waits for a reply to this request any more. `ticket` is this waiter's
    /// place.
    #[cfg(feature = "async")]
    pub(crate) fn poll_cancelled(
        &mut self,
        rpc: RpcId,
        ticket: &mut Option<u64>,
        waker: &Waker,
    ) -> Poll<()> {
        if !self.endpoint.is_wanted(rpc) || self.is_left.is_some() {
            return Poll::Ready(());
        }
        let ticket = *ticket.get_or_insert(self.next_ticket);
        self.next_ticket = self.next_ticket.max(ticket + 1);
        let waiting = &mut self.cancel_waiters.waiting;
        waiting.insert((rpc, ticket), waker.clone());
        Poll::Pending
    }

    /// A waiter has gone.
    #[cfg(feature = "async")]
    pub(crate) fn stop_waiting_for_cancel(&mut self, rpc: RpcId, ticket: u64) {
        self.cancel_waiters.waiting.remove(&(rpc, ticket));
    }

    /// Ready when no more requests of this session are taken, since the endpoint closes, or the
    /// session does. `ticket` is this waiter's place.
    #[cfg(feature = "async")]
    pub(crate) fn poll_closing(
        &mut self,
        session: SessionIndex,
        ticket: &mut Option<u64>,
        waker: &Waker,
    ) -> Poll<()> {
        if self.is_closing(session) {
            return Poll::Ready(());
        }
        let ticket = *ticket.get_or_insert(self.next_ticket);
        self.next_ticket = self.next_ticket.max(ticket + 1);
        self.cancel_waiters.closing.insert(ticket, waker.clone());
        Poll::Pending
    }

    /// A waiter for the endpoint's closing has gone.
    #[cfg(feature = "async")]
    pub(crate) fn stop_waiting_for_closing(&mut self, ticket: u64) {
        self.cancel_waiters.closing.remove(&ticket);
    }

    /// Whether no more requests of this session are taken, since the endpoint closes, or the
    /// session does.
    pub(crate) fn is_closing(&self, session: SessionIndex) -> bool {
        let is_finishing = || self.cancel_waiters.finishing.contains(&session);
        self.is_draining || self.is_left.is_some() || is_finishing()
    }

    /// A session ends once no call is in progress.
    pub(super) fn finish_session(&mut self, session: SessionIndex) {
        self.cancel_waiters.finishing.insert(session);
        // Those of other sessions wait again.
        self.tell_closing();
    }

    /// The endpoint begins to close.
    pub(super) fn tell_closing(&mut self) {
        let closing = std::mem::take(&mut self.cancel_waiters.closing);
        self.woken.extend(closing.into_values());
    }

    /// A request was given up.
    pub(super) fn tell_cancelled(&mut self, rpc: RpcId) {
        let woken = self.cancel_waiters.take(rpc);
        self.woken.extend(woken);
    }

    /// All requests of a session were given up.
    pub(super) fn tell_session_cancelled(&mut self, session: SessionIndex) {
        self.cancel_waiters.finishing.remove(&session);
        let woken = self.cancel_waiters.take_session(session);
        self.woken.extend(woken);
    }

    /// The endpoint has ended: nobody waits for replies any more.
    pub(super) fn tell_all_cancelled(&mut self) {
        let waiting = std::mem::take(&mut self.cancel_waiters.waiting);
        self.woken.extend(waiting.into_values());
        self.tell_closing();
        self.woken.extend(self.part_waiters.take_all());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rpc(session: u64, id: u64) -> RpcId {
        RpcId { session: SessionIndex(session), id: MessageId(id) }
    }

    #[test]
    fn those_who_wait_for_a_request_or_for_a_session_are_woken_and_no_others() {
        let mut waiters = CancelWaiters::default();
        for (ticket, rpc) in (0..).zip([rpc(1, 1), rpc(1, 1), rpc(1, 2), rpc(2, 1)]) {
            waiters.waiting.insert((rpc, ticket), Waker::noop().clone());
        }
        assert_eq!(waiters.take(rpc(1, 1)).len(), 2);
        assert_eq!(waiters.take_session(SessionIndex(1)).len(), 1);
        assert_eq!(waiters.waiting.len(), 1);
    }
}
