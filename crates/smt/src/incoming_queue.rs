// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages of peers that wait to be accepted, and acceptors that wait for a message: first come
//! first on both sides, but requests of a peer that keeps too many replies wait until it has
//! acknowledged some (`backpressure`).
//!
//! Not here: the bound on the waiting messages (`smt-proto`, which is told their bytes).

use std::collections::VecDeque;
use std::task::Waker;

use smt_wire::SessionIndex;

use crate::backpressure::Backpressure;
use crate::message::Incoming;

/// The messages that have arrived and were not accepted yet.
#[derive(Default)]
pub(crate) struct IncomingQueue {
    waiting: VecDeque<Incoming>,
    backpressure: Backpressure<Incoming>,
    bytes: usize,
    /// Acceptors that wait for a message, by ticket.
    acceptors: VecDeque<(u64, Waker)>,
    next_ticket: u64,
}

impl IncomingQueue {
    /// Adds a message. Returns the waker of the first acceptor.
    #[must_use]
    pub(crate) fn push(&mut self, incoming: Incoming) -> Option<Waker> {
        self.bytes += cost(&incoming);
        self.waiting.push_back(incoming);
        self.next_acceptor()
    }

    /// How many messages wait and are not held back.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Takes back a request that was taken and has to wait after all.
    pub(crate) fn hold_back(&mut self, incoming: Incoming) {
        self.bytes += cost(&incoming);
        self.backpressure.push(incoming.rpc.session, incoming);
    }

    /// Takes the first message that is still wanted and need not wait; drops the unwanted messages
    /// before it.
    pub(crate) fn pop(
        &mut self,
        is_wanted: impl Fn(&Incoming) -> bool,
        keeps_too_much: impl Fn(SessionIndex) -> bool,
    ) -> Option<Incoming> {
        while let Some(incoming) = self.next(&keeps_too_much) {
            self.bytes -= cost(&incoming);
            if is_wanted(&incoming) {
                return Some(incoming);
            }
        }
        None
    }

    fn next(&mut self, keeps_too_much: impl Fn(SessionIndex) -> bool) -> Option<Incoming> {
        if let Some(incoming) = self.backpressure.pop(&keeps_too_much) {
            return Some(incoming);
        }
        while let Some(incoming) = self.waiting.pop_front() {
            let session = incoming.rpc.session;
            let waits = || self.backpressure.contains(session) || keeps_too_much(session);
            if incoming.is_one_way || !waits() {
                return Some(incoming);
            }
            self.backpressure.push(session, incoming);
        }
        None
    }

    /// Memory of the waiting messages.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Waits for a message; keeps the place that a ticket has.
    pub(crate) fn wait(&mut self, ticket: &mut Option<u64>, waker: &Waker) {
        let ticket = *ticket.get_or_insert(self.next_ticket);
        self.next_ticket = self.next_ticket.max(ticket + 1);
        let mut acceptors = self.acceptors.iter_mut();
        match acceptors.find(|(other, _)| *other == ticket) {
            Some((_, known)) => known.clone_from(waker),
            None => self.acceptors.push_back((ticket, waker.clone())),
        }
    }

    /// This acceptor waits no longer.
    pub(crate) fn leave(&mut self, ticket: u64) {
        self.acceptors.retain(|(other, _)| *other != ticket);
    }

    /// The waker of the first acceptor, if a message waits.
    #[cfg(feature = "tokio")]
    #[must_use]
    pub(crate) fn next_for_waiting(&mut self) -> Option<Waker> {
        if self.waiting.is_empty() {
            return None;
        }
        self.next_acceptor()
    }

    /// The waker of the first acceptor, if a request was held back that need not wait any more.
    #[must_use]
    pub(crate) fn next_for_held_back(
        &mut self,
        keeps_too_much: impl Fn(SessionIndex) -> bool,
    ) -> Option<Waker> {
        if self.acceptors.is_empty() || !self.backpressure.is_ready(keeps_too_much) {
            return None;
        }
        self.next_acceptor()
    }

    /// Takes the wakers of all acceptors, which leave their places.
    pub(crate) fn leave_all(&mut self) -> impl Iterator<Item = Waker> {
        self.acceptors.drain(..).map(|(_, acceptor)| acceptor)
    }

    /// Takes the waker of the first acceptor, which leaves its place.
    #[must_use]
    pub(crate) fn next_acceptor(&mut self) -> Option<Waker> {
        self.acceptors.pop_front().map(|(_, acceptor)| acceptor)
    }
}

/// Memory of a message that waits.
pub(crate) fn cost(incoming: &Incoming) -> usize {
    size_of::<Incoming>() + incoming.body.len()
}
