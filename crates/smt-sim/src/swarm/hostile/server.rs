// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The server that is to hold too much, its application, and what both have allocated.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use smt_carrier::{Arrival, Path};
use smt_handshake::{HmacTokens, PlaintextProvider};
use smt_proto::{Endpoint, Event, RpcId, TakenPart, Time, TransmitBuffer};
use smt_wire::SessionIndex;

use super::Meter;
use super::case::{Case, Habits};
use crate::random::Random;

/// A server whose allocations are counted.
pub(super) struct Server<'a, M> {
    inner: Inner,
    meter: &'a M,
    /// The bytes that it has allocated and not freed.
    held: isize,
    /// The most of that since the last look.
    most: isize,
}

/// The parts whose memory is counted.
struct Inner {
    endpoint: Endpoint,
    habits: Habits,
    random: Random,
    /// Requests that the application works on.
    in_work: VecDeque<RpcId>,
    accepted: Option<SessionIndex>,
}

impl<'a, M: Meter> Server<'a, M> {
    pub(super) fn new(case: &Case, meter: &'a M) -> Self {
        let before = meter.current();
        let config = case.config.clone();
        let tokens = Arc::new(HmacTokens::new([2; 32]));
        let mut endpoint = Endpoint::new(config, Arc::new(PlaintextProvider), tokens);
        endpoint.queue_messages();
        let inner = Inner {
            endpoint,
            habits: case.habits,
            random: Random::new(case.seed ^ APPLICATION),
            in_work: VecDeque::new(),
            accepted: None,
        };
        let held = meter.current() as isize - before as isize;
        Self { inner, meter, held, most: held }
    }

    /// Bytes that it held at most since this was asked last.
    pub(super) fn most_held(&mut self) -> usize {
        let most = std::mem::replace(&mut self.most, self.held);
        usize::try_from(most).unwrap_or_default()
    }

    /// How many sessions it has.
    pub(super) fn sessions(&self) -> usize {
        self.inner.endpoint.sessions_len()
    }

    pub(super) fn receive(&mut self, now: Time, path: Path, datagram: &[u8]) {
        self.counted(|inner| {
            inner.endpoint.handle_arrival(now, Arrival::datagram(path, datagram));
            inner.take_events();
        });
    }

    /// Does what is due until `end`.
    pub(super) fn wait(&mut self, end: Time, buffer: &mut TransmitBuffer) {
        loop {
            let due = self.inner.endpoint.poll_timeout().map(|(due, _)| due);
            let Some(due) = due.filter(|due| *due <= end) else {
                return;
            };
            self.counted(|inner| {
                inner.endpoint.handle_timeout(due);
                inner.take_events();
            });
            self.send(due, buffer, |_| ());
        }
    }

    /// The application's turn.
    pub(super) fn work(&mut self, now: Time) {
        self.counted(|inner| inner.work(now));
    }

    /// Sends what is ready; `look` sees each datagram.
    pub(super) fn send(
        &mut self,
        now: Time,
        buffer: &mut TransmitBuffer,
        mut look: impl FnMut(&[u8]),
    ) {
        while let Some(transmit) = self.counted(|inner| inner.endpoint.poll_transmit(now, buffer)) {
            buffer.chunks(transmit.segment_size).for_each(&mut look);
        }
    }

    /// The session that has come to life since this was asked last.
    pub(super) fn take_accepted(&mut self) -> Option<SessionIndex> {
        self.inner.accepted.take()
    }

    fn counted<T>(&mut self, run: impl FnOnce(&mut Inner) -> T) -> T {
        let before = self.meter.current() as isize;
        self.meter.restart();
        let outcome = run(&mut self.inner);
        self.most = self.most.max(self.held + self.meter.most() as isize - before);
        self.held += self.meter.current() as isize - before;
        outcome
    }
}

impl Inner {
    fn take_events(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Accepted { session, .. } => self.accepted = Some(session),
                Event::SessionEnded { session, .. } => {
                    self.in_work.retain(|rpc| rpc.session != session);
                }
                Event::Cancelled(rpc) => self.in_work.retain(|other| *other != rpc),
                _ => {}
            }
        }
    }

    fn work(&mut self, now: Time) {
        if self.random.chance(self.habits.takes) {
            self.take_arrivals(now);
            self.take_parts();
        }
        if self.random.chance(self.habits.replies) {
            while let Some(rpc) = self.in_work.pop_front() {
                let length = self.random.between(0, self.habits.longest_reply.into());
                // A caller that has given up is told of as an error.
                let _ = self.endpoint.reply(now, rpc, Bytes::from(vec![3; length as usize]));
            }
        }
    }

    /// Takes the parts of all requests that it works on.
    fn take_parts(&mut self) {
        for rpc in &self.in_work {
            while let Ok(Some(TakenPart::Part(_))) = self.endpoint.take_part(*rpc) {}
        }
    }

    fn take_arrivals(&mut self, now: Time) {
        while self.in_work.len() < self.habits.workers
            && let Some(message) = self.endpoint.accept(now)
        {
            if !message.is_one_way {
                self.in_work.push_back(message.rpc);
            }
        }
    }
}

/// Keeps what the application draws apart from what the peer does.
const APPLICATION: u64 = 0xA99;
