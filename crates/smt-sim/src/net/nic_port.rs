// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A NIC between a host's endpoint and its cable: the production driver, and the model of the
//! device, turned in a random order and reset now and then.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use smt_carrier::Transmit;
use smt_nic::{Nic, NicConfig};
use smt_nic_driver::{
    Driver, DriverConfig, DriverStatistics, NativePacket, NicKeys, OutgoingAddresses,
};
use smt_proto::TransmitBuffer;

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
        }
    }

    /// The driver's work.
    pub fn statistics(&self) -> &DriverStatistics {
        self.driver.statistics()
    }

    /// Records that the device has sealed.
    pub fn records_sealed(&self) -> u64 {
        self.nic.counters().records_sealed
    }

    /// The device is reset no more.
    pub fn heal(&mut self) {
        self.reset_chance = 0;
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

/// The IP protocol number of SMT.
const PROTOCOL: u8 = 253;
