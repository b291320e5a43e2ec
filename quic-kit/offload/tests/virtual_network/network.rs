// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A network in memory: packets on their way, with loss, delay and forgeries by a seed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::setting::Setting;

/// A packet on its way.
#[derive(Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct OnTheWay {
    at: Instant,
    order: u64,
    pub(crate) is_to_server: bool,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) struct Network {
    queue: BinaryHeap<Reverse<OnTheWay>>,
    order: u64,
    random: u64,
    setting: Setting,
    from_client: u64,
    pub(crate) from_server: u64,
    /// Packets of the client with a short header at the head of their datagram.
    pub(crate) short_of_client: u64,
    /// The client has another address since it has moved.
    pub(crate) is_moved: bool,
}

impl Network {
    pub(crate) fn new(seed: u64, setting: Setting) -> Self {
        Self {
            queue: BinaryHeap::new(),
            order: 0,
            random: seed,
            setting,
            from_client: 0,
            from_server: 0,
            short_of_client: 0,
            is_moved: false,
        }
    }

    fn random(&mut self, limit: u64) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % limit
    }

    pub(crate) fn send(&mut self, now: Instant, is_to_server: bool, bytes: &[u8]) {
        let sent = match is_to_server {
            true => &mut self.from_client,
            false => &mut self.from_server,
        };
        *sent += 1;
        self.short_of_client += u64::from(is_to_server && bytes[0] & 0x80 == 0);
        if self.random(1_000) < self.setting.lost {
            return;
        }
        if !is_to_server && self.random(1_000) < self.setting.forged {
            let mut forged = bytes.to_vec();
            let at = self.random(forged.len() as u64) as usize;
            forged[at] ^= 1 << self.random(8);
            self.put(now + LATENCY, is_to_server, forged);
        }
        let mut at = now + LATENCY;
        if self.random(1_000) < self.setting.late {
            at += Duration::from_micros(self.random(1_000));
        }
        self.put(at, is_to_server, bytes.to_vec());
    }

    fn put(&mut self, at: Instant, is_to_server: bool, bytes: Vec<u8>) {
        self.order += 1;
        self.queue.push(Reverse(OnTheWay { at, order: self.order, is_to_server, bytes }));
    }

    /// The next packet that has come by now.
    pub(crate) fn arrived(&mut self, now: Instant) -> Option<OnTheWay> {
        let is_here = self.next().is_some_and(|at| at <= now);
        let packet = if is_here { self.queue.pop() } else { None };
        packet.map(|Reverse(packet)| packet)
    }

    /// When the next packet comes.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.queue.peek().map(|packet| packet.0.at)
    }

    /// The address that the server sees.
    pub(crate) fn client(&self) -> SocketAddr {
        let after = self.setting.rebind_after;
        let is_rebound = after.is_some_and(|of| self.from_client > of) || self.is_moved;
        SocketAddr::from(([127, 0, 0, 1], if is_rebound { 5_001 } else { 5_000 }))
    }
}

const LATENCY: Duration = Duration::from_millis(1);
