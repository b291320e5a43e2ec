// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hosts on a network: the loop that gives them packets and time, and takes what they send.
//!
//! A host's cable is filled only while little waits there, as a socket's send buffer would have it:
//! what is to leave next is decided as late as possible.

use bytes::Bytes;
use smt_proto::Time;

use crate::net::link::GRANTED_MAX;
use crate::net::network::{Network, Occurrence};
use crate::net::packet::{HostId, Packet, Protocol};

/// Whatever is at the end of a cable.
pub trait Host {
    /// Takes a packet.
    fn receive(&mut self, now: Time, packet: &Packet);
    /// Does what is due.
    fn handle_timeout(&mut self, now: Time);
    /// When that is.
    fn next_timeout(&self) -> Option<Time>;
    /// The next packets to leave.
    fn transmit(&mut self, now: Time) -> Option<Burst>;
}

/// Packets of equal size (the last may be shorter) to one host.
#[derive(Clone, Debug)]
pub struct Burst {
    /// The host's socket.
    pub from: HostId,
    /// To whom.
    pub to: HostId,
    /// Their UDP payloads, one after the other.
    pub bytes: Bytes,
    /// Bytes of each.
    pub segment_size: usize,
    /// 0 to 7.
    pub priority: u8,
    /// See [`Packet::entropy`].
    pub entropy: u64,
    /// See [`Packet::protocol`].
    pub protocol: Protocol,
}

/// Hosts and their network.
pub struct World<H> {
    /// The network between the hosts.
    pub network: Network,
    hosts: Vec<H>,
    /// The facts that are known of each host.
    watches: Vec<Watch>,
}

/// When a host has to be looked at.
#[derive(Clone, Copy, Debug, Default)]
struct Watch {
    /// The earliest alarm that is planned for it.
    alarm: Option<Time>,
    /// Until then it has nothing to send, unless something happens to it: it has said so, and its
    /// timers say when that changes.
    silent_until: Time,
}

impl<H: Host> World<H> {
    /// Hosts at the ends of a network's cables.
    pub fn new(network: Network, hosts: Vec<H>) -> Self {
        let watches = vec![Watch::default(); hosts.len()];
        let mut world = Self { network, hosts, watches };
        (0..world.hosts.len()).for_each(|host| world.settle(host, false));
        world
    }

    /// All hosts.
    pub fn hosts(&self) -> &[H] {
        &self.hosts
    }

    /// Puts another host at the next free cable.
    ///
    /// # Panics
    /// If the network has none.
    pub fn add(&mut self, host: H) {
        assert!(self.hosts.len() < self.network.hosts() as usize, "no cable is free");
        self.hosts.push(host);
        self.watches.push(Watch::default());
        self.settle(self.hosts.len() - 1, false);
    }

    /// Looks into a host in a way that does not change what it does.
    pub fn peek<T>(&mut self, host: HostId, look: impl FnOnce(&mut H) -> T) -> T {
        look(&mut self.hosts[host.0 as usize])
    }

    /// Changes a host from outside, and sees to what follows.
    pub fn change<T>(&mut self, host: HostId, change: impl FnOnce(&mut H, Time) -> T) -> T {
        let at = host.0 as usize;
        let result = change(&mut self.hosts[at], self.network.now());
        let is_silent = self.hand_over(at, SOCKET_QUEUE);
        self.settle(at, is_silent);
        result
    }

    /// Lets one thing happen, at most until `end`. Returns the host that it happened to.
    pub fn step(&mut self, end: Time) -> Option<HostId> {
        let occurrence = self.next(end)?;
        let now = self.network.now();
        let host = match occurrence {
            Occurrence::Packet(host, packet) => {
                let at = host.0 as usize;
                self.hosts[at].receive(now, &packet);
                let is_silent = self.hand_over(at, ANSWER_QUEUE);
                self.settle(at, is_silent);
                host
            }
            Occurrence::Writable(host) => {
                if now >= self.watches[host.0 as usize].silent_until {
                    self.settle(host.0 as usize, false);
                }
                host
            }
            Occurrence::Alarm(host) => {
                let at = host.0 as usize;
                let watch = &mut self.watches[at];
                watch.alarm = watch.alarm.filter(|alarm| *alarm > now);
                let mut is_silent = now < watch.silent_until;
                if self.hosts[at].next_timeout().is_some_and(|due| due <= now) {
                    self.hosts[at].handle_timeout(now);
                    is_silent = false;
                }
                self.settle(at, is_silent);
                host
            }
        };
        Some(host)
    }

    /// The next occurrence at a host; the end of a cable may have no host.
    fn next(&mut self, end: Time) -> Option<Occurrence> {
        loop {
            match self.network.next(end)? {
                Occurrence::Packet(host, _) if host.0 as usize >= self.hosts.len() => {}
                occurrence => return Some(occurrence),
            }
        }
    }

    /// Lets time pass.
    pub fn run_until(&mut self, end: Time) {
        while self.step(end).is_some() {}
    }

    /// Packets that follow from a packet or a wish leave at once, as a call of the socket would
    /// have it, unless more than `queue_max` waits at the cable. There they overtake less urgent
    /// packets. Returns whether the host has no more.
    fn hand_over(&mut self, at: usize, queue_max: u64) -> bool {
        let host = HostId(at as u32);
        while self.network.queued_at(host) < queue_max {
            let Some(burst) = self.hosts[at].transmit(self.network.now()) else {
                return true;
            };
            let is_granted = burst.priority <= GRANTED_MAX;
            self.send(burst);
            if is_granted {
                return false;
            }
        }
        false
    }

    /// Takes what a host has to send, unless it `is_silent`, and plans its next alarm.
    fn settle(&mut self, at: usize, mut is_silent: bool) {
        let (host, now) = (HostId(at as u32), self.network.now());
        while !is_silent && self.network.queued_at(host) < CABLE_QUEUE {
            match self.hosts[at].transmit(now) {
                Some(burst) => self.send(burst),
                None => is_silent = true,
            }
        }
        let due = self.hosts[at].next_timeout();
        let watch = &mut self.watches[at];
        watch.silent_until = match is_silent {
            true => due.unwrap_or(NEVER),
            false => Time::default(),
        };
        let Some(due) = due else {
            return;
        };
        let due = due.max(now);
        if watch.alarm.is_none_or(|alarm| due < alarm) {
            watch.alarm = Some(due);
            self.network.alarm(due, host);
        }
    }

    fn send(&mut self, mut burst: Burst) {
        while !burst.bytes.is_empty() {
            let bytes = match burst.bytes.len() > burst.segment_size {
                true => burst.bytes.split_to(burst.segment_size),
                false => std::mem::take(&mut burst.bytes),
            };
            self.network.send(Packet {
                from: burst.from,
                to: burst.to,
                bytes,
                priority: burst.priority,
                is_marked: false,
                is_trimmed: false,
                entropy: burst.entropy,
                protocol: burst.protocol,
            });
        }
    }
}

/// A host without timers.
const NEVER: Time = Time::from_nanos(u64::MAX);
/// More bytes than this at a host's cable, and it is asked for nothing: a full Ethernet frame,
/// beside the one under way.
const CABLE_QUEUE: u64 = 1_538;
/// If more bytes than this wait, no packet is taken that follows from a packet. These packets may
/// be granted bytes, which wait in order: many of them would hold up those of a shorter message.
const ANSWER_QUEUE: u64 = 4 * 1_538;
/// More bytes than this, and nothing is taken at all.
const SOCKET_QUEUE: u64 = 65_536;
