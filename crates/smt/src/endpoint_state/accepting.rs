// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages of peers, from their arrival to the acceptors that take them.

use std::task::{Poll, Waker};

use bytes::Bytes;
use smt_proto::{RpcId, Time};
use smt_wire::SessionIndex;

use super::EndpointState;
use crate::accept_queue::{MORE_BYTES_MAX, MORE_MAX};
use crate::message::Incoming;

impl EndpointState {
    /// The next message of a peer; `None` once the endpoint is closed. `ticket` is this acceptor's
    /// place.
    pub(crate) fn poll_accept(
        &mut self,
        ticket: &mut Option<u64>,
        waker: &Waker,
    ) -> Poll<Option<Incoming>> {
        // From now on an acceptor takes the messages that come.
        self.endpoint.set_untaken_max(usize::MAX);
        let incoming = self.accepted.pop().or_else(|| self.take_arrival());
        self.note_untaken();
        if incoming.is_some() || self.is_closed {
            ticket
                .take()
                .into_iter()
                .for_each(|ticket| self.incoming_queue.leave(ticket));
            return Poll::Ready(incoming);
        }
        self.incoming_queue.wait(ticket, waker);
        Poll::Pending
    }

    /// The same for a task, which takes some more for the next ones.
    pub(crate) fn poll_accept_several(
        &mut self,
        ticket: &mut Option<u64>,
        waker: &Waker,
    ) -> Poll<Option<Incoming>> {
        let accepted = self.poll_accept(ticket, waker);
        if !matches!(accepted, Poll::Ready(Some(_))) {
            return accepted;
        }
        for _ in 0..MORE_MAX {
            if self.accepted.bytes() >= MORE_BYTES_MAX {
                break;
            }
            let Some(incoming) = self.take_arrival() else {
                break;
            };
            self.accepted.push(incoming);
        }
        self.note_untaken();
        accepted
    }

    /// Takes the first message that need not wait.
    fn take_arrival(&mut self) -> Option<Incoming> {
        // A caller that has given up meanwhile is not served any more.
        let endpoint = &self.endpoint;
        let is_wanted =
            |incoming: &Incoming| incoming.is_one_way || endpoint.is_wanted(incoming.rpc);
        let keeps_too_much = |session| endpoint.keeps_too_much(session);
        let waiting = self.incoming_queue.len();
        let incoming = self.incoming_queue.pop(is_wanted, keeps_too_much);
        let taken = waiting - self.incoming_queue.len();
        let is_request = incoming.as_ref().is_some_and(|one| !one.is_one_way);
        self.unanswered += usize::from(is_request);
        self.ends_turn |= self.turn.take(taken);
        incoming
    }

    /// A reply to a session is kept. If that makes too many, requests that were taken together wait
    /// after all.
    pub(super) fn hold_back_accepted(&mut self, session: SessionIndex) {
        if self.accepted.is_empty() || !self.endpoint.keeps_too_much(session) {
            return;
        }
        let endpoint = &self.endpoint;
        let waits = |incoming: &Incoming| {
            !incoming.is_one_way && endpoint.keeps_too_much(incoming.rpc.session)
        };
        for incoming in self.accepted.take_if(waits) {
            self.unanswered = self.unanswered.saturating_sub(1);
            self.incoming_queue.hold_back(incoming);
        }
    }

    fn note_untaken(&mut self) {
        let bytes = self.incoming_queue.bytes() + self.accepted.bytes();
        self.endpoint.set_untaken(bytes);
    }

    /// An acceptor has gone. It may have been woken for a message: then the next one is.
    #[cfg(feature = "tokio")]
    pub(crate) fn stop_accepting(&mut self, ticket: u64) {
        self.incoming_queue.leave(ticket);
        let acceptor = match self.accepted.is_empty() {
            true => self.incoming_queue.next_for_waiting(),
            false => self.incoming_queue.next_acceptor(),
        };
        self.woken.extend(acceptor);
    }

    pub(super) fn arrive(
        &mut self,
        rpc: RpcId,
        body: Bytes,
        deadline: Option<Time>,
        is_one_way: bool,
    ) {
        let Some(peer) = self.peer(rpc.session) else {
            return;
        };
        let acceptor = self.incoming_queue.push(Incoming {
            rpc,
            body,
            deadline,
            peer,
            is_one_way,
        });
        self.turn.tell();
        self.woken.extend(acceptor);
        self.note_untaken();
    }
}
