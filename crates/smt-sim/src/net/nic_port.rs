// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A NIC between a host's endpoint and its cable: the production driver, and the model of the
//! device, turned in a random order and reset now and then.
//!
//! Packets that arrive wait in the device for an interrupt, so that it can merge them. It opens
//! their records where it has the key, and whole packets of PSP.

mod sent_datagram;
mod wire_packet;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use smt_carrier::{Arrival, Associations, Batch, Ecn, Marks, Path};
use smt_nic::psp::{MasterKey, PspEngine};
use smt_nic::{Counters, Nic, NicConfig};
use smt_nic_driver::{
    ArrivedPacket, Driver, DriverConfig, DriverStatistics, NativePacket, NicKeys, OutgoingAddresses,
};
use smt_proto::Time;

use crate::net::packet::Packet;
use crate::net::watched_engine::WatchedEngine;
use crate::random::Random;
use sent_datagram::{Datagrams, SentDatagram};

/// A NIC and its driver.
pub struct NicPort {
    driver: Driver,
    nic: Nic<(WatchedEngine, PspEngine)>,
    address: SocketAddr,
    /// The chance of a reset at each look at the completions and at each packet that arrives, in
    /// millionths.
    reset_chance: u32,
    random: Random,
    /// Classes of priorities.
    classes: u8,
    /// Batches that are posted before any of them leaves, at most.
    batches_max: u32,
    /// Those that are posted and have not left.
    batches: u32,
    /// Datagrams that the device has sent and the cable has not.
    ready: VecDeque<SentDatagram>,
    /// The time from a packet's arrival to the interrupt.
    interrupt_delay: Duration,
    /// When the device's interrupt is due, by the network's clock.
    interrupt_at: Option<Time>,
    /// Whether there are receive queues.
    receives: bool,
    /// Packets that wait for the interrupt.
    arrived: u32,
    /// Buffers of a receive queue.
    buffers: u32,
}

/// The choices of a NIC and its driver.
#[derive(Clone, Copy, Debug)]
pub struct NicChoices {
    /// The driver's.
    pub driver: DriverConfig,
    /// The device's.
    pub device: NicConfig,
    /// The chance of a reset at each look at the completions and at each packet that arrives, in
    /// millionths.
    pub reset_chance: u32,
    /// Batches that are posted before any of them leaves, at most; at least 1. With 1 no class of
    /// priorities is ever before another, since each batch has one priority.
    pub batches_max: u32,
    /// The time from a packet's arrival to the interrupt.
    pub interrupt_delay: Duration,
}

impl NicPort {
    /// A port at this address, with the keys that the host's endpoint was told. Its device has no
    /// key of PSP yet ([`Self::rotate_device_key`]).
    pub fn new(
        choices: NicChoices,
        address: SocketAddr,
        keys: Arc<NicKeys>,
        engine: WatchedEngine,
        random: Random,
    ) -> Self {
        let mut nic = Nic::new(choices.device, (engine, PspEngine));
        let driver = Driver::new(choices.driver, keys);
        driver.attach(&mut nic);
        Self {
            driver,
            nic,
            address,
            reset_chance: choices.reset_chance,
            random,
            classes: choices.driver.priority_classes,
            batches_max: choices.batches_max,
            batches: 0,
            ready: VecDeque::new(),
            interrupt_delay: choices.interrupt_delay,
            interrupt_at: None,
            receives: choices.driver.receive_queues > 0,
            arrived: 0,
            buffers: choices.driver.receive_buffers,
        }
    }

    /// The driver's work.
    pub fn statistics(&self) -> &DriverStatistics {
        self.driver.statistics()
    }

    /// The device's work.
    pub fn counters(&self) -> &Counters {
        self.nic.counters()
    }

    /// The device's associations, if it seals packets.
    pub fn associations(&self) -> Option<Arc<dyn Associations>> {
        let associations = self.driver.associations()?;
        Some(associations)
    }

    /// Gives the device a fresh key of PSP, drawn by the port. Packets that wait for an interrupt
    /// are lost, as in production: their SPIs may be given anew.
    pub fn rotate_device_key(&mut self) {
        let mut key = [0; 32];
        self.random.fill(&mut key);
        self.driver.rotate_device_key(&mut self.nic, MasterKey::new(key));
        self.driver.take_arrivals(&mut self.nic, &mut |_| {});
        self.forget_arrivals();
    }

    /// The device is reset no more.
    pub fn heal(&mut self) {
        self.reset_chance = 0;
    }

    /// Whether it has a receive side. Packets pass by one that has none.
    pub(crate) fn receives(&self) -> bool {
        self.receives
    }

    /// When packets that have arrived are handed over, by the network's clock.
    pub(crate) fn next_interrupt(&self) -> Option<Time> {
        self.interrupt_at
    }

    /// Takes a datagram from the cable, as the native packet that it would be. The interrupt comes
    /// earlier before a queue has no buffer left.
    pub(crate) fn receive(&mut self, now: Time, packet: &Packet) {
        // Keys that were removed since the last packet open nothing more.
        self.driver.follow_keys(&mut self.nic);
        self.driver.receive(&mut self.nic, &wire_packet::from_cable(packet));
        self.arrived += 1;
        let delay = match self.arrived < self.buffers {
            true => self.interrupt_delay,
            false => Duration::ZERO,
        };
        let at = now + delay;
        self.interrupt_at = Some(self.interrupt_at.map_or(at, |due| due.min(at)));
        self.reset_at_times();
    }

    /// Hands over what has arrived: merged packets, and those whose records the device has opened.
    pub(crate) fn interrupt(&mut self, sink: &mut dyn FnMut(Arrival<'_>)) {
        self.forget_arrivals();
        let Self { driver, nic, .. } = self;
        driver.take_arrivals(nic, &mut |ArrivedPacket { bytes, opened, spi }| {
            // A datagram without a place in the segment that it claims is dropped, as by any
            // carrier, and so is a packet of PSP that the device has not opened.
            let Ok(read) = NativePacket::parse(bytes, wire_packet::SMT) else {
                return;
            };
            let records = opened.map(|opened| opened.records(read.datagram.start));
            let path = Path::between(read.source, read.destination.ip());
            let marks = Marks { trimmed: false, ecn: Ecn::of_traffic_class(read.traffic_class) };
            let arrival = Arrival::datagram(path, &bytes[read.datagram]).with_marks(marks);
            let arrival = arrival.with_opened(records.as_deref().unwrap_or_default());
            sink(arrival.with_spi(spi));
        });
    }

    /// Takes a batch. It leaves now, or with some that come after it ([`Self::leave`]).
    pub(crate) fn post(&mut self, batch: &Batch<'_>) {
        let addresses = OutgoingAddresses { source: self.address, destination: batch.path.remote };
        let posted = self.driver.post(&mut self.nic, batch, addresses);
        posted.expect("a batch of datagrams that a NIC can send");
        self.batches += 1;
        if self.batches >= self.batches_max {
            self.leave();
        }
    }

    /// Lets all batches leave that were posted. A device of several batches gives the classes of
    /// priorities precedence every other time.
    pub(crate) fn leave(&mut self) {
        if std::mem::take(&mut self.batches) == 0 {
            return;
        }
        let is_by_class = self.batches_max > 1 && self.random.chance(500_000);
        let mut rounds = 0;
        while !self.driver.is_idle() {
            rounds += 1;
            assert!(rounds < ROUNDS_MAX, "a NIC posts again and again what does not leave");
            // Some steps, then a look at the completions.
            let steps = self.random.below(8);
            match is_by_class {
                true => self.step_by_class(steps),
                false => self.step_in_any_order(steps),
            }
            self.reset_at_times();
            self.driver.reap(&mut self.nic);
        }
    }

    fn step_in_any_order(&mut self, steps: u64) {
        let queues = u64::from(self.driver.queues());
        for _ in 0..steps {
            let queue = self.random.below(queues) as u16;
            self.step(queue);
        }
    }

    /// The driver posts nothing meanwhile: no packet leaves after one of a lower class.
    fn step_by_class(&mut self, steps: u64) {
        let mut lowest = u8::MAX;
        for _ in 0..steps {
            let Some(queue) = self.nic.next_queue() else {
                break;
            };
            let before = self.ready.len();
            self.step(queue);
            for left in self.ready.range(before..) {
                let class = left.priority * self.classes / PRIORITIES;
                assert!(class <= lowest, "a packet was overtaken by a lower class");
                lowest = class;
            }
        }
    }

    fn step(&mut self, queue: u16) {
        let ready = &mut self.ready;
        let mut wire = |packet: &[u8]| ready.push_back(wire_packet::to_cable(packet));
        let step = self.driver.step(&mut self.nic, queue, &mut wire);
        assert!(step.is_ok(), "rings in the driver's own memory");
    }

    fn reset_at_times(&mut self) {
        if self.random.chance(self.reset_chance) {
            self.reset_now();
        }
    }

    /// Resets the device. Packets that wait for an interrupt are lost, and so is the interrupt.
    fn reset_now(&mut self) {
        self.driver.reset(&mut self.nic);
        self.forget_arrivals();
    }

    /// Nothing waits for an interrupt any more.
    fn forget_arrivals(&mut self) {
        self.arrived = 0;
        self.interrupt_at = None;
    }

    /// The next datagrams that leave the host at once.
    pub(crate) fn next_datagrams(&mut self) -> Option<Datagrams> {
        Datagrams::first_of(&mut self.ready)
    }
}

/// Priorities of batches, from 0 (SPEC §15.1).
const PRIORITIES: u8 = 8;
/// A hundred times as many rounds as four batches of the smallest datagrams need in 24 queues, of
/// which one has all of them.
const ROUNDS_MAX: u32 = 1_000_000;

#[cfg(test)]
mod tests;
