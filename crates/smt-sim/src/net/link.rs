// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One direction of a cable, with the queues in front of it.
//!
//! 1. [`Port::enqueue`] puts a packet into the queue of its priority.
//! 2. When the cable is free, [`Port::start`] takes the most urgent packet; it occupies the cable
//!    for its length.
//! 3. After that and the delay it arrives: [`Port::arrive`].
//!
//! Arrivals of a port are in the order of departures, so those under way are a queue too. The
//! policy of a switch for long queues is in `switch`.

use std::collections::VecDeque;
use std::time::Duration;

use smt_proto::Time;

use crate::net::packet::{HostId, Protocol, wire_len};
use crate::net::packet_pool::PacketHandle;
use crate::net::port_queues::{PRIORITIES, PortQueues, Scheduler, Waiting};

/// A cable.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Bits a second.
    pub rate: u64,
    /// From the last bit sent to its arrival, the receiver's own delay included.
    pub delay: Duration,
    /// Largest UDP payload.
    pub payload_max: usize,
}

/// Where a cable leads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Node {
    Host(HostId),
    Switch(u32),
}

/// The counts of a port.
#[derive(Clone, Copy, Debug, Default)]
pub struct PortStatistics {
    /// Packets sent.
    pub packets: u64,
    /// Bytes sent, on the wire.
    pub bytes: u64,
    /// Packets that a full buffer refused.
    pub dropped: u64,
    /// Packets larger than the link carries.
    pub too_large: u64,
    /// Packets trimmed to their first bytes.
    pub trimmed: u64,
    /// Packets marked.
    pub marked: u64,
    /// Longest queue in bytes.
    pub queue_max: u64,
}

/// The sending end of a cable.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) link: Link,
    pub(crate) to: Node,
    /// The switch that it belongs to, if it is no host's.
    pub(crate) switch: Option<u32>,
    queues: PortQueues,
    queued: u64,
    /// When the cable is free, in picoseconds: a byte at 400 Gb/s takes 20. Rounded up beside it.
    free_at: u64,
    free: Time,
    /// Picoseconds of a byte, if they are a whole number.
    byte_takes: Option<u64>,
    in_flight: VecDeque<(PacketHandle, Time)>,
    /// An event will start the next packet.
    pub(crate) is_woken: bool,
    pub(crate) statistics: PortStatistics,
}

impl Port {
    pub(crate) fn new(link: Link, to: Node, switch: Option<u32>) -> Self {
        let is_whole = BYTE_AT_ONE_BIT.is_multiple_of(link.rate);
        Self {
            byte_takes: is_whole.then(|| BYTE_AT_ONE_BIT / link.rate),
            link,
            to,
            switch,
            queues: PortQueues::default(),
            queued: 0,
            free_at: 0,
            free: Time::default(),
            in_flight: VecDeque::new(),
            is_woken: false,
            statistics: PortStatistics::default(),
        }
    }

    /// The same with this order of leaving.
    pub(crate) fn scheduled(mut self, scheduler: Scheduler) -> Self {
        self.queues = PortQueues::new(scheduler, wire_len(self.link.payload_max));
        self
    }

    pub(crate) fn enqueue(&mut self, handle: PacketHandle, priority: u8) {
        let level = match self.switch {
            // A host has decided itself which of its granted bytes leave first; each receiver has
            // its own priorities for them, and by those of another a short message's last packet
            // would wait for ever.
            None if priority <= GRANTED_MAX => 0,
            _ => usize::from(priority).min(PRIORITIES - 1),
        };
        let length = u64::from(handle.length);
        self.queued += length;
        self.statistics.queue_max = self.statistics.queue_max.max(self.queued);
        self.queues.push(handle, level);
    }

    /// Bytes that wait.
    pub(crate) fn queued(&self) -> u64 {
        self.queued
    }

    /// Bytes that wait in the queue that a packet of this protocol would enter.
    pub(crate) fn waiting(&self, protocol: Protocol) -> Waiting {
        self.queues.waiting(protocol)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// When the cable is free.
    pub(crate) fn free(&self) -> Time {
        self.free
    }

    pub(crate) fn is_free(&self, now: Time) -> bool {
        self.free <= now
    }

    /// Sends the most urgent packet; the cable must be free. Returns it with its arrival.
    pub(crate) fn start(&mut self, now: Time) -> Option<(PacketHandle, Time)> {
        let handle = self.queues.pop()?;
        let length = u64::from(handle.length);
        self.queued -= length;
        self.statistics.packets += 1;
        self.statistics.bytes += length;
        // Events are in whole nanoseconds: whoever waited for the cable begins when it was free,
        // not up to 1 ns later.
        let begins =
            if self.free == now { self.free_at } else { self.free_at.max(now.as_nanos() * PICOS) };
        // A division takes as long as all the rest.
        let takes = match self.byte_takes {
            Some(byte) => length * byte,
            None => length * BYTE_AT_ONE_BIT / self.link.rate,
        };
        self.free_at = begins + takes;
        self.free = Time::from_nanos(self.free_at.div_ceil(PICOS));
        Some((handle, self.free + self.link.delay))
    }

    /// The packet is under way; it arrives after all that are. Returns whether it is the only one:
    /// then somebody has to see to its arrival.
    pub(crate) fn launch(&mut self, handle: PacketHandle, arrives: Time) -> bool {
        self.in_flight.push_back((handle, arrives));
        self.in_flight.len() == 1
    }

    /// The packet that arrives now, and when the next one does.
    pub(crate) fn arrive(&mut self) -> Option<(PacketHandle, Option<Time>)> {
        let (handle, _) = self.in_flight.pop_front()?;
        let next = self.in_flight.front().map(|(_, arrives)| *arrives);
        Some((handle, next))
    }
}

/// The levels up to this one are for granted bytes (SPEC §9.2).
pub(crate) const GRANTED_MAX: u8 = 3;
/// Picoseconds of a nanosecond.
const PICOS: u64 = 1_000;
/// Picoseconds that a byte takes at one bit a second.
const BYTE_AT_ONE_BIT: u64 = 8 * 1_000_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::packet::{FRAME_OVERHEAD, Packet};
    use crate::net::packet_pool::PacketPool;
    use bytes::Bytes;

    fn port() -> Port {
        let link =
            Link { rate: 10_000_000_000, delay: Duration::from_nanos(500), payload_max: 1_472 };
        Port::new(link, Node::Switch(0), None)
    }

    /// A packet of this payload.
    fn handle(length: usize) -> PacketHandle {
        PacketPool::default().insert(Packet {
            from: HostId(0),
            to: HostId(1),
            bytes: Bytes::from(vec![0; length]),
            priority: 0,
            is_marked: false,
            is_trimmed: false,
            entropy: 0,
            protocol: Protocol::Smt,
        })
    }

    /// The payloads of all that wait, in their order.
    fn drained(port: &mut Port) -> Vec<u64> {
        std::iter::from_fn(|| port.start(Time::default()))
            .map(|(handle, _)| u64::from(handle.length) - FRAME_OVERHEAD)
            .collect()
    }

    #[test]
    fn most_urgent_packet_leaves_a_switch_first_and_equals_leave_in_order() {
        let mut port = port();
        port.switch = Some(0);
        for (length, priority) in [(100, 1), (200, 7), (300, 1), (400, 3)] {
            port.enqueue(handle(length), priority);
        }
        assert_eq!(drained(&mut port), [200, 400, 100, 300]);
        assert_eq!(port.waiting(Protocol::Smt).below(), 0);
        assert_eq!(port.queued(), 0);
    }

    #[test]
    fn granted_packets_of_a_host_keep_their_order() {
        let mut port = port();
        for (length, priority) in [(100, 0), (200, 3), (300, 5), (400, 1)] {
            port.enqueue(handle(length), priority);
        }
        assert_eq!(drained(&mut port), [300, 100, 200, 400]);
    }

    #[test]
    fn a_packet_occupies_the_cable_for_its_length() {
        let mut port = port();
        port.enqueue(handle(1_472), 0);
        port.enqueue(handle(1_472), 0);
        // 1,538 bytes at 10 Gb/s: 1,230.4 ns.
        let (_, first) = port.start(Time::default()).unwrap();
        assert_eq!(first.as_nanos(), 1_231 + 500);
        assert!(!port.is_free(Time::from_nanos(1_230)));
        assert!(port.is_free(port.free()));
        let (_, second) = port.start(port.free()).unwrap();
        assert_eq!(second.as_nanos(), 2_461 + 500);
    }
}
