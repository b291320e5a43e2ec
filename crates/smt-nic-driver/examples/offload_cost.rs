// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The cost of a message by its length and by the work that the NIC does: descriptors, bytes over
//! PCIe, packets, context work, and the time that sealing takes of the host.
//!
//!     cargo run --release -p smt-nic-driver --example offload_cost
//!
//! Counts are the model's. The time of sealing is measured here, the least of many rounds. The
//! time of a descriptor is an assumption: the host writes 48 bytes and reads 16.

use std::sync::Arc;
use std::time::{Duration, Instant};

use smt_carrier::{Batch, KeyHandle, KeyStore, Layout, Path, Unsealed};
use smt_nic::tls::TlsEngine;
use smt_nic::{Counters, Nic, NicConfig};
use smt_nic_driver::{Driver, DriverConfig, NicKeys, OutgoingAddresses};
use smt_record::{AeadProvider, AwsLc, Suite};

/// The time that the host needs for one descriptor and its completion.
const DESCRIPTOR: Duration = Duration::from_nanos(30);
/// Bytes of a record (SPEC §6.3), and its overhead.
const RECORD: usize = 16_384;
const OVERHEAD: usize = 22;
/// Bytes of a stream that leaves at once.
const STREAM_MAX: usize = 65_000;
/// Messages of each kind, each with an id of its own.
const MESSAGES: u64 = 64;

/// The work that the NIC does.
#[derive(Clone, Copy, PartialEq)]
enum Offload {
    /// Nothing: the host hands over packets.
    None,
    /// It cuts segments of two packets, as over IPv6.
    Pairs,
    /// It cuts segments of up to 64 KB.
    Segments,
    /// It cuts segments and seals their records.
    SegmentsAndTls,
}

impl Offload {
    const ALL: [(Self, &str); 4] = [
        (Self::None, "none"),
        (Self::Pairs, "pairs"),
        (Self::Segments, "segments"),
        (Self::SegmentsAndTls, "segments, TLS"),
    ];

    /// Packets in one segment.
    fn packets_max(self) -> usize {
        match self {
            Self::None => 1,
            Self::Pairs => 2,
            Self::Segments | Self::SegmentsAndTls => usize::MAX,
        }
    }
}

/// Records that leave at once.
struct Stream<'a> {
    bytes: &'a [u8],
    unsealed: &'a [Unsealed],
}

struct Scene {
    driver: Driver,
    nic: Nic<TlsEngine>,
    key: KeyHandle,
    addresses: OutgoingAddresses,
}

impl Scene {
    fn new() -> Self {
        let keys = NicKeys::new(1);
        let key = keys.install(0x1301, &[7; 16], [9; 12]);
        let config = DriverConfig {
            offload_bytes_min: 0,
            waiting_max: 100_000,
            ..DriverConfig::default()
        };
        let driver = Driver::new(config, Arc::clone(&keys));
        let mut nic = Nic::new(NicConfig::default(), TlsEngine);
        driver.attach(&mut nic);
        let address = |text: &str| text.parse().expect("an address");
        Self {
            driver,
            nic,
            key: key.expect("room for a key"),
            addresses: OutgoingAddresses {
                source: address("192.0.2.1:7"),
                destination: address("192.0.2.2:9"),
            },
        }
    }

    /// Sends a message of so many records, each of so many bytes of plaintext.
    fn send(&mut self, id: u64, records: &[usize], offload: Offload, payload: usize) {
        let mut header = [0; 36];
        header[1] = 0x01;
        header[4] = 0xB0;
        header[20..28].copy_from_slice(&id.to_be_bytes());
        let (mut stream, mut unsealed) = (Vec::new(), Vec::new());
        for (index, bytes) in (0..).zip(records) {
            if stream.len() + bytes + OVERHEAD > STREAM_MAX {
                self.post(
                    &header,
                    payload,
                    offload,
                    &Stream {
                        bytes: &stream,
                        unsealed: &unsealed,
                    },
                );
                stream.clear();
                unsealed.clear();
            }
            let length = (bytes + 1 + 16) as u16;
            stream.extend_from_slice(&[0x17, 3, 3]);
            stream.extend_from_slice(&length.to_be_bytes());
            unsealed.push(Unsealed {
                at: stream.len() as u32,
                length: *bytes as u32 + 1,
                key: self.key,
                number: id << 16 | index,
            });
            stream.resize(stream.len() + bytes + 1 + 16, 0);
        }
        self.post(
            &header,
            payload,
            offload,
            &Stream {
                bytes: &stream,
                unsealed: &unsealed,
            },
        );
        let run = self.driver.run(&mut self.nic, &mut |_| {});
        run.expect("rings in the driver's own memory");
    }

    fn post(&mut self, header: &[u8; 36], payload: usize, offload: Offload, stream: &Stream<'_>) {
        let segment = payload.saturating_mul(offload.packets_max());
        for part in stream.bytes.chunks(segment) {
            let is_sealed = offload != Offload::SegmentsAndTls;
            let batch = Batch {
                layout: Layout::Segmented {
                    header,
                    payload_max: payload,
                },
                unsealed: if is_sealed { &[] } else { stream.unsealed },
                ..Batch::datagrams(Path::to(self.addresses.destination), 1, part)
            };
            let posted = self.driver.post(&mut self.nic, &batch, self.addresses);
            posted.expect("room in the rings");
        }
    }
}

/// Plaintext bytes of a message's records.
fn records(length: usize) -> Vec<usize> {
    let inner = length + 40;
    let whole = vec![RECORD; inner / RECORD];
    let rest = Some(inner % RECORD).filter(|rest| *rest > 0);
    whole.into_iter().chain(rest).collect()
}

/// The least time of sealing records on this machine.
fn sealing(records: &[usize]) -> Duration {
    let aead = AwsLc.aead(Suite::Aes128Gcm, &[7; 16], [9; 12]);
    let aead = aead.expect("a library that always can");
    let mut buffer = vec![0; RECORD + 1];
    let mut round = |number: u64| {
        let began = Instant::now();
        for bytes in records {
            let sealed = aead.seal(number, &[0; 5], &mut buffer[..bytes + 1]);
            sealed.expect("a library that always can");
        }
        began.elapsed()
    };
    (0..200).map(&mut round).min().unwrap_or_default()
}

fn main() {
    let sizes = [64, 256, 1_024, 4_096, 8_192, 65_536, 262_144, 1_048_576];
    for mtu in [1_500, 9_000] {
        println!("\nMTU {mtu}, for each message:\n");
        println!(
            "| bytes | the NIC does | descriptors | PCIe bytes | packets | resyncs | host's work, us |"
        );
        println!("|--:|:--|--:|--:|--:|--:|--:|");
        for size in sizes {
            for (offload, name) in Offload::ALL {
                let records = records(size);
                let mut scene = Scene::new();
                for id in 1..=MESSAGES {
                    scene.send(2 * id, &records, offload, mtu - 64);
                }
                let Counters {
                    descriptors,
                    dma_read_bytes,
                    dma_written_bytes,
                    packets,
                    resyncs,
                    ..
                } = *scene.nic.counters();
                let each = |count: u64| count as f64 / MESSAGES as f64;
                let sealing = match offload {
                    Offload::SegmentsAndTls => Duration::ZERO,
                    _ => sealing(&records),
                };
                let host = DESCRIPTOR.as_secs_f64() * each(descriptors) + sealing.as_secs_f64();
                println!(
                    "| {size} | {name} | {:.1} | {:.0} | {:.0} | {:.1} | {:.2} |",
                    each(descriptors),
                    each(dma_read_bytes + dma_written_bytes),
                    each(packets),
                    each(resyncs),
                    host * 1e6,
                );
            }
        }
    }
}
