// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Acceptors that wait for a peer's message, first come first served. The messages themselves wait
//! in the protocol's accept queue.

use std::collections::VecDeque;
use std::task::Waker;

/// Acceptors that wait, by ticket.
#[derive(Default)]
pub(crate) struct Acceptors {
    waiting: VecDeque<(u64, Waker)>,
    next_ticket: u64,
}

impl Acceptors {
    /// Waits for a message; keeps the place that a ticket has.
    pub(crate) fn wait(&mut self, ticket: &mut Option<u64>, waker: &Waker) {
        let ticket = *ticket.get_or_insert(self.next_ticket);
        self.next_ticket = self.next_ticket.max(ticket + 1);
        let mut waiting = self.waiting.iter_mut();
        match waiting.find(|(other, _)| *other == ticket) {
            Some((_, known)) => known.clone_from(waker),
            None => self.waiting.push_back((ticket, waker.clone())),
        }
    }

    /// This acceptor waits no longer.
    pub(crate) fn leave(&mut self, ticket: u64) {
        self.waiting.retain(|(other, _)| *other != ticket);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes the waker of the first acceptor, which leaves its place.
    #[must_use]
    pub(crate) fn next(&mut self) -> Option<Waker> {
        self.waiting.pop_front().map(|(_, waker)| waker)
    }

    /// Takes the wakers of all acceptors, which leave their places.
    pub(crate) fn leave_all(&mut self) -> impl Iterator<Item = Waker> {
        self.waiting.drain(..).map(|(_, waker)| waker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acceptor_that_waits_again_keeps_its_place() {
        let mut acceptors = Acceptors::default();
        let (mut first, mut second) = (None, None);
        acceptors.wait(&mut first, Waker::noop());
        acceptors.wait(&mut second, Waker::noop());
        acceptors.wait(&mut first, Waker::noop());
        assert_ne!(first, second);
        acceptors.leave(first.unwrap());
        assert!(acceptors.next().is_some() && acceptors.is_empty());
    }
}
