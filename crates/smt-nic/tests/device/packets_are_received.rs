// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The receive side: queues by hash, merged packets, and hosts that have no buffers.

use proptest::prelude::*;
use smt_nic::completion::Owner;
use smt_nic::headers::Headers;
use smt_nic::receive::ReceiveConfig;
use smt_nic::receive::queue::{
    BUFFER_DESCRIPTOR_BYTES, BufferDescriptor, RECEIVE_COMPLETION_BYTES, ReceiveCompletion,
};
use smt_nic::receive::rss::{Rss, RssFields};
use smt_nic::segmentation::{Cut, Segment, cut};
use smt_nic::tls::TlsEngine;
use smt_nic::{HostMemory, Nic, NicConfig, Ring};
use smt_wire::native::{FIRST_IDENTIFICATION, NativeHeader, mark_segment, unmark_segment};
use smt_wire::{DataHeader, MessageId, SessionIndex, VERSION};

use crate::support::{Host, SMT};

/// A host with receive queues, and its device.
struct Receiver {
    host: Host,
    nic: Nic<TlsEngine>,
    queues: Vec<Queue>,
}

struct Queue {
    completions: u64,
    buffers: Vec<u64>,
    read: u64,
}

const BUFFER: u32 = 65_536;
const ENTRIES: u32 = 8;

impl Receiver {
    fn new(receive: ReceiveConfig, queues: u16) -> Self {
        let config = NicConfig { receive, ..NicConfig::default() };
        let (mut host, mut nic) = (Host::default(), Nic::new(config, TlsEngine));
        let queues = (0..queues).map(|_| {
            let buffers: Vec<u64> = (0..ENTRIES).map(|_| host.put(&[0; BUFFER as usize])).collect();
            let descriptors = buffers.iter().flat_map(|address| {
                let descriptor = BufferDescriptor { address: *address, bytes: BUFFER };
                descriptor.to_bytes()
            });
            let descriptors: Vec<u8> = descriptors.collect();
            assert_eq!(descriptors.len(), BUFFER_DESCRIPTOR_BYTES * ENTRIES as usize);
            let ring = |address| Ring { address, entries: ENTRIES };
            let descriptors = ring(host.put(&descriptors));
            let completions = host.put(&[0; RECEIVE_COMPLETION_BYTES * ENTRIES as usize]);
            let number = nic.add_receive_queue(descriptors, ring(completions));
            nic.host_has_posted(number, ENTRIES.into(), 0);
            Queue { completions, buffers, read: 0 }
        });
        let queues = queues.collect();
        Self { host, nic, queues }
    }

    /// The packets that have arrived in a queue, and how many were merged into each. Their buffers
    /// are posted again.
    fn arrived(&mut self, queue: u16) -> Vec<(Vec<u8>, u16)> {
        let of = &mut self.queues[usize::from(queue)];
        let mut arrived = Vec::new();
        loop {
            let place = of.read % u64::from(ENTRIES);
            let mut entry = [0; RECEIVE_COMPLETION_BYTES];
            let at = of.completions + place * entry.len() as u64;
            self.host.read(at, &mut entry).unwrap();
            let owner = Owner::of_entry(of.read, ENTRIES);
            let Some(completion) = ReceiveCompletion::parse(&entry, owner) else {
                return arrived;
            };
            let mut packet = vec![0; completion.bytes as usize];
            let buffer = of.buffers[place as usize];
            self.host.read(buffer, &mut packet).unwrap();
            arrived.push((packet, completion.packets));
            of.read += 1;
            let posted = of.read + u64::from(ENTRIES);
            self.nic.host_has_posted(queue, posted, of.read);
        }
    }

    fn receive(&mut self, packet: &[u8]) -> Option<u16> {
        self.nic.receive(packet, &mut self.host)
    }

    fn flush(&mut self, queue: u16) -> Vec<(Vec<u8>, u16)> {
        self.nic.flush(queue, &mut self.host);
        self.arrived(queue)
    }
}

/// The headers of a message's packets.
fn headers(id: u64, is_v4: bool, message_length: u32, offset: u32, stride: u16) -> Vec<u8> {
    let mut bytes = match is_v4 {
        true => {
            let mut header = vec![0; 20];
            header[0] = 0x45;
            header[4..6].copy_from_slice(&FIRST_IDENTIFICATION.to_be_bytes());
            header[9] = SMT;
            header[12..20].copy_from_slice(&[192, 0, 2, 1, 192, 0, 2, 2]);
            header
        }
        false => {
            let mut header = vec![7; 40];
            header[0] = 0x60;
            header[6] = SMT;
            header
        }
    };
    let native = NativeHeader { source: 7, destination: 9 };
    bytes.extend_from_slice(&native.to_bytes());
    let mut data = [0; DataHeader::LEN];
    let header = DataHeader {
        epoch: 3,
        retransmit: false,
        session: SessionIndex(7),
        id: MessageId(id),
        message_length,
        offset,
    };
    header.emit(VERSION, &mut data);
    if let Ok(stride) = stride.try_into() {
        mark_segment(&mut data, stride);
    }
    bytes.extend_from_slice(&data);
    bytes
}

/// The packets of a segment of a message, as a sending device cuts them.
fn segment(id: u64, is_v4: bool, place: std::ops::Range<usize>, stride: u16) -> Vec<Vec<u8>> {
    let body = body(id);
    // A segment of one packet is not marked (SPEC §15.2).
    let mark = if place.len() > usize::from(stride) { stride } else { 0 };
    let header = headers(id, is_v4, body.len() as u32, place.start as u32, mark);
    let how = Cut {
        headers: Headers::parse(&header, SMT).unwrap(),
        stride: stride.into(),
        checksums: false,
        counts_smt_sequence: id % 2 == 1,
    };
    let segment = Segment { header: &header, payload: &body[place] };
    let mut packets = Vec::new();
    cut(segment, &how, &mut Vec::new(), &mut |packet| {
        packets.push(packet.to_vec());
    });
    packets
}

/// The record stream of a message.
fn body(id: u64) -> Vec<u8> {
    (0..20_000).map(|at| (at * 7 + id * 13) as u8).collect()
}

/// The message's id, the payload's offset and the payload, as a receiver of the host reads them.
fn read(packet: &[u8]) -> (u64, usize, Vec<u8>) {
    let is_v4 = packet[0] >> 4 == 4;
    let ip = if is_v4 { 20 } else { 40 };
    let identification = is_v4.then(|| u16::from_be_bytes([packet[4], packet[5]]));
    let length = match is_v4 {
        true => usize::from(u16::from_be_bytes([packet[2], packet[3]])),
        false => 40 + usize::from(u16::from_be_bytes([packet[4], packet[5]])),
    };
    assert_eq!(length, packet.len());
    let mut datagram = packet[ip + NativeHeader::LEN..].to_vec();
    unmark_segment(&mut datagram, identification).unwrap();
    let (smt_wire::Packet::Data(data), []) = smt_wire::parse(VERSION, &datagram).unwrap() else {
        panic!("another packet");
    };
    let (header, payload) = (data.header, data.payload);
    (header.id.0, header.offset as usize, payload.to_vec())
}

fn merging() -> ReceiveConfig {
    ReceiveConfig { rss: Rss::default(), merges_max: 4, contexts_max: 0 }
}

#[test]
fn a_segment_arrives_as_one_packet() {
    for (is_v4, end) in [(true, 20_000), (false, 2_800)] {
        let mut receiver = Receiver::new(merging(), 1);
        let packets = segment(2, is_v4, 0..end, 1_400);
        for packet in &packets {
            receiver.receive(packet);
        }
        let arrived = receiver.flush(0);
        assert_eq!(arrived.len(), 1);
        assert_eq!(arrived[0].1, packets.len() as u16);
        assert_eq!(read(&arrived[0].0), (2, 0, body(2)[..end].to_vec()));
    }
}

#[test]
fn a_whole_message_waits_for_no_flush() {
    let mut receiver = Receiver::new(merging(), 1);
    for packet in segment(2, true, 0..20_000, 1_400) {
        receiver.receive(&packet);
    }
    assert_eq!(receiver.arrived(0).len(), 1);
}

#[test]
fn a_mark_of_congestion_is_in_no_packet_that_had_none() {
    let mut receiver = Receiver::new(merging(), 1);
    let mut packets = segment(2, true, 0..5_600, 1_400);
    packets[2][1] |= 3;
    for packet in &packets {
        receiver.receive(packet);
    }
    let arrived: Vec<_> =
        receiver.flush(0).into_iter().map(|(packet, count)| (packet[1] & 3, count)).collect();
    assert_eq!(arrived, [(0, 2), (3, 1), (0, 1)]);
}

#[test]
fn messages_are_spread_by_their_ids_where_the_host_wants_so() {
    for (fields, spread) in [(RssFields::Ports, false), (RssFields::PortsAndMessage, true)] {
        let receive =
            ReceiveConfig { rss: Rss { fields, ..Rss::default() }, merges_max: 0, contexts_max: 0 };
        let mut receiver = Receiver::new(receive, 4);
        let mut queues = std::collections::BTreeSet::new();
        for id in 1..=32 {
            let packets = segment(id, true, 0..4_200, 1_400);
            let of: Vec<_> = packets.iter().map(|packet| receiver.receive(packet)).collect();
            assert!(of.iter().all(|queue| *queue == of[0]), "a message has one queue");
            queues.insert(of[0]);
        }
        assert_eq!(queues.len() > 1, spread);
    }
}

#[test]
fn packets_without_a_buffer_are_dropped_and_counted() {
    let mut receiver = Receiver::new(ReceiveConfig { merges_max: 0, ..merging() }, 1);
    let packets = segment(2, true, 0..20_000, 1_400);
    for packet in &packets {
        receiver.receive(packet);
    }
    let counters = *receiver.nic.counters();
    assert_eq!(counters.arrivals, u64::from(ENTRIES));
    assert_eq!(counters.packets_dropped, packets.len() as u64 - counters.arrivals);
    assert_eq!(receiver.arrived(0).len(), ENTRIES as usize);
    receiver.receive(&packets[0]);
    assert_eq!(receiver.arrived(0).len(), 1, "posted buffers are used again");
}

#[test]
fn a_host_whose_registers_lie_gets_no_more_than_its_rings_have() {
    let mut receiver = Receiver::new(merging(), 1);
    receiver.nic.host_has_posted(0, u64::MAX, u64::MAX);
    receiver.nic.host_has_posted(7, 1, 1);
    for _ in 0..100 {
        receiver.receive(&[0x45; 40]);
    }
    assert_eq!(receiver.nic.counters().arrivals, u64::from(ENTRIES));
}

proptest! {
    #[test]
    fn every_byte_arrives_at_its_offset_in_any_order_of_packets(
        is_v4: bool,
        stride in 200_u16..3_000,
        parts in prop::collection::vec((1_u64..5, 0_usize..8), 1..12),
        order: prop::sample::Index,
        seed: u64,
        merges_max in 0_usize..4,
    ) {
        let segment_bytes = usize::from(stride) * if is_v4 { 3 } else { 2 };
        let mut packets: Vec<Vec<u8>> = parts
            .iter()
            .flat_map(|(id, part)| {
                let start = (part * segment_bytes).min(19_999);
                segment(*id, is_v4, start..(start + segment_bytes).min(20_000), stride)
            })
            .collect();
        // Some change places.
        let mut state = seed;
        for at in 1..packets.len() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if state >> 62 == 0 {
                packets.swap(at, order.index(at));
            }
        }
        let receive = ReceiveConfig { merges_max, ..merging() };
        let mut receiver = Receiver::new(receive, 1);
        let mut arrived = Vec::new();
        for packet in &packets {
            receiver.receive(packet);
            arrived.extend(receiver.arrived(0));
        }
        arrived.extend(receiver.flush(0));
        let total: u64 = arrived.iter().map(|(_, count)| u64::from(*count)).sum();
        prop_assert_eq!(total, packets.len() as u64);
        let mut sent: Vec<_> = packets.iter().map(|packet| read(packet)).collect();
        let mut came: Vec<_> = arrived.iter().map(|(packet, _)| read(packet)).collect();
        for (id, offset, payload) in &came {
            prop_assert_eq!(&body(*id)[*offset..offset + payload.len()], &payload[..]);
        }
        let bytes = |of: &mut Vec<(u64, usize, Vec<u8>)>| -> Vec<(u64, usize)> {
            let mut all: Vec<_> = of
                .iter()
                .flat_map(|(id, offset, payload)| (0..payload.len()).map(move |at| (*id, offset + at)))
                .collect();
            all.sort_unstable();
            all
        };
        prop_assert_eq!(bytes(&mut sent), bytes(&mut came));
    }

    #[test]
    fn no_bytes_from_the_wire_panic(
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..20),
        version in prop::sample::select(vec![0x45_u8, 0x60]),
    ) {
        let mut receiver = Receiver::new(merging(), 2);
        for mut packet in packets {
            if let Some(first) = packet.first_mut() {
                *first = version;
            }
            let protocol = if version == 0x45 { 9 } else { 6 };
            if let Some(byte) = packet.get_mut(protocol) {
                *byte = SMT;
            }
            receiver.receive(&packet);
        }
        receiver.flush(0);
        receiver.flush(1);
    }
}
