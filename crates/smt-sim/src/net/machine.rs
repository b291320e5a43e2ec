// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A host with several sockets at one cable, each with an endpoint and an application of its own.

use smt_proto::Time;

use crate::net::packet::{HostId, Packet};
use crate::net::world::{Burst, Host};

/// A machine that has all sockets of a host. They send in turn.
pub struct Machine<H> {
    sockets: Vec<(HostId, H)>,
    /// Whose turn it is to send.
    turn: usize,
}

impl<H: Host> Machine<H> {
    /// A host that takes, at each of these sockets ([`HostId::socket`]), what is sent there.
    pub fn new(sockets: impl IntoIterator<Item = (HostId, H)>) -> Self {
        Self { sockets: sockets.into_iter().collect(), turn: 0 }
    }

    /// Returns the hosts at its sockets.
    pub fn sockets(&self) -> impl Iterator<Item = &H> {
        self.sockets.iter().map(|(_, at)| at)
    }

    /// The same, to be changed.
    pub fn sockets_mut(&mut self) -> impl Iterator<Item = &mut H> {
        self.sockets.iter_mut().map(|(_, at)| at)
    }
}

impl<H: Host> Host for Machine<H> {
    fn receive(&mut self, now: Time, packet: &Packet) {
        let socket = self.sockets.iter_mut();
        for (_, at) in socket.filter(|(id, _)| *id == packet.to) {
            at.receive(now, packet);
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        for at in self.sockets_mut() {
            if at.next_timeout().is_some_and(|due| due <= now) {
                at.handle_timeout(now);
            }
        }
    }

    fn next_timeout(&self) -> Option<Time> {
        self.sockets().filter_map(Host::next_timeout).min()
    }

    fn transmit(&mut self, now: Time) -> Option<Burst> {
        let count = self.sockets.len();
        (0..count).find_map(|_| {
            let at = self.turn;
            self.turn = (at + 1) % count;
            self.sockets[at].1.transmit(now)
        })
    }
}
