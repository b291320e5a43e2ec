// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two hosts whose carriers have a device each, and messages between them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use smt_carrier::{Arrival, AssociationHandle, Batch, Carrier, Layout, Path, Wait};
use smt_nic::context_memory::ContextLimits;
use smt_nic::engine::Engine;
use smt_nic::psp::{MasterKey, PspEngine};
use smt_nic::tls::TlsEngine;
use smt_nic::{Nic, NicConfig};
use smt_nic_driver::{DriverConfig, NicCarrier, NicKeys};

use super::wire::{SECRET, WireEnd, WireWatch};

/// The engines of a device with PSP.
pub(crate) type Engines = (TlsEngine, PspEngine);
/// A carrier with a device of these engines.
pub(crate) type Host<E = Engines> = NicCarrier<Arc<WireEnd>, E>;

/// Two hosts.
pub(crate) struct Pair<E: Engine = Engines> {
    pub(crate) near: Host<E>,
    pub(crate) far: Host,
    pub(crate) watch: WireWatch,
}

/// The datagrams that have arrived: their SPI and their bytes.
pub(crate) type Arrived = Vec<(Option<u32>, Vec<u8>)>;

impl Pair {
    pub(crate) fn new() -> Self {
        Self::with(true, 1_000)
    }

    /// Hosts that speak this version of IP, whose devices have room for so many contexts.
    pub(crate) fn with(is_v4: bool, contexts_max: usize) -> Self {
        let config = DriverConfig { psp: true, ..DriverConfig::default() };
        Self::of(is_v4, config, contexts_max, (TlsEngine, PspEngine))
    }
}

impl<E: Engine + Send + Sync> Pair<E>
where
    E::Context: Send,
{
    /// Hosts of which the near one has this driver and this engine.
    pub(crate) fn of(is_v4: bool, near: DriverConfig, contexts_max: usize, engine: E) -> Self {
        let addresses = match is_v4 {
            true => ["192.0.2.1:7000", "192.0.2.2:9000"],
            false => ["[2001:db8::1]:7000", "[2001:db8::2]:9000"],
        };
        let [here, there] = addresses.map(|address| address.parse::<SocketAddr>().unwrap());
        let watch = WireWatch::default();
        let [here, there] = WireEnd::pair(here, there, &watch);
        let far = DriverConfig { psp: true, ..DriverConfig::default() };
        let pair = Self {
            near: host(here, near, contexts_max, engine),
            far: host(there, far, contexts_max, (TlsEngine, PspEngine)),
            watch,
        };
        pair.far.rotate_device_key(MasterKey::new([2; 32]));
        pair
    }

    /// Installs a fresh association of the far device at the near one: its handle and its SPI.
    pub(crate) fn associate(&self) -> (AssociationHandle, u32) {
        let association = self.far.associations().unwrap().allocate(0).unwrap();
        let spi = association.spi;
        let near = self.near.associations().unwrap();
        (near.install(association).unwrap(), spi)
    }

    /// Sends a message from the near host, cut by its device.
    pub(crate) fn send(&self, under: Option<AssociationHandle>, id: u64, bytes: usize) {
        let (header, stream) = (header(id, bytes), stream(bytes));
        let batch = Batch {
            layout: Layout::Segmented {
                header: &header,
                payload_max: bytes.div_ceil(2).clamp(1, 1_300),
            },
            association: under,
            ..Batch::datagrams(Path::to(self.far.local_address()), 1, &stream)
        };
        self.near.send(&batch).unwrap();
    }

    /// Sends a control packet from the near host.
    pub(crate) fn send_control(&self, under: Option<AssociationHandle>) {
        let bytes = control();
        let batch = Batch {
            association: under,
            ..Batch::datagrams(Path::to(self.far.local_address()), bytes.len(), &bytes)
        };
        self.near.send(&batch).unwrap();
    }

    /// All that has come to the far host.
    pub(crate) fn receive(&self) -> Arrived {
        let mut arrived = Vec::new();
        let mut sink = |of: Arrival<'_>| arrived.push((of.spi, of.bytes.to_vec()));
        while self.far.receive(&mut sink, Wait::Never).unwrap() > 0 {}
        arrived
    }
}

fn host<E: Engine + Send + Sync>(
    wire: Arc<WireEnd>,
    config: DriverConfig,
    contexts_max: usize,
    engine: E,
) -> Host<E>
where
    E::Context: Send,
{
    let device = NicConfig {
        contexts: ContextLimits { contexts_max, cached_max: 4 },
        ..NicConfig::default()
    };
    let local = wire.local_address();
    NicCarrier::new(wire, local, config, NicKeys::new(100), Nic::new(device, engine))
}

/// The DATA header of a message.
pub(crate) fn header(id: u64, bytes: usize) -> [u8; 36] {
    let mut header = [0; 36];
    (header[0], header[1], header[4]) = (0x81, 0x01, 0xB0);
    header[20..28].copy_from_slice(&id.to_be_bytes());
    header[28..32].copy_from_slice(&(bytes as u32).to_be_bytes());
    header
}

/// A record stream of which each eighth byte tells its place, and the others are secret.
pub(crate) fn stream(bytes: usize) -> Vec<u8> {
    let mut stream = vec![SECRET[0]; bytes];
    let places = stream.iter_mut().enumerate().skip(8).step_by(9);
    places.for_each(|(at, byte)| *byte = (at / 9) as u8);
    stream
}

/// A control packet with a secret in it.
pub(crate) fn control() -> Vec<u8> {
    let mut packet = vec![0; 28];
    (packet[0], packet[1], packet[4]) = (0x81, 0x02, 0x90);
    packet.extend(SECRET.repeat(4));
    packet
}

/// Whether the arrivals are this message, all of it under this SPI.
pub(crate) fn is_message(arrived: &Arrived, spi: Option<u32>, id: u64, bytes: usize) -> bool {
    let mut parts = BTreeMap::new();
    for (of, datagram) in arrived {
        if datagram[1] != 1 || datagram[20..28] != id.to_be_bytes() {
            continue;
        }
        if *of != spi {
            return false;
        }
        let offset = u32::from_be_bytes(datagram[32..36].try_into().unwrap());
        parts.extend((offset as usize..).zip(datagram[36..].iter().copied()));
    }
    parts.keys().copied().eq(0..bytes) && parts.into_values().eq(stream(bytes))
}
