// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How datagrams and time move.

use std::collections::VecDeque;
use std::time::Duration;

use smt_proto::Time;
use smt_wire::SessionIndex;

use super::node::{Datagram, STRANGER};
use super::{Forgery, World};

impl World {
    /// Lets a datagram arrive, if there is a node.
    pub(crate) fn arrive(&mut self, datagram: &Datagram) {
        if datagram.to != STRANGER {
            self.nodes[datagram.to].receive(self.now, datagram);
            self.settle();
        }
    }

    /// Lets arrive what a switch has left of a datagram, if there is a node.
    pub(crate) fn arrive_trimmed(&mut self, datagram: &Datagram) {
        if datagram.to != STRANGER {
            self.nodes[datagram.to].receive_trimmed(self.now, datagram);
            self.settle();
        }
    }

    /// Lets the oldest datagrams arrive in order.
    pub(crate) fn arrive_oldest(&mut self, count: usize) {
        for datagram in self.in_flight.drain(..count.min(self.in_flight.len())).collect::<Vec<_>>()
        {
            self.arrive(&datagram);
        }
    }

    /// An earlier datagram, changed.
    pub(crate) fn forge(&self, which: usize, forgeries: &[Forgery]) -> Option<Datagram> {
        let mut datagram = self.history.get(which % self.history.len().max(1))?.clone();
        self.change(&mut datagram.bytes, forgeries);
        Some(datagram)
    }

    /// Changes bytes.
    pub(crate) fn change(&self, bytes: &mut Vec<u8>, forgeries: &[Forgery]) {
        forgeries.iter().for_each(|forgery| forgery.apply(bytes, &self.issued));
    }

    /// Lets time pass; nothing arrives.
    pub(crate) fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        self.serve_until(end, &mut VecDeque::new());
    }

    /// An honest network until `is_done`, at most for this time; datagrams in flight arrive.
    /// Whether it is done.
    pub(crate) fn run(&mut self, most: Duration, is_done: impl Fn(&Self) -> bool) -> bool {
        let end = self.now + most;
        let mut on_way = VecDeque::new();
        while !is_done(self) {
            let arrival = self.now + LATENCY;
            on_way.extend(self.in_flight.drain(..).map(|datagram| (arrival, datagram)));
            let next = on_way.front().map_or(end, |(arrival, _)| *arrival);
            let next = [Some(next), self.next_timer()].into_iter().flatten().min();
            let next = next.unwrap_or(end).min(end);
            self.serve_until(next, &mut on_way);
            if self.now >= end {
                break;
            }
        }
        self.in_flight.extend(on_way.into_iter().map(|(_, datagram)| datagram));
        is_done(self)
    }

    /// Serves timers, and lets arrive what is due, up to a moment.
    fn serve_until(&mut self, end: Time, on_way: &mut VecDeque<(Time, Datagram)>) {
        while let Some(due) = self.next_timer().filter(|due| *due < end) {
            self.now = self.now.max(due);
            self.serve_timers();
        }
        self.now = self.now.max(end);
        while on_way.front().is_some_and(|(arrival, _)| *arrival <= end) {
            if let Some((_, datagram)) = on_way.pop_front() {
                self.arrive(&datagram);
            }
        }
        self.serve_timers();
        self.check_deadlines();
        self.check_memory();
    }

    fn serve_timers(&mut self) {
        for node in &mut self.nodes {
            node.serve_timers(self.now);
        }
        self.settle();
    }

    fn next_timer(&self) -> Option<Time> {
        let timers = self.nodes.iter().filter_map(|node| node.endpoint.poll_timeout());
        timers.map(|(due, _)| due).min()
    }

    /// A node has sent something.
    pub(super) fn send(&mut self, datagram: Datagram) {
        self.watch.look(&datagram);
        self.sent_at[datagram.from].push(self.now);
        for place in [12..20, 20..28] {
            let named = datagram.bytes.get(place).and_then(|bytes| bytes.try_into().ok());
            let index = SessionIndex(named.map_or(0, u64::from_be_bytes));
            let is_index = index.boot() == 1 && index.serial() != 0;
            if is_index && !self.issued.contains(&index) && self.issued.len() < ISSUED_MAX {
                self.issued.push(index);
            }
        }
        if self.history.len() < HISTORY_MAX {
            self.history.push(datagram.clone());
        }
        // More is lost, as in a switch.
        if self.in_flight.len() < IN_FLIGHT_MAX {
            self.in_flight.push(datagram);
        }
    }
}

/// One way, when the network is honest.
const LATENCY: Duration = Duration::from_micros(50);
/// Indices to forge with.
const ISSUED_MAX: usize = 32;
/// Datagrams to forge with.
const HISTORY_MAX: usize = 512;
/// Datagrams on the way.
const IN_FLIGHT_MAX: usize = 2_048;
