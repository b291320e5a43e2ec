// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A carrier with a NIC in it: batches go through the driver and the device, and the device's
//! packets to a carrier that moves IP packets.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smt_carrier::{
    Arrival, Associations, Batch, Capabilities, Carrier, Ecn, HeaderCopy, KeyStore, Marks, Path,
    Readiness, ReceiveError, Sealing, SendError, Wait,
};
use smt_nic::engine::Engine;
use smt_nic::psp::{GROWTH_BYTES, MasterKey};
use smt_nic::segmentation::SEGMENT_MAX;
use smt_nic::{Counters, Nic};
use smt_wire::native::NativeHeader;

use crate::arrived_packet::{ArrivedPacket, OpenedPacket};
use crate::associations::NicAssociations;
use crate::config::DriverConfig;
use crate::driver::{Driver, addresses_of};
use crate::ip_packet::NativePacket;
use crate::keys::NicKeys;
use crate::statistics::DriverStatistics;

/// A carrier with a NIC in it, over one whose datagrams are IP packets: a TUN device, or memory.
pub struct NicCarrier<C, E: Engine> {
    packets: C,
    /// Where peers reach this carrier.
    local: SocketAddr,
    protocol: u8,
    is_trusted: bool,
    /// Packets from the wire that the device gets before the host looks: no more than one queue
    /// has buffers for.
    packets_at_once: u32,
    keys: Arc<NicKeys>,
    associations: Option<Arc<NicAssociations>>,
    device: Mutex<Device<E>>,
}

impl<C, E: Engine> fmt::Debug for NicCarrier<C, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NicCarrier")
            .field("local", &self.local)
            .field("protocol", &self.protocol)
            .field("is_trusted", &self.is_trusted)
            .finish_non_exhaustive()
    }
}

struct Device<E: Engine> {
    driver: Driver,
    nic: Nic<E>,
}

impl<E: Engine> Device<E> {
    fn follow_keys(&mut self) {
        self.driver.follow_keys(&mut self.nic);
    }
}

impl<C: Carrier, E: Engine> NicCarrier<C, E> {
    /// A carrier at the address `local` over `packets`, through a device without queues. It has
    /// one receive queue at least, whatever `config` says.
    pub fn new(
        packets: C,
        local: SocketAddr,
        config: DriverConfig,
        keys: Arc<NicKeys>,
        mut nic: Nic<E>,
    ) -> Self {
        let config = DriverConfig { receive_queues: config.receive_queues.max(1), ..config };
        let driver = Driver::new(config, Arc::clone(&keys));
        driver.attach(&mut nic);
        Self {
            packets,
            local,
            protocol: config.protocol,
            is_trusted: config.is_trusted,
            packets_at_once: config.receive_buffers.max(1),
            keys,
            associations: driver.associations(),
            device: Mutex::new(Device { driver, nic }),
        }
    }

    /// The work of the driver so far.
    pub fn statistics(&self) -> DriverStatistics {
        *self.device().driver.statistics()
    }

    /// The work of the device so far.
    pub fn counters(&self) -> Counters {
        *self.device().nic.counters()
    }

    /// How many contexts the device has for sending.
    pub fn contexts(&self) -> usize {
        self.device().nic.contexts()
    }

    /// How many receive contexts the device has.
    pub fn receive_contexts(&self) -> usize {
        self.device().nic.receive_contexts()
    }

    /// Resets the device, which forgets all contexts and what is under way.
    pub fn reset_device(&self) {
        let Device { driver, nic } = &mut *self.device();
        driver.reset(nic);
    }

    /// Gives the device a fresh key of PSP, which must be random: its first one, or one in the
    /// place of the older of two. Without PSP it gets none. Before the first there are no
    /// associations.
    pub fn rotate_device_key(&self, fresh: MasterKey) {
        let Device { driver, nic } = &mut *self.device();
        driver.rotate_device_key(nic, fresh);
        // SPIs begin anew: packets that were opened under the key before must not wait until one of
        // theirs is another session's. They come again.
        driver.take_arrivals(nic, &mut |_| {});
    }

    fn device(&self) -> MutexGuard<'_, Device<E>> {
        self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn header_bytes(&self) -> usize {
        let ip = if self.local.is_ipv4() { 20 } else { 40 };
        ip + NativeHeader::LEN
    }

    /// Gives the device the packets that wait, and returns how many. The device is free while this
    /// waits for the first one. It is told of changed keys before it waits, and again before it
    /// takes packets: keys change meanwhile.
    fn fill_device(&self, wait: Wait) -> Result<usize, ReceiveError> {
        self.device().follow_keys();
        let mut came = 0;
        let mut take = |arrival: Arrival<'_>| {
            let device = &mut *self.device();
            device.follow_keys();
            let Device { driver, nic } = device;
            for packet in arrival.segments() {
                driver.receive(nic, packet);
                came += 1;
            }
        };
        let mut wait = wait;
        for _ in 0..self.packets_at_once {
            if self.packets.receive(&mut take, wait)? == 0 {
                break;
            }
            wait = Wait::Never;
        }
        Ok(came)
    }

    /// Hands over the arrival in an IP packet, if it is for this carrier.
    fn hand_over(&self, packet: ArrivedPacket<'_>, sink: &mut dyn FnMut(Arrival<'_>)) -> bool {
        let ArrivedPacket { bytes, opened, spi } = packet;
        let Some((arrival, at)) = self.arrival(bytes) else {
            return false;
        };
        let records = opened.map(|opened: OpenedPacket| opened.records(at));
        let arrival = arrival.with_opened(records.as_deref().unwrap_or_default());
        sink(arrival.with_spi(spi));
        true
    }

    /// The arrival in an IP packet, if it is for this carrier, and where its datagram begins.
    fn arrival<'a>(&self, packet: &'a mut [u8]) -> Option<(Arrival<'a>, usize)> {
        let read = NativePacket::parse(packet, self.protocol).ok()?;
        let local = self.local.ip();
        let is_own = local.is_unspecified() || local == read.destination.ip();
        if !is_own || read.destination.port() != self.local.port() {
            return None;
        }
        let path = Path::between(read.source, read.destination.ip());
        let marks = Marks { trimmed: false, ecn: Ecn::of_traffic_class(read.traffic_class) };
        let at = read.datagram.start;
        let arrival = Arrival::datagram(path, &packet[read.datagram]);
        Some((arrival.with_marks(marks), at))
    }
}

impl<C: Carrier, E: Engine + Send + Sync> Carrier for NicCarrier<C, E>
where
    E::Context: Send,
{
    fn send(&self, batch: &Batch<'_>) -> Result<(), SendError> {
        batch.assert_valid(&self.capabilities());
        let Device { driver, nic } = &mut *self.device();
        driver.post(nic, batch, addresses_of(batch, self.local))?;
        let mut outcome = Ok(());
        let mut wire = |packet: &[u8]| {
            let path = batch.path;
            let sent = self.packets.send(&Batch::datagrams(path, packet.len(), packet));
            // A packet that finds no room is lost, as on a wire.
            if let Err(error @ (SendError::TooLarge | SendError::Unreachable)) = sent {
                outcome = Err(error);
            }
        };
        if driver.run(nic, &mut wire).is_err() {
            driver.reset(nic);
        }
        outcome
    }

    fn receive(
        &self,
        sink: &mut dyn FnMut(Arrival<'_>),
        wait: Wait,
    ) -> Result<usize, ReceiveError> {
        let came = self.fill_device(wait)?;
        let mut count = 0;
        let Device { driver, nic } = &mut *self.device();
        driver.take_arrivals(nic, &mut |packet| {
            count += usize::from(self.hand_over(packet, sink));
        });
        // Packets of others came: there may be more.
        Ok(count.max(usize::from(came > 0)))
    }

    fn local_address(&self) -> SocketAddr {
        self.local
    }

    fn capabilities(&self) -> Capabilities {
        let packet_max = self.packets.capabilities().datagram_max;
        // IPv6 has no identification: a segment is two packets (SPEC §15.2).
        let segments = if self.local.is_ipv4() { 64 } else { 2 };
        let seals = match self.is_trusted {
            true => Sealing::WholeRecords,
            false => Sealing::No,
        };
        let is_psp = self.associations.is_some();
        let growth = if is_psp { GROWTH_BYTES } else { 0 };
        Capabilities::new(packet_max.saturating_sub(self.header_bytes() + growth))
            .with_seals_packets(is_psp)
            .with_segments_max(segments)
            .with_batch_max(SEGMENT_MAX)
            .with_headers(HeaderCopy::Replicated)
            .with_seals(seals)
            .with_priorities(true)
    }

    fn readiness(&self) -> Readiness<'_> {
        self.packets.readiness()
    }

    fn keys(&self) -> Option<Arc<dyn KeyStore>> {
        let keys = self.is_trusted.then(|| Arc::clone(&self.keys))?;
        Some(keys)
    }

    fn associations(&self) -> Option<Arc<dyn Associations>> {
        let associations = self.associations.as_ref().map(Arc::clone)?;
        Some(associations)
    }
}
