// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages of peers that wait to be accepted, and whoever waits for one: first come first on both sides.
//!
//! Not here: the bound on what waits (`smt-proto`, which is told the bytes).

use std::collections::VecDeque;
use std::task::Waker;

use crate::message::Arrival;

/// What has arrived.
#[derive(Default)]
pub(crate) struct Arrivals {
    waiting: VecDeque<Arrival>,
    bytes: usize,
    /// Whoever waits for a message, by ticket.
    acceptors: VecDeque<(u64, Waker)>,
    next_ticket: u64,
}

impl Arrivals {
    /// Adds a message, and wakes whoever is first.
    pub(crate) fn push(&mut self, arrival: Arrival) {
        self.bytes += cost(&arrival);
        self.waiting.push_back(arrival);
        self.wake_first();
    }

    /// Takes the first message that is still wanted; drops those before it.
    pub(crate) fn pop(&mut self, is_wanted: impl Fn(&Arrival) -> bool) -> Option<Arrival> {
        while let Some(arrival) = self.waiting.pop_front() {
            self.bytes -= cost(&arrival);
            if is_wanted(&arrival) {
                return Some(arrival);
            }
        }
        None
    }

    /// Memory of what waits.
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

    /// Wakes whoever is first, if a message waits.
    #[cfg(feature = "tokio")]
    pub(crate) fn wake_for_waiting(&mut self) {
        if !self.waiting.is_empty() {
            self.wake_first();
        }
    }

    /// Wakes all who wait.
    pub(crate) fn wake_all(&mut self) {
        for (_, acceptor) in self.acceptors.drain(..) {
            acceptor.wake();
        }
    }

    fn wake_first(&mut self) {
        if let Some((_, acceptor)) = self.acceptors.pop_front() {
            acceptor.wake();
        }
    }
}

fn cost(arrival: &Arrival) -> usize {
    size_of::<Arrival>() + arrival.body.len()
}
