// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The greedy host: a hoarder at each of its ports, and PINGs in all of their sessions, whether or
//! not anybody uses them.
//!
//! An endpoint sends no PING on its own where nothing is asked. With the null cipher a tag is the
//! name of a key and the packet's number: the host finds the name in what its endpoints have
//! sealed, and seals PINGs of later numbers.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use smt_proto::{Config, Time};
use smt_sim::net::{Burst, Host, HostId, Machine, Packet, Protocol, SmtHost};
use smt_wire::{Body, ControlHeader, ControlNumber, SessionIndex, TAG_LEN};

use super::hoarder::Hoarder;
use super::{Maker, SERVER};

pub(crate) struct Hoard {
    machine: Machine<SmtHost<Hoarder>>,
    pings_every: Option<Duration>,
    next: Time,
    rounds: u64,
    /// Names of control keys, by socket and the server's index of the session.
    keys: BTreeMap<(HostId, SessionIndex), KeyName>,
    pings: VecDeque<Burst>,
}

/// How it keeps its sessions alive.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Alive {
    /// By a PING in each of them, so often.
    Pings(Duration),
    /// By an empty one-way message in each of them, so often.
    Messages(Duration),
}

impl Hoard {
    /// A hoarder at each of so many ports of a host, of which each wants so many sessions.
    pub(crate) fn new(
        maker: &mut Maker,
        host: HostId,
        (ports, wants): (u8, usize),
        alive: Alive,
    ) -> Self {
        let (pings_every, sends_every) = match alive {
            Alive::Pings(every) => (Some(every), None),
            Alive::Messages(every) => (None, Some(every)),
        };
        let sockets = (0..ports).map(|port| {
            let socket = host.socket(0, port);
            let endpoint = maker.endpoint(socket, Config::default());
            let hoarder = Hoarder::new(wants, sends_every);
            (socket, SmtHost::new(socket, endpoint, hoarder))
        });
        Self {
            machine: Machine::new(sockets),
            pings_every,
            next: Time::default() + pings_every.unwrap_or_default(),
            rounds: 0,
            keys: BTreeMap::new(),
            pings: VecDeque::new(),
        }
    }

    /// Live sessions of all ports.
    pub(crate) fn sessions(&self) -> usize {
        let hosts = self.machine.sockets();
        hosts.map(|host| host.endpoint.sessions_len()).sum()
    }

    /// Sessions that it had and that have ended.
    pub(crate) fn lost(&self) -> usize {
        let hosts = self.machine.sockets();
        hosts.map(|host| host.application.lost).sum()
    }

    /// Finds the names of keys in what leaves.
    fn learn(&mut self, burst: &Burst) {
        for mut datagram in burst.bytes.chunks(burst.segment_size) {
            while let Ok((packet, rest)) = smt_wire::parse(smt_wire::VERSION, datagram) {
                if let smt_wire::Packet::Control(control) = packet
                    && let Some(tag) = control.sealed.last_chunk::<TAG_LEN>()
                {
                    let name = tag[..8].try_into().expect("half of a tag");
                    let of = (burst.from, control.header.session);
                    self.keys.insert(of, name);
                }
                datagram = rest;
            }
        }
    }

    fn ping(&mut self) {
        self.rounds += 1;
        let number = ControlNumber { stripe: 0, counter: BEYOND_ITS_OWN + self.rounds };
        for ((from, session), name) in &self.keys {
            let body = Body::Ping(self.rounds);
            let header = ControlHeader { epoch: 0, session: *session, number };
            let mut packet = vec![0; ControlHeader::packet_len(&body)];
            let length = header.emit(smt_wire::VERSION, &body, &mut packet);
            packet[length..][..8].copy_from_slice(name);
            packet[length..][8..].copy_from_slice(&number.to_u64().to_be_bytes());
            self.pings.push_back(Burst {
                from: *from,
                to: SERVER,
                segment_size: packet.len(),
                bytes: Bytes::from(packet),
                priority: 7,
                entropy: 0,
                protocol: Protocol::Smt,
            });
        }
    }
}

impl Host for Hoard {
    fn receive(&mut self, now: Time, packet: &Packet) {
        self.machine.receive(now, packet);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.machine.handle_timeout(now);
        if let Some(every) = self.pings_every
            && self.next <= now
        {
            self.next = now + every;
            self.ping();
        }
    }

    fn next_timeout(&self) -> Option<Time> {
        let pings = self.pings_every.map(|_| self.next);
        self.machine.next_timeout().into_iter().chain(pings).min()
    }

    fn transmit(&mut self, now: Time) -> Option<Burst> {
        if let Some(burst) = self.machine.transmit(now) {
            self.learn(&burst);
            return Some(burst);
        }
        self.pings.pop_front()
    }
}

/// The bytes of a key that the null cipher knows.
type KeyName = [u8; 8];

/// Control packets that its endpoints send in a session are fewer, and not so far behind that a
/// window forgets them.
const BEYOND_ITS_OWN: u64 = 700;
