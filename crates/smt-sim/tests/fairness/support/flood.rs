// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A host that begins handshakes and finishes none: it shows the cookie that it is asked for, and
//! says no more.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use smt_proto::Time;
use smt_sim::net::{Burst, Host, HostId, Packet, Protocol};
use smt_wire::{Handshake, SessionIndex};

use super::SERVER;

pub(crate) struct Flood {
    host: HostId,
    ports: u8,
    /// From one attempt to the next.
    gap: Duration,
    next: Time,
    begun: u64,
    /// Cookies that it was given.
    pub(crate) cookies: u64,
    waiting: VecDeque<Burst>,
}

impl Flood {
    /// An attempt at a time, so long after the last, each from the next of its ports.
    pub(crate) fn new(host: HostId, ports: u8, gap: Duration) -> Self {
        Self {
            host,
            ports,
            gap,
            next: Time::default(),
            begun: 0,
            cookies: 0,
            waiting: VecDeque::new(),
        }
    }

    fn say(&mut self, from: HostId, source: SessionIndex, cookie: &[u8]) {
        // The beginning of a long flight: the server waits for the rest.
        let first = Handshake {
            destination: SessionIndex(0),
            source,
            flight: 1,
            cookie,
            flight_length: 9_000,
            offset: 0,
            fragment: &[1],
        };
        let mut bytes = vec![0; PADDED];
        first.emit(smt_wire::VERSION, PADDED, &mut bytes);
        self.waiting.push_back(Burst {
            from,
            to: SERVER,
            segment_size: PADDED,
            bytes: Bytes::from(bytes),
            priority: 7,
            entropy: 0,
            protocol: Protocol::Smt,
        });
    }
}

impl Host for Flood {
    fn receive(&mut self, _now: Time, packet: &Packet) {
        if let Ok((smt_wire::Packet::Cookie(cookie), _)) =
            smt_wire::parse(smt_wire::VERSION, &packet.bytes)
        {
            self.cookies += 1;
            self.say(packet.to, cookie.destination, cookie.cookie);
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.begun += 1;
        self.next = now + self.gap;
        let port = (self.begun % u64::from(self.ports)) as u8;
        self.say(self.host.socket(0, port), SessionIndex(self.begun), &[]);
    }

    fn next_timeout(&self) -> Option<Time> {
        Some(self.next)
    }

    fn transmit(&mut self, _now: Time) -> Option<Burst> {
        self.waiting.pop_front()
    }
}

/// A packet that a server answers has at least this many bytes (SPEC §6.2).
const PADDED: usize = 1_200;
