// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The work of a message, counted while the driver and the model of a NIC send it.

use std::sync::Arc;

use smt_carrier::{Batch, KeyHandle, KeyStore, Layout, Path, Unsealed};
use smt_nic::context_memory::ContextLimits;
use smt_nic::tls::TlsEngine;
use smt_nic::{Counters, Nic, NicConfig};
use smt_nic_driver::{Driver, DriverConfig, NicKeys, OutgoingAddresses};

/// The work that a NIC takes over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Offload {
    /// No work: the host hands over packets.
    Packets,
    /// It cuts segments of two packets, as over IPv6.
    Pairs,
    /// It cuts segments of up to 64 KB (TSO).
    Segments,
    /// It cuts segments and seals their records.
    SegmentsAndTls,
}

impl Offload {
    /// All of them, from the least work to the most.
    pub const ALL: [Self; 4] = [Self::Packets, Self::Pairs, Self::Segments, Self::SegmentsAndTls];

    /// The name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Packets => "none",
            Self::Pairs => "pairs",
            Self::Segments => "TSO",
            Self::SegmentsAndTls => "TSO, TLS",
        }
    }

    /// Whether the host seals.
    #[must_use]
    pub fn is_sealed_by_host(self) -> bool {
        self != Self::SegmentsAndTls
    }

    /// Packets of one segment at most.
    fn packets_max(self) -> usize {
        match self {
            Self::Packets => 1,
            Self::Pairs => 2,
            Self::Segments | Self::SegmentsAndTls => usize::MAX,
        }
    }
}

/// A network, and what the NIC does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Setup {
    /// The longest IP packet.
    pub mtu: usize,
    /// The NIC's work.
    pub offload: Offload,
}

/// The work of one message, on average.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MessageWork {
    /// Descriptors that the host has written.
    pub descriptors: f64,
    /// Bytes that crossed PCIe, both ways.
    pub pcie_bytes: f64,
    /// Segments that passed the host's stack.
    pub segments: f64,
    /// Packets on the wire.
    pub packets: f64,
    /// Bytes of those packets.
    pub packet_bytes: f64,
    /// Contexts whose record number was set anew.
    pub resyncs: f64,
    /// Uses of a context that was in the device's memory.
    pub context_hits: f64,
    /// Uses of a context that had to be read from host memory.
    pub context_misses: f64,
}

/// Counts the work of messages of this length in one session.
#[must_use]
pub fn of_message(length: usize, setup: Setup) -> MessageWork {
    of_sessions(length, setup, Sessions { count: 1, cached: 256 })
}

/// Sessions whose messages take turns.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Sessions {
    /// How many there are.
    pub count: usize,
    /// Contexts in the device's own memory.
    pub cached: usize,
}

/// Counts the work of messages of sessions that take turns, when all their contexts exist.
///
/// # Panics
/// If the driver has room for fewer than so many sessions.
#[must_use]
pub fn of_sessions(length: usize, setup: Setup, sessions: Sessions) -> MessageWork {
    let mut scene = Scene::new(sessions);
    let records = records(length);
    // The first message of a session in a queue makes its context there.
    let warming = u64::from(scene.driver.queues());
    let counted = MESSAGES.div_ceil(sessions.count as u64);
    let mut id = 0;
    let mut send = |scene: &mut Scene, rounds: u64| {
        for _ in 0..rounds {
            id += 2;
            for session in 0..sessions.count {
                scene.send(session, id, &records, setup);
            }
        }
    };
    send(&mut scene, warming);
    let before = *scene.nic.counters();
    send(&mut scene, counted);
    mean(&before, scene.nic.counters(), counted * sessions.count as u64)
}

/// The mean of the work between two looks at the counters.
fn mean(before: &Counters, after: &Counters, messages: u64) -> MessageWork {
    let each =
        |count: fn(&Counters) -> u64| (count(after) - count(before)) as f64 / messages as f64;
    MessageWork {
        descriptors: each(|of| of.descriptors),
        pcie_bytes: each(|of| of.dma_read_bytes + of.dma_written_bytes),
        segments: each(|of| of.segments),
        packets: each(|of| of.packets),
        packet_bytes: each(|of| of.packet_bytes),
        resyncs: each(|of| of.resyncs),
        context_hits: each(|of| of.context_hits),
        context_misses: each(|of| of.context_misses),
    }
}

/// Bytes of plaintext of the records of a message of this length, its framing among them.
#[must_use]
pub fn records(length: usize) -> Vec<usize> {
    let inner = length + FRAMING;
    let whole = vec![RECORD; inner / RECORD];
    let rest = Some(inner % RECORD).filter(|rest| *rest > 0);
    whole.into_iter().chain(rest).collect()
}

/// A driver, a device, and a key for each session.
struct Scene {
    driver: Driver,
    nic: Nic<TlsEngine>,
    keys: Vec<KeyHandle>,
    addresses: OutgoingAddresses,
}

impl Scene {
    fn new(sessions: Sessions) -> Self {
        let store = NicKeys::new(sessions.count);
        let config = DriverConfig {
            offload_bytes_min: 0,
            waiting_max: 100_000,
            contexts_per_queue: sessions.count,
            ..DriverConfig::default()
        };
        let driver = Driver::new(config, Arc::clone(&store));
        let contexts = ContextLimits {
            contexts_max: sessions.count * usize::from(config.queues),
            cached_max: sessions.cached,
        };
        let device = NicConfig { contexts, ..NicConfig::default() };
        let mut nic = Nic::new(device, TlsEngine);
        driver.attach(&mut nic);
        let key = |_| store.install(AES_128_GCM, &[7; 16], [9; 12]).expect("room for a key");
        let address = |text: &str| text.parse().expect("an address");
        Self {
            driver,
            nic,
            keys: (0..sessions.count).map(key).collect(),
            addresses: OutgoingAddresses {
                source: address("192.0.2.1:7"),
                destination: address("192.0.2.2:9"),
            },
        }
    }

    /// Sends a message whose records have so many bytes of plaintext.
    fn send(&mut self, session: usize, id: u64, records: &[usize], setup: Setup) {
        let mut header = [0; 36];
        header[1] = 0x01;
        header[4] = 0xB0;
        header[20..28].copy_from_slice(&id.to_be_bytes());
        let mut stream = Stream::default();
        for (index, bytes) in (0..).zip(records) {
            if stream.bytes.len() + bytes + OVERHEAD > STREAM_MAX {
                self.post(&header, setup, &stream);
                stream = Stream::default();
            }
            stream.push(*bytes, self.keys[session], id << 16 | index);
        }
        self.post(&header, setup, &stream);
        let run = self.driver.run(&mut self.nic, &mut |_| {});
        run.expect("rings in the driver's own memory");
    }

    fn post(&mut self, header: &[u8; 36], setup: Setup, stream: &Stream) {
        let payload = setup.mtu - HEADERS;
        let segment = payload.saturating_mul(setup.offload.packets_max());
        for part in stream.bytes.chunks(segment) {
            let is_sealed = setup.offload.is_sealed_by_host();
            let batch = Batch {
                layout: Layout::Segmented { header, payload_max: payload },
                unsealed: if is_sealed { &[] } else { &stream.unsealed },
                ..Batch::datagrams(Path::to(self.addresses.destination), 1, part)
            };
            let posted = self.driver.post(&mut self.nic, &batch, self.addresses);
            posted.expect("room in the rings");
        }
    }
}

/// Records that leave at once.
#[derive(Default)]
struct Stream {
    bytes: Vec<u8>,
    unsealed: Vec<Unsealed>,
}

impl Stream {
    fn push(&mut self, bytes: usize, key: KeyHandle, number: u64) {
        let length = (bytes + 1 + TAG) as u16;
        self.bytes.extend_from_slice(&[0x17, 3, 3]);
        self.bytes.extend_from_slice(&length.to_be_bytes());
        self.unsealed.push(Unsealed {
            at: self.bytes.len() as u32,
            length: bytes as u32 + 1,
            key,
            number,
        });
        self.bytes.resize(self.bytes.len() + bytes + 1 + TAG, 0);
    }
}

/// TLS_AES_128_GCM_SHA256, the paper's suite.
const AES_128_GCM: u16 = 0x1301;
/// Bytes of a record's plaintext at most (SPEC §6.3), and what a record has beyond it.
const RECORD: usize = 16_384;
const TAG: usize = 16;
const OVERHEAD: usize = 5 + 1 + TAG;
/// Bytes of a message beyond its body, within its records.
const FRAMING: usize = 40;
/// Bytes of a packet before its payload.
const HEADERS: usize = 64;
/// Bytes of a stream that leaves at once.
const STREAM_MAX: usize = 65_000;
/// Messages that are counted.
const MESSAGES: u64 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn work(length: usize, offload: Offload) -> MessageWork {
        of_message(length, Setup { mtu: 1_500, offload })
    }

    #[test]
    fn a_nic_cuts_the_same_packets_of_fewer_segments() {
        let works = Offload::ALL.map(|offload| work(8_192, offload));
        assert_eq!(works.map(|work| work.packets), [6.0; 4]);
        assert_eq!(works.map(|work| work.segments), [6.0, 3.0, 1.0, 1.0]);
    }

    #[test]
    fn each_message_costs_a_resync_where_the_nic_seals_and_none_elsewhere() {
        assert_eq!(work(1_024, Offload::Segments).resyncs, 0.0);
        let sealed = work(1_024, Offload::SegmentsAndTls);
        assert_eq!((sealed.resyncs, sealed.context_misses), (1.0, 0.0));
        assert!(sealed.descriptors > work(1_024, Offload::Segments).descriptors);
    }

    #[test]
    fn sessions_that_exceed_the_cache_cost_a_miss_for_each_message() {
        let setup = Setup { mtu: 1_500, offload: Offload::SegmentsAndTls };
        let misses = |cached| {
            let sessions = Sessions { count: 8, cached };
            of_sessions(256, setup, sessions).context_misses
        };
        assert_eq!(misses(16), 0.0);
        assert_eq!(misses(4), 1.0);
    }
}
