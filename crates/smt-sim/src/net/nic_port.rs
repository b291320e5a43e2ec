// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A NIC between a host's endpoint and its cable: the production driver, and the model of the
//! device, turned in a random order and reset now and then.
//!
//! Packets that arrive wait in the device for an interrupt, so that it can merge them. It opens
//! their records where it has the key.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use smt_carrier::{Arrival, Ecn, Marks, Path, Transmit};
use smt_nic::{Counters, Nic, NicConfig};
use smt_nic_driver::{
    ArrivedPacket, Driver, DriverConfig, DriverStatistics, NativePacket, NicKeys, OutgoingAddresses,
};
use smt_proto::{Time, TransmitBuffer};

use crate::net::capture::checksum;
use crate::net::packet::Packet;
use crate::net::watched_engine::WatchedEngine;
use crate::random::Random;

/// A NIC and its driver.
pub struct NicPort {
    driver: Driver,
    nic: Nic<WatchedEngine>,
    address: SocketAddr,
    /// The chance of a reset between two looks at the completions, in millionths.
    reset_chance: u32,
    random: Random,
    /// The batch that was taken last. The next one is taken when all of it has left.
    transmit: Option<Transmit>,
    /// Datagrams of the batch that the device has sent and the cable has not.
    ready: VecDeque<Vec<u8>>,
    /// The time from a packet's arrival to the interrupt.
    interrupt_delay: Duration,
    /// When the device's interrupt is due, by the network's clock.
    interrupt_at: Option<Time>,
    /// Whether there are receive queues.
    receives: bool,
    /// Packets that wait for it, and how many buffers a queue has.
    arrived: u32,
    buffers: u32,
}

/// The choices of a NIC and its driver.
#[derive(Clone, Copy, Debug)]
pub struct NicChoices {
    /// The driver's.
    pub driver: DriverConfig,
    /// The device's.
    pub device: NicConfig,
    /// The chance of a reset between two looks at the completions, in millionths.
    pub reset_chance: u32,
    /// The time from a packet's arrival to the interrupt.
    pub interrupt_delay: Duration,
}

impl NicPort {
    /// A port at this address, with the keys that the host's endpoint was told.
    pub fn new(
        choices: NicChoices,
        address: SocketAddr,
        keys: Arc<NicKeys>,
        engine: WatchedEngine,
        random: Random,
    ) -> Self {
        let mut nic = Nic::new(choices.device, engine);
        let driver = Driver::new(choices.driver, keys);
        driver.attach(&mut nic);
        Self {
            driver,
            nic,
            address,
            reset_chance: choices.reset_chance,
            random,
            transmit: None,
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
        self.driver.receive(&mut self.nic, &native(packet));
        if self.random.chance(self.reset_chance) {
            self.driver.reset(&mut self.nic);
        }
        self.arrived += 1;
        let delay = match self.arrived < self.buffers {
            true => self.interrupt_delay,
            false => Duration::ZERO,
        };
        let at = now + delay;
        self.interrupt_at = Some(self.interrupt_at.map_or(at, |due| due.min(at)));
    }

    /// Hands over what has arrived: merged packets, and those whose records the device has opened.
    pub(crate) fn interrupt(&mut self, sink: &mut dyn FnMut(Arrival<'_>)) {
        self.interrupt_at = None;
        self.arrived = 0;
        let Self { driver, nic, .. } = self;
        driver.take_arrivals(nic, &mut |ArrivedPacket { bytes, opened, .. }| {
            // A datagram without a place in the segment that it claims is dropped, as by any
            // carrier.
            let Ok(read) = NativePacket::parse(bytes, PROTOCOL) else {
                return;
            };
            let records = opened.map(|opened| opened.records(read.datagram.start));
            let path = Path::between(read.source, read.destination.ip());
            let marks = Marks {
                trimmed: false,
                ecn: Ecn::of_traffic_class(read.traffic_class),
            };
            let arrival = Arrival::datagram(path, &bytes[read.datagram]).with_marks(marks);
            sink(arrival.with_opened(records.as_deref().unwrap_or_default()));
        });
    }

    /// Lets a batch leave.
    pub(crate) fn send(&mut self, transmit: Transmit, buffer: &TransmitBuffer) {
        let addresses = OutgoingAddresses {
            source: self.address,
            destination: transmit.path.remote,
        };
        let batch = buffer.batch(&transmit, 0);
        let posted = self.driver.post(&mut self.nic, &batch, addresses);
        posted.expect("a batch of datagrams that a NIC can send");
        let queues = u64::from(self.driver.queues());
        while !self.driver.is_idle() {
            // Some steps of each queue, then a look at the completions.
            for _ in 0..self.random.below(8) {
                let queue = self.random.below(queues) as u16;
                self.step(queue);
            }
            if self.random.chance(self.reset_chance) {
                self.driver.reset(&mut self.nic);
            }
            self.driver.reap(&mut self.nic);
        }
        self.transmit = Some(transmit);
    }

    fn step(&mut self, queue: u16) {
        let ready = &mut self.ready;
        let mut wire = |packet: &[u8]| {
            let mut packet = packet.to_vec();
            let read = NativePacket::parse(&mut packet, PROTOCOL);
            let datagram = read.expect("a native packet").datagram;
            ready.push_back(packet[datagram].to_vec());
        };
        let step = self.driver.step(&mut self.nic, queue, &mut wire);
        assert!(step.is_ok(), "rings in the driver's own memory");
    }

    /// The next datagrams of one size, the last perhaps shorter, and how they leave.
    pub(crate) fn next_datagrams(&mut self) -> Option<(Transmit, Bytes)> {
        let transmit = self.transmit?;
        let mut bytes = self.ready.pop_front()?;
        let size = bytes.len();
        while let Some(next) = self.ready.front().filter(|next| next.len() <= size) {
            bytes.extend_from_slice(next);
            let is_shorter = next.len() < size;
            self.ready.pop_front();
            if is_shorter {
                break;
            }
        }
        let transmit = Transmit {
            segment_size: size,
            ..transmit
        };
        Some((transmit, bytes.into()))
    }
}

/// The native packet that has a datagram alone (SPEC §15.2).
fn native(packet: &Packet) -> Vec<u8> {
    let addresses = OutgoingAddresses {
        source: packet.from.address(),
        destination: packet.to.address(),
    };
    let headers = addresses.headers(PROTOCOL, packet.priority);
    let mut bytes = headers.expect("all hosts have addresses of IPv4");
    bytes.extend_from_slice(&packet.bytes);
    let length = u16::try_from(bytes.len()).expect("a datagram that fits a packet");
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    if packet.is_marked {
        bytes[1] |= CONGESTION_EXPERIENCED;
    }
    let sum = checksum(0, &bytes[..IP_HEADER]);
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// The IP protocol number of SMT.
const PROTOCOL: u8 = 253;
/// Bytes of an IPv4 header without options.
const IP_HEADER: usize = 20;
/// The code point of a congested queue (RFC 3168 §5).
const CONGESTION_EXPERIENCED: u8 = 0b11;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::packet::{HostId, Protocol};
    use smt_testkit::{CipherWatch, KeyWatch};

    struct Unwatched;

    impl CipherWatch for Unwatched {
        fn key(&self, _key: &[u8], _iv: &[u8; 12]) -> Box<dyn KeyWatch> {
            unreachable!("nothing is sealed")
        }
    }

    const INTERRUPT: Duration = Duration::from_micros(20);

    fn port(receive_buffers: u32) -> NicPort {
        let choices = NicChoices {
            driver: DriverConfig {
                receive_queues: 1,
                receive_buffers,
                ..DriverConfig::default()
            },
            device: NicConfig::default(),
            reset_chance: 0,
            interrupt_delay: INTERRUPT,
        };
        let engine = WatchedEngine::new(Box::new(Unwatched));
        let address = HostId(1).address();
        NicPort::new(choices, address, NicKeys::new(1), engine, Random::new(1))
    }

    /// A DATA packet of a message, with a payload of 1,000 bytes from this offset on.
    fn data(offset: u32, is_marked: bool) -> Packet {
        let mut bytes = vec![0; 36 + 1_000];
        bytes[1] = 0x01;
        bytes[4] = 0xB0;
        bytes[27] = 2;
        bytes[28..32].copy_from_slice(&1_000_000_u32.to_be_bytes());
        bytes[32..36].copy_from_slice(&offset.to_be_bytes());
        Packet {
            from: HostId(0),
            to: HostId(1),
            bytes: bytes.into(),
            priority: 3,
            is_marked,
            is_trimmed: false,
            entropy: 0,
            protocol: Protocol::Smt,
        }
    }

    /// Lengths and marks of what arrives.
    fn arrivals(port: &mut NicPort) -> Vec<(usize, Ecn)> {
        let mut arrivals = Vec::new();
        port.interrupt(&mut |arrival| {
            let local = HostId(1).address().ip();
            assert_eq!(arrival.path, Path::between(HostId(0).address(), local));
            arrivals.push((arrival.bytes.len(), arrival.marks.ecn));
        });
        arrivals
    }

    #[test]
    fn packets_of_one_message_wait_for_the_interrupt_and_arrive_as_one() {
        let (mut port, now) = (port(8), Time::from_nanos(1_000));
        port.receive(now, &data(0, false));
        port.receive(now + Duration::from_micros(5), &data(1_000, false));
        port.receive(now + Duration::from_micros(5), &data(2_000, true));
        assert_eq!(port.next_interrupt(), Some(now + INTERRUPT));
        let marked = (36 + 1_000, Ecn::Ce);
        assert_eq!(arrivals(&mut port), [(36 + 2_000, Ecn::NotEct), marked]);
        assert_eq!(port.next_interrupt(), None);
        assert_eq!(port.counters().packets_merged, 1);
    }

    #[test]
    fn the_interrupt_comes_at_once_when_a_queue_runs_out_of_buffers() {
        let (mut port, now) = (port(2), Time::from_nanos(1_000));
        port.receive(now, &data(0, false));
        assert_eq!(port.next_interrupt(), Some(now + INTERRUPT));
        port.receive(now, &data(5_000, false));
        assert_eq!(port.next_interrupt(), Some(now));
        assert_eq!(arrivals(&mut port).len(), 2);
        assert_eq!(port.counters().packets_dropped, 0);
    }
}
