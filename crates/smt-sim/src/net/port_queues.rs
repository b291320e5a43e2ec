// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The queues of a port, and which packet leaves first.

use std::collections::VecDeque;

use crate::net::packet::Protocol;
use crate::net::packet_pool::PacketHandle;

/// The order in which packets leave a port of a switch.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Scheduler {
    /// Strict priority: the most urgent first, whatever protocol.
    #[default]
    Priority,
    /// In the order in which they came.
    Fifo,
    /// SMT and TCP have half of the bytes each while both have something, by deficit round robin;
    /// the most urgent first in either half. Each half is a queue of its own, also where the length
    /// of a queue decides about marks and trimming.
    Fair,
}

/// The queues of a port.
#[derive(Debug, Default)]
pub(crate) struct PortQueues {
    scheduler: Scheduler,
    /// The first alone if the scheduler does not tell protocols apart.
    classes: [Levels; 2],
    /// The class whose turn it is.
    turn: usize,
    /// Bytes that each class may send before the turn is the other's.
    deficits: [u64; 2],
    /// Bytes that a turn adds: a full packet at least.
    quantum: u64,
}

/// A queue for each level of priority.
#[derive(Debug, Default)]
struct Levels {
    queues: [VecDeque<PacketHandle>; PRIORITIES],
    /// Which queues hold something, one bit each.
    occupied: u8,
    waiting: Waiting,
}

/// Bytes that wait.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) bytes: u64,
    /// Those of the highest priority among them.
    urgent: u64,
}

impl Waiting {
    /// Bytes that wait below the highest priority.
    pub(crate) fn below(self) -> u64 {
        self.bytes - self.urgent
    }
}

impl PortQueues {
    /// Queues for packets of so many bytes at most.
    pub(crate) fn new(scheduler: Scheduler, quantum: u64) -> Self {
        Self { scheduler, quantum, ..Self::default() }
    }

    pub(crate) fn push(&mut self, handle: PacketHandle, level: usize) {
        let level = match self.scheduler {
            Scheduler::Fifo => 0,
            Scheduler::Priority | Scheduler::Fair => level,
        };
        let class = self.class_of(handle.protocol);
        self.classes[class].push(handle, level);
    }

    /// Bytes that wait in the queue that a packet of this protocol would enter.
    pub(crate) fn waiting(&self, protocol: Protocol) -> Waiting {
        self.classes[self.class_of(protocol)].waiting
    }

    fn class_of(&self, protocol: Protocol) -> usize {
        match self.scheduler {
            Scheduler::Priority | Scheduler::Fifo => 0,
            Scheduler::Fair => usize::from(protocol == Protocol::Tcp),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.classes.iter().all(|levels| levels.occupied == 0)
    }

    /// The packet that leaves.
    pub(crate) fn pop(&mut self) -> Option<PacketHandle> {
        match self.scheduler {
            Scheduler::Priority | Scheduler::Fifo => self.classes[0].pop(),
            Scheduler::Fair => self.pop_fairly(),
        }
    }

    fn pop_fairly(&mut self) -> Option<PacketHandle> {
        if self.is_empty() {
            self.deficits = [0; 2];
            return None;
        }
        loop {
            let class = self.turn;
            match self.classes[class].front() {
                Some(length) if length <= self.deficits[class] => {
                    self.deficits[class] -= length;
                    return self.classes[class].pop();
                }
                Some(_) => {}
                // A class that has nothing saves nothing up.
                None => self.deficits[class] = 0,
            }
            self.turn = 1 - class;
            self.deficits[self.turn] += self.quantum.max(1);
        }
    }
}

impl Levels {
    fn push(&mut self, handle: PacketHandle, level: usize) {
        self.occupied |= 1 << level;
        self.waiting.bytes += u64::from(handle.length);
        if level == HIGHEST {
            self.waiting.urgent += u64::from(handle.length);
        }
        self.queues[level].push_back(handle);
    }

    fn highest(&self) -> Option<usize> {
        let level = 7u32.checked_sub(self.occupied.leading_zeros())?;
        Some(level as usize)
    }

    /// Bytes of the packet that leaves next.
    fn front(&self) -> Option<u64> {
        let front = self.queues[self.highest()?].front()?;
        Some(front.length.into())
    }

    fn pop(&mut self) -> Option<PacketHandle> {
        let level = self.highest()?;
        let queue = &mut self.queues[level];
        let handle = queue.pop_front()?;
        if queue.is_empty() {
            self.occupied &= !(1 << level);
        }
        self.waiting.bytes -= u64::from(handle.length);
        if level == HIGHEST {
            self.waiting.urgent -= u64::from(handle.length);
        }
        Some(handle)
    }
}

/// Levels of strict priority, as switches have.
pub(crate) const PRIORITIES: usize = 8;
const HIGHEST: usize = PRIORITIES - 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::packet::{HostId, Packet, wire_len};
    use crate::net::packet_pool::PacketPool;
    use bytes::Bytes;

    fn handle(protocol: Protocol, length: usize) -> PacketHandle {
        PacketPool::default().insert(Packet {
            from: HostId(0),
            to: HostId(1),
            bytes: Bytes::from(vec![0; length]),
            priority: 0,
            is_marked: false,
            is_trimmed: false,
            entropy: 0,
            protocol,
        })
    }

    /// Bytes of SMT and of TCP among the first so many packets, of lasting queues of both.
    fn shares(scheduler: Scheduler, tcp_level: usize) -> [u64; 2] {
        let mut queues = PortQueues::new(scheduler, wire_len(1_472));
        for _ in 0..1_000 {
            queues.push(handle(Protocol::Smt, 200), 3);
            queues.push(handle(Protocol::Tcp, 1_472), tcp_level);
        }
        let mut shares = [0; 2];
        for handle in std::iter::from_fn(|| queues.pop()).take(400) {
            shares[usize::from(handle.protocol == Protocol::Tcp)] += u64::from(handle.length);
        }
        shares
    }

    #[test]
    fn halves_are_of_bytes_whatever_the_packets_and_priorities() {
        for level in [0, 3, 7] {
            let [smt, tcp] = shares(Scheduler::Fair, level);
            assert!(smt.abs_diff(tcp) <= 2 * wire_len(1_472), "{smt} {tcp}");
        }
    }

    #[test]
    fn the_higher_priority_takes_all_and_a_queue_in_order_knows_none() {
        let priority = |level| shares(Scheduler::Priority, level);
        assert_eq!(priority(0)[1], 0);
        assert_eq!(priority(7)[0], 0);
        for level in [0, 7] {
            assert_eq!(shares(Scheduler::Fifo, level)[1], 200 * wire_len(1_472));
        }
    }

    #[test]
    fn halves_are_queues_of_their_own_and_other_schedulers_have_one() {
        for (scheduler, smt) in [(Scheduler::Fair, 0), (Scheduler::Priority, wire_len(900))] {
            let mut queues = PortQueues::new(scheduler, wire_len(1_472));
            queues.push(handle(Protocol::Tcp, 900), 0);
            assert_eq!(queues.waiting(Protocol::Smt).bytes, smt);
            queues.push(handle(Protocol::Smt, 100), 7);
            assert_eq!(queues.waiting(Protocol::Smt).below(), smt);
        }
    }

    #[test]
    fn a_class_that_had_nothing_has_saved_nothing_up() {
        let mut queues = PortQueues::new(Scheduler::Fair, wire_len(1_472));
        (0..100).for_each(|_| queues.push(handle(Protocol::Tcp, 1_472), 0));
        std::iter::from_fn(|| queues.pop()).take(50).for_each(|_| {});
        (0..50).for_each(|_| queues.push(handle(Protocol::Smt, 1_472), 0));
        let next: Vec<_> = std::iter::from_fn(|| queues.pop()).take(20).collect();
        let smt = next.iter().filter(|handle| handle.protocol == Protocol::Smt);
        assert!((9..=11).contains(&smt.count()));
    }
}
