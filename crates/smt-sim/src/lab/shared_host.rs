// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A host with SMT and byte streams on one cable.

use smt_proto::Time;

use super::messenger::{Arrival, Messenger};
use super::smt_messenger::SmtMessenger;
use super::stream_messenger::StreamMessenger;
use crate::net::packet::{HostId, Packet, Protocol};
use crate::net::world::{Burst, Host};

/// A host of both transports, which take turns at the cable.
pub(super) struct SharedHost {
    smt: SmtMessenger,
    tcp: StreamMessenger,
    is_turn_of_tcp: bool,
}

impl SharedHost {
    pub(super) fn new(smt: SmtMessenger, tcp: StreamMessenger) -> Self {
        Self { smt, tcp, is_turn_of_tcp: false }
    }

    /// SMT's sessions begin.
    pub(super) fn prepare(&mut self, now: Time, peers: &[HostId]) {
        self.smt.prepare(now, peers);
    }

    pub(super) fn is_ready(&self) -> bool {
        self.smt.is_ready()
    }

    pub(super) fn send(&mut self, now: Time, by: Protocol, to: HostId, length: u32) -> Option<u64> {
        match by {
            Protocol::Smt | Protocol::Psp => self.smt.send(now, to, length),
            Protocol::Tcp => self.tcp.send(now, to, length),
        }
    }

    /// Messages that have arrived since the last call.
    pub(super) fn take_arrivals(&mut self, taken: &mut Vec<(Protocol, Arrival)>) {
        let mut arrivals = Vec::new();
        self.smt.take_arrivals(&mut arrivals);
        taken.extend(arrivals.drain(..).map(|arrival| (Protocol::Smt, arrival)));
        self.tcp.take_arrivals(&mut arrivals);
        taken.extend(arrivals.drain(..).map(|arrival| (Protocol::Tcp, arrival)));
    }

    /// Questions for missing bytes: because a trimmed packet told of them, and by timers.
    pub(super) fn asked(&self) -> [u64; 2] {
        let statistics = self.smt.statistics().unwrap_or_default();
        [statistics.trimmed_asked, statistics.resends_asked]
    }
}

impl Host for SharedHost {
    fn receive(&mut self, now: Time, packet: &Packet) {
        match packet.protocol {
            Protocol::Smt | Protocol::Psp => self.smt.receive(now, packet),
            Protocol::Tcp => self.tcp.receive(now, packet),
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.smt.handle_timeout(now);
        self.tcp.handle_timeout(now);
    }

    fn next_timeout(&self) -> Option<Time> {
        let due = [self.smt.next_timeout(), self.tcp.next_timeout()];
        due.into_iter().flatten().min()
    }

    fn transmit(&mut self, now: Time) -> Option<Burst> {
        self.is_turn_of_tcp = !self.is_turn_of_tcp;
        let first: [&mut dyn Host; 2] = match self.is_turn_of_tcp {
            true => [&mut self.tcp, &mut self.smt],
            false => [&mut self.smt, &mut self.tcp],
        };
        first.into_iter().find_map(|host| host.transmit(now))
    }
}
