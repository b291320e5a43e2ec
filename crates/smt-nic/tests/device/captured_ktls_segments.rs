// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Segments of the kernel's TLS (kTLS), captured on loopback in a guest, through the engine: the
//! same ciphertext, as TCP and with SMT's protocol number instead (SMT paper §2.3).
//!
//! `integrations/ktls/capture-segments` writes the vector, and says what is in it.

use std::path::Path;

use serde_json::Value;
use smt_nic::completion::Status;
use smt_nic::descriptor::{ContextId, SegmentWork, Work};
use smt_nic::tls::TlsEngine;
use smt_nic::{Nic, NicConfig};

use crate::support::{Host, SMT, tls_block};

/// A flow of the vector.
struct Flow {
    suite: u16,
    first: u64,
    records: Vec<Record>,
}

/// A device, and the queue that has the flow's context.
struct Device {
    nic: Nic<TlsEngine>,
    queue: u16,
}

/// A record, and the packets in which the kernel has sent it.
struct Record {
    length: usize,
    packets: Vec<Vec<u8>>,
}

impl Flow {
    fn all() -> Vec<Self> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/ktls_segments.json");
        let file: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let first = file["first_number"].as_u64().unwrap();
        let record = |record: &Value| Record {
            length: record["length"].as_u64().unwrap() as usize,
            packets: array(&record["packets"]).map(bytes).collect(),
        };
        let flow = |flow: &Value| Self {
            suite: flow["code"].as_u64().unwrap() as u16,
            first,
            records: array(&flow["records"]).map(record).collect(),
        };
        array(&file["flows"]).map(flow).collect()
    }

    /// A device with a context for the flow, as the driver of a kernel makes one.
    fn device(&self, host: &mut Host) -> Device {
        let mut nic = Nic::new(NicConfig::default(), TlsEngine);
        let queue = host.add_queue(&mut nic, 32);
        let key: Vec<u8> = (1..=32).collect();
        let key_bytes = if self.suite == 0x1301 { 16 } else { 32 };
        let iv = std::array::from_fn(|at| 0xA0 + at as u8);
        let block = tls_block(self.suite, &key[..key_bytes], iv, self.first);
        let create = host.create(CONTEXT, &block);
        host.post(&mut nic, queue, create);
        assert_eq!(host.run(&mut nic, queue).completions[0].status, Status::Done);
        Device { nic, queue }
    }
}

impl Record {
    /// The record before it is sealed, as a driver hands it over.
    fn plaintext(&self, number: usize) -> Vec<u8> {
        let body = (self.length + 1 + TAG) as u16;
        let mut record = vec![0x17, 3, 3];
        record.extend_from_slice(&body.to_be_bytes());
        record.extend((0..self.length).map(|at| (number * 31 + at) as u8));
        record.push(0x17);
        record.extend_from_slice(&[0; TAG]);
        record
    }

    /// Headers of the segment: those of its first packet, with PSH, which only the last one gets.
    fn headers(&self, protocol: u8) -> Vec<u8> {
        let mut headers = self.packets[0][..HEADERS].to_vec();
        headers[9] = protocol;
        headers[FLAGS] |= PSH;
        headers
    }

    /// Sends the record as one segment through the device, and returns its packets.
    fn send(
        &self,
        number: usize,
        protocol: u8,
        device: &mut Device,
        host: &mut Host,
    ) -> Vec<Vec<u8>> {
        let Device { nic, queue } = device;
        let (headers, payload) = (self.headers(protocol), self.plaintext(number));
        let work = SegmentWork {
            context: Some(CONTEXT),
            checksums: true,
            header_bytes: HEADERS as u16,
            stride: STRIDE,
            payload_bytes: payload.len() as u32,
            header: host.put(&headers),
            payload: host.put(&payload),
        };
        host.post(nic, *queue, Work::Segment(work));
        let run = host.run(nic, *queue);
        assert_eq!(run.completions[0].status, Status::Done);
        run.packets
    }
}

#[test]
fn the_engine_sends_the_packets_that_the_kernel_has_sent() {
    for flow in Flow::all() {
        let mut host = Host::default();
        let mut device = flow.device(&mut host);
        for (number, record) in flow.records.iter().enumerate() {
            let packets = record.send(number, TCP, &mut device, &mut host);
            assert_eq!(packets.len(), record.packets.len());
            // The kernel has cut long records into several segments, at several times.
            let first = record.packets.iter().position(|packet| packet[FLAGS] & PSH != 0);
            let first = first.unwrap();
            for (at, (own, captured)) in packets.iter().zip(&record.packets).enumerate() {
                assert_eq!(sum_of_tcp(own), 0xFFFF, "a checksum of the device");
                let is_equal = without(own, at > first) == without(captured, at > first);
                assert!(is_equal, "{:x}, record {number}, packet {at}", flow.suite);
            }
        }
        assert_eq!(device.nic.counters().resyncs, 0);
    }
}

#[test]
fn the_ciphertext_is_the_same_with_the_protocol_number_of_smt() {
    for flow in Flow::all() {
        let mut host = Host::default();
        let mut device = flow.device(&mut host);
        for (number, record) in flow.records.iter().enumerate() {
            let packets = record.send(number, SMT, &mut device, &mut host);
            assert_eq!(packets.len(), record.packets.len());
            for (own, captured) in packets.iter().zip(&record.packets) {
                assert_eq!(own[HEADERS..], captured[HEADERS..], "{:x} {number}", flow.suite);
                assert_eq!(own[9], SMT);
                // Length and identification are the packet's own, as the kernel's are.
                assert_eq!(own[..9], captured[..9]);
                // The sequence field is the first packet's: this device counts TCP's alone.
                let first = &record.packets[0];
                assert_eq!(own[20..FLAGS], first[20..FLAGS]);
                assert_eq!(own[SUM + 2..HEADERS], first[SUM + 2..HEADERS]);
            }
        }
    }
}

#[test]
fn a_repeated_segment_is_the_same_after_a_resync() {
    for flow in Flow::all() {
        let mut host = Host::default();
        let mut device = flow.device(&mut host);
        let mut sent = Vec::new();
        for (number, record) in flow.records.iter().enumerate() {
            sent.push(record.send(number, SMT, &mut device, &mut host));
        }
        for number in (0..flow.records.len()).rev() {
            let resync = Work::Resync { context: CONTEXT, number: flow.first + number as u64 };
            host.post(&mut device.nic, device.queue, resync);
            assert_eq!(host.run(&mut device.nic, device.queue).completions[0].status, Status::Done);
            let record = &flow.records[number];
            let again = record.send(number, SMT, &mut device, &mut host);
            assert!(again == sent[number], "{:x}, record {number}", flow.suite);
        }
    }
}

/// The packet without the checksum, which the kernel leaves to loopback, without PSH, which is
/// where the kernel's own segments end, and if asked for without timestamps.
fn without(packet: &[u8], timestamps: bool) -> Vec<u8> {
    let mut packet = packet.to_vec();
    packet[FLAGS] &= !PSH;
    packet[SUM..SUM + 2].fill(0);
    if timestamps {
        packet[HEADERS - 8..HEADERS].fill(0);
    }
    packet
}

/// The sum of TCP with its pseudo-header (RFC 9293 §3.1): 0xFFFF if the checksum is right.
fn sum_of_tcp(packet: &[u8]) -> u32 {
    let mut bytes = packet[12..].to_vec();
    bytes.extend_from_slice(&[0; 1][..bytes.len() % 2]);
    let words = bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let mut sum = words.sum::<u32>() + u32::from(TCP) + (packet.len() - 20) as u32;
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().unwrap().iter()
}

fn bytes(hex: &Value) -> Vec<u8> {
    let hex = hex.as_str().unwrap();
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(byte).collect()
}

const CONTEXT: ContextId = ContextId(1);
const TCP: u8 = 6;
const TAG: usize = 16;
/// Headers of IPv4, and of TCP with timestamps.
const HEADERS: usize = 20 + 32;
/// Payload bytes of a packet of 1,500 bytes.
const STRIDE: u16 = 1_500 - HEADERS as u16;
/// Places in the headers: flags, of which PSH, and the checksum.
const FLAGS: usize = 20 + 13;
const PSH: u8 = 0x08;
const SUM: usize = 20 + 16;
