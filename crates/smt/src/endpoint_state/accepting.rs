// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages of peers, from the protocol's accept queue to the acceptors that take them.

use std::sync::Arc;
use std::task::{Poll, Waker};

use smt_proto::Time;
use smt_wire::{AbortCode, SessionIndex};

use super::EndpointState;
use crate::accept_queue::{MORE_BYTES_MAX, MORE_MAX};
use crate::message::Delivered;

impl EndpointState {
    /// The next message of a peer; `None` once the endpoint is closed. `ticket` is this acceptor's
    /// place.
    pub(crate) fn poll_accept(
        &mut self,
        now: Time,
        ticket: &mut Option<u64>,
        waker: &Waker,
    ) -> Poll<Option<Delivered>> {
        // From now on an acceptor takes the messages that come.
        self.endpoint.set_untaken_max(usize::MAX);
        let delivered = self.accepted.pop_wanted(|| now).or_else(|| self.take_arrival(now));
        self.note_untaken();
        if delivered.is_some() || self.is_closed {
            let ticket = ticket.take();
            ticket.inspect(|ticket| self.acceptors.leave(*ticket));
            return Poll::Ready(delivered);
        }
        self.acceptors.wait(ticket, waker);
        Poll::Pending
    }

    /// The same for a task, which takes some more for the next ones.
    pub(crate) fn poll_accept_several(
        &mut self,
        now: Time,
        ticket: &mut Option<u64>,
        waker: &Waker,
    ) -> Poll<Option<Delivered>> {
        let accepted = self.poll_accept(now, ticket, waker);
        if !matches!(accepted, Poll::Ready(Some(_))) {
            return accepted;
        }
        for _ in 0..MORE_MAX {
            if self.accepted.bytes() >= MORE_BYTES_MAX {
                break;
            }
            let Some(delivered) = self.take_arrival(now) else {
                break;
            };
            self.accepted.push(delivered);
        }
        self.note_untaken();
        accepted
    }

    /// From now on nothing is begun: requests are refused, those too that no acceptor has handed to
    /// the application, and servers are not called.
    pub(crate) fn drain(&mut self, now: Time) {
        self.is_draining = true;
        self.tell_closing();
        for delivered in self.accepted.take_if(|delivered| !delivered.message.is_one_way) {
            self.unanswered = self.unanswered.saturating_sub(1);
            // Without success where its caller has given up.
            let _ = self.endpoint.abort(now, delivered.message.rpc, AbortCode::ShuttingDown);
        }
        self.note_untaken();
        self.endpoint.drain(now);
        self.count_departures();
    }

    /// Takes the first message that need not wait.
    fn take_arrival(&mut self, now: Time) -> Option<Delivered> {
        let delivered = loop {
            let Some(message) = self.endpoint.accept(now) else {
                break None;
            };
            let Some(peer) = self.peers.get(message.rpc.session) else {
                continue;
            };
            if let Some(refusal) = peer.refusal.as_deref().cloned() {
                self.refuse_message(now, &message, refusal);
                continue;
            }
            let rule = self.message_authorization.as_ref();
            if let Some(refusal) = rule.and_then(|rule| rule.refusal(peer, &message)) {
                self.messages_refused += 1;
                self.refuse_message(now, &message, refusal);
                continue;
            }
            let peer = Arc::clone(peer);
            break Some(Delivered { message, peer });
        };
        let is_request = delivered.as_ref().is_some_and(|one| !one.message.is_one_way);
        self.unanswered += usize::from(is_request);
        self.count_departures();
        delivered
    }

    /// A reply to a session is kept. If that makes too many, requests that were taken together wait
    /// after all.
    pub(super) fn hold_back_accepted(&mut self, session: SessionIndex) {
        if self.accepted.is_empty() || !self.endpoint.keeps_too_much(session) {
            return;
        }
        let endpoint = &self.endpoint;
        let waits = |delivered: &Delivered| {
            let message = &delivered.message;
            !message.is_one_way && endpoint.keeps_too_much(message.rpc.session)
        };
        for delivered in self.accepted.take_if(waits) {
            self.unanswered = self.unanswered.saturating_sub(1);
            self.endpoint.unaccept(delivered.message);
        }
        self.note_untaken();
    }

    /// Tells the protocol how much of what it has given out waits here.
    fn note_untaken(&mut self) {
        self.endpoint.set_untaken(self.accepted.bytes());
    }

    /// An acceptor has gone. It may have been woken for a message: then the next one is.
    #[cfg(feature = "async")]
    pub(crate) fn stop_accepting(&mut self, ticket: u64) {
        self.acceptors.leave(ticket);
        if !self.accepted.is_empty() || self.endpoint.accept_queue_len() > 0 {
            self.woken.extend(self.acceptors.next());
        }
    }

    /// Wakes an acceptor for each message that has come, and one for requests that need not wait
    /// any more.
    pub(super) fn tell_arrivals(&mut self) {
        let arrived = self.endpoint.arrived();
        for _ in self.arrivals_told..arrived {
            self.turn.tell();
            self.woken.extend(self.acceptors.next());
        }
        self.arrivals_told = arrived;
        if !self.acceptors.is_empty() && self.endpoint.has_released_requests() {
            self.woken.extend(self.acceptors.next());
        }
    }

    /// Counts the messages that have left the protocol's accept queue.
    fn count_departures(&mut self) {
        let left = self.endpoint.arrived() - self.endpoint.accept_queue_len() as u64;
        let count = left - self.departures_counted;
        self.departures_counted = left;
        self.ends_turn |= self.turn.take(count as usize);
        self.peers.forget(left);
    }
}
