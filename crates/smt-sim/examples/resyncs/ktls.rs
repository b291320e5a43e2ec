// SPDX-License-Identifier: Apache-2.0 OR MIT
//! TLS over TCP with offload: the stream is records, one behind the other, and the engine goes on
//! with the next one by itself. A segment that does not begin where the engine stands costs a
//! resync to the record in which it begins, which is read again from there (autonomous offload).

use std::collections::BTreeMap;
use std::sync::Arc;

use smt_carrier::{Batch, KeyHandle, KeyStore, Layout, Path, Unsealed};
use smt_nic::tls::TlsEngine;
use smt_nic::{Nic, NicConfig};
use smt_nic_driver::{Driver, DriverConfig, NativePacket, NicKeys, OutgoingAddresses};
use smt_proto::Time;
use smt_sim::baseline::{StreamHost, StreamOptions};
use smt_sim::net::{Burst, Host, HostId, Packet, World};

use super::{AT_ONCE, MESSAGE, MESSAGES, Work, loss, network};

/// A full record's plaintext, and all of it (RFC 8446 §5).
const PLAINTEXT: u64 = 16_384;
const RECORD: u64 = PLAINTEXT + 22;
/// Bytes of a segment's header in the model of streams; a data segment has type 0 and its place.
const HEADER: usize = 12;
/// SMT's own IP protocol number, in whose packets the model's NIC sends.
const PROTOCOL: u8 = 253;

/// A host whose NIC seals the records of its one stream.
struct KtlsHost {
    host: StreamHost,
    sealing: Sealing,
}

/// The NIC's half: the place in the stream where the engine goes on.
struct Sealing {
    driver: Driver,
    nic: Nic<TlsEngine>,
    key: KeyHandle,
    addresses: OutgoingAddresses,
    /// The byte of the stream that the engine expects next.
    position: u64,
    /// The record that it would seal next.
    next: u64,
    /// A hash of each record, as it was sealed first.
    sealed: BTreeMap<u64, u64>,
    records: u64,
    reread_bytes: u64,
}

impl Sealing {
    fn new() -> Self {
        let keys = NicKeys::new(1);
        let key = keys.install(0x1301, &[7; 16], [9; 12]);
        let config = DriverConfig {
            queues: 1,
            receive_queues: 0,
            offload_bytes_min: 0,
            ..DriverConfig::default()
        };
        let driver = Driver::new(config, Arc::clone(&keys));
        let mut nic = Nic::new(NicConfig::default(), TlsEngine);
        driver.attach(&mut nic);
        Self {
            driver,
            nic,
            key: key.expect("room for a key"),
            addresses: OutgoingAddresses {
                source: HostId(0).address(),
                destination: HostId(1).address(),
            },
            position: 0,
            next: 0,
            sealed: BTreeMap::new(),
            records: 0,
            reread_bytes: 0,
        }
    }

    /// A segment of the stream leaves.
    fn pass(&mut self, start: u64, length: u64) {
        let (first, last) = (start / RECORD, (start + length - 1) / RECORD);
        if start != self.position {
            // The driver sets the engine's number to this record, and reads it from its beginning.
            self.next = first;
        }
        for record in self.next.max(first)..=last {
            self.seal(record);
        }
        self.next = last + 1;
        self.position = start + length;
    }

    /// The engine seals a record, under the number of its place.
    fn seal(&mut self, record: u64) {
        let mut bytes = vec![0x17, 3, 3];
        bytes.extend_from_slice(&((PLAINTEXT + 17) as u16).to_be_bytes());
        let plaintext = (0..PLAINTEXT).map(|at| (at ^ record) as u8);
        bytes.extend(plaintext);
        bytes.resize(RECORD as usize, 0);
        let unsealed =
            [Unsealed { at: 5, length: PLAINTEXT as u32 + 1, key: self.key, number: record }];
        let mut header = [0; 36];
        (header[0], header[1], header[4]) = (1, 0x01, 0xB0);
        let batch = Batch {
            layout: Layout::Segmented { header: &header, payload_max: 1_460 },
            unsealed: &unsealed,
            ..Batch::datagrams(Path::to(self.addresses.destination), 1, &bytes)
        };
        let posted = self.driver.post(&mut self.nic, &batch, self.addresses);
        posted.expect("room in the rings");
        let mut hash = 0u64;
        let run = self.driver.run(&mut self.nic, &mut |packet| {
            let mut packet = packet.to_vec();
            let read = NativePacket::parse(&mut packet, PROTOCOL).expect("a native packet");
            let payload = &packet[read.datagram][header.len()..];
            hash = payload
                .iter()
                .fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3));
        });
        run.expect("rings in the driver's own memory");
        self.records += 1;
        match self.sealed.get(&record) {
            Some(before) => {
                assert_eq!(*before, hash, "record {record} has other bytes than before");
                self.reread_bytes += RECORD;
            }
            None => drop(self.sealed.insert(record, hash)),
        }
    }
}

impl Host for KtlsHost {
    fn receive(&mut self, now: Time, packet: &Packet) {
        self.host.receive(now, packet);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.host.handle_timeout(now);
    }

    fn next_timeout(&self) -> Option<Time> {
        self.host.next_timeout()
    }

    fn transmit(&mut self, now: Time) -> Option<Burst> {
        let burst = self.host.transmit(now)?;
        if burst.bytes[0] == 0 {
            let start = burst.bytes[4..HEADER].iter();
            let start = start.fold(0, |start, byte| start << 8 | u64::from(*byte));
            self.sealing.pass(start, (burst.bytes.len() - HEADER) as u64);
        }
        Some(burst)
    }
}

/// Sends all messages with so many of a million packets lost.
pub(super) fn run(millionths: u32) -> Work {
    let host = |id| KtlsHost {
        host: StreamHost::new(HostId(id), 2, StreamOptions::default()),
        sealing: Sealing::new(),
    };
    let mut world = World::new(network(), vec![host(0), host(1)]);
    world.network.set_rule(loss(millionths));
    let mut begun = 0;
    let mut begin = |world: &mut World<KtlsHost>| {
        if begun < MESSAGES {
            begun += 1;
            let send = |host: &mut KtlsHost, now| {
                host.host.send(now, HostId(1), begun.into(), MESSAGE);
            };
            world.change(HostId(0), send);
        }
    };
    (0..AT_ONCE).for_each(|_| begin(&mut world));
    let mut arrived = 0;
    while arrived < MESSAGES {
        world.step(FOREVER).expect("messages are under way");
        let delivered = world.peek(HostId(1), |host| host.host.take_delivered().len());
        for _ in 0..delivered {
            arrived += 1;
            begin(&mut world);
        }
    }
    world.peek(HostId(0), |host| {
        let sealing = &host.sealing;
        let statistics = sealing.driver.statistics();
        assert!(millionths > 0 || statistics.resyncs == 0, "nothing was lost");
        Work {
            segments: statistics.segments_offloaded,
            resyncs: statistics.resyncs,
            sealed: sealing.records,
            reread_bytes: sealing.reread_bytes,
        }
    })
}

const FOREVER: Time = Time::from_nanos(u64::MAX / 2);
