// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets of one device come to another, which opens records of them: whole ones, two an arrival
//! at most, and nothing that does not authenticate.

use std::sync::Arc;

use proptest::prelude::*;
use smt_carrier::{KeyHandle, KeyStore, Opened};
use smt_nic::tls::TlsEngine;
use smt_nic::{Nic, NicConfig};
use smt_nic_driver::{Driver, DriverConfig, NativePacket, NicKeys};

use super::rig::{DeviceOptions, Message, Rig, SessionKey};

/// A receiving device and its driver.
struct Receiver {
    driver: Driver,
    nic: Nic<TlsEngine>,
    keys: Arc<NicKeys>,
}

/// A datagram that has arrived: its offset in the record stream, its payload, and its records that
/// were opened, by their places in the payload.
struct Arrived {
    offset: usize,
    payload: Vec<u8>,
    opened: Vec<Opened>,
}

impl Receiver {
    fn new(receive_contexts: usize) -> Self {
        let keys = NicKeys::new(100);
        let config = DriverConfig {
            receive_contexts,
            receive_queues: 1,
            receive_buffers: 256,
            ring_entries: 8,
            ..DriverConfig::default()
        };
        let mut nic = Nic::new(NicConfig::default(), TlsEngine);
        let driver = Driver::new(config, Arc::clone(&keys));
        driver.attach(&mut nic);
        Self { driver, nic, keys }
    }

    /// Gives the device the keys that were installed, and takes back those that were removed.
    fn tell_keys(&mut self) {
        self.driver.reap(&mut self.nic);
        self.driver.run(&mut self.nic, &mut |_| {}).unwrap();
    }

    fn install(&mut self, key: &SessionKey, bytes: usize) -> KeyHandle {
        let handle = self.keys.install_receiving(&key.receiving(bytes)).unwrap();
        self.tell_keys();
        handle
    }

    /// The datagrams that arrive of packets which come together.
    fn receive(&mut self, packets: &[Vec<u8>]) -> Vec<Arrived> {
        for packet in packets {
            self.driver.receive(&mut self.nic, packet);
        }
        let mut arrived = Vec::new();
        self.driver.take_arrivals(&mut self.nic, &mut |packet| {
            let read = NativePacket::parse(packet.bytes, 253).unwrap();
            let at = read.datagram.start + 36;
            let datagram = &packet.bytes[read.datagram];
            let offset = u32::from_be_bytes(datagram[32..36].try_into().unwrap());
            let opened = packet.opened;
            arrived.push(Arrived {
                offset: offset as usize,
                payload: datagram[36..].to_vec(),
                opened: opened.map_or_else(Vec::new, |opened| opened.records(at).to_vec()),
            });
        });
        arrived
    }
}

/// The packets of a message, as a sending device seals and cuts them, and its key.
fn sent(is_ipv6: bool, id: u64, records: u64, bytes: usize) -> (Message, SessionKey, Vec<Vec<u8>>) {
    let options = DeviceOptions { is_ipv6, ..DeviceOptions::default() };
    let mut rig = Rig::new(DriverConfig::default(), options);
    let key = SessionKey::new(&rig, id as u8);
    let message = Message::new(&key, id, records, bytes);
    rig.post(&message);
    rig.run();
    (message, key, rig.packets)
}

/// Asserts that an arrival is a part of the message: its opened records in plaintext under their
/// own numbers, everything else sealed.
fn assert_genuine(arrived: &Arrived, message: &Message, id: u64, bytes: usize, key: KeyHandle) {
    let range = arrived.offset..arrived.offset + arrived.payload.len();
    let mut expected = message.sealed()[range.clone()].to_vec();
    let whole = bytes + 21;
    for opened in &arrived.opened {
        let at = opened.at as usize;
        let index = (arrived.offset + at) / whole;
        assert_eq!((arrived.offset + at) % whole, 0, "a record begins there");
        assert_eq!((opened.key, opened.number), (key, id << 16 | index as u64));
        let plain = &message.unsealed()[range.clone()][at + 5..at + 5 + bytes];
        expected[at + 5..at + 5 + bytes].copy_from_slice(plain);
    }
    assert!(arrived.payload == expected);
    assert!(arrived.opened.len() <= 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whole_records_arrive_opened_and_all_else_as_it_came(
        is_ipv6: bool,
        bytes in prop::sample::select(vec![65_usize, 100, 700, 1_300, 1_379, 1_380, 2_779, 4_000, 16_385]),
        order in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..10), 60),
        at_once in 1_usize..30,
    ) {
        let id = 6;
        // Two packets are what IPv6 permits a segment.
        let fits = if is_ipv6 { 2_800 } else { 60_000 } / (bytes + 21);
        prop_assume!(fits > 0);
        let (message, key, packets) = sent(is_ipv6, id, fits.min(40) as u64, bytes);
        let mut receiver = Receiver::new(4);
        let handle = receiver.install(&key, bytes);
        // In order first, so that they merge; then some again, in any order.
        let again = order.iter().map(|(index, _)| index.get(&packets).clone());
        let all: Vec<_> = packets.iter().cloned().chain(again).collect();
        let mut opened = 0;
        for packets in all.chunks(at_once) {
            for arrived in receiver.receive(packets) {
                assert_genuine(&arrived, &message, id, bytes, handle);
                opened += arrived.opened.len() as u64;
            }
        }
        let counters = receiver.nic.counters();
        prop_assert_eq!(counters.packets_dropped, 0);
        prop_assert_eq!(counters.records_opened, opened);
        prop_assert!(counters.arrivals <= all.len() as u64);
        prop_assert!(counters.openings <= 2 * counters.arrivals);
        // A merge ends where the message's bytes do. The packet behind that has the end of the last
        // record alone, which is then opened by software if it is the only one.
        let is_split = packets.len() == 2 && message.sealed().len() - 1_400 <= 22;
        if at_once >= packets.len() && !is_split {
            prop_assert!(opened > 0);
        }
    }

    #[test]
    fn a_packet_with_a_changed_byte_gives_no_plaintext_of_its_record(
        at: prop::sample::Index,
        bit in 0_u32..8,
    ) {
        let (id, bytes) = (6, 600);
        let (message, key, packets) = sent(false, id, 1, bytes);
        let mut receiver = Receiver::new(4);
        receiver.install(&key, bytes);
        let mut forged = packets[0].clone();
        let headers = forged.len() - message.sealed().len();
        let at = headers + at.index(forged.len() - headers);
        forged[at] ^= 1 << bit;
        let payload = forged[headers..].to_vec();
        let arrived = receiver.receive(&[forged]);
        prop_assert!(arrived[0].opened.is_empty());
        prop_assert_eq!(&arrived[0].payload, &payload);
        prop_assert_eq!(receiver.nic.counters().records_opened, 0);
    }
}

#[test]
fn a_segment_of_many_records_arrives_opened_as_a_whole() {
    // Records that fill a pair of packets exactly: each arrival ends where two records end.
    for (bytes, records) in [(1_379, 20), (2_779, 20), (16_385, 3)] {
        let (message, key, packets) = sent(false, 6, records, bytes);
        let mut receiver = Receiver::new(4);
        let handle = receiver.install(&key, bytes);
        let arrived = receiver.receive(&packets);
        let opened: usize = arrived.iter().map(|arrived| arrived.opened.len()).sum();
        assert_eq!(opened as u64, records, "{bytes}");
        assert_eq!(arrived.len() as u64, records.div_ceil(2));
        for arrived in &arrived {
            assert_genuine(arrived, &message, 6, bytes, handle);
        }
    }
}

#[test]
fn a_flood_of_garbage_costs_two_openings_an_arrival() {
    // Each packet has sixteen records that look right; none authenticates.
    let (message, key, packets) = sent(false, 6, 400, 65);
    let headers = 20 + 8 + 36;
    let mut receiver = Receiver::new(4);
    receiver.install(&key, 65);
    let mut flood = packets.clone();
    for packet in &mut flood {
        for byte in packet[headers..].iter_mut().skip(40).step_by(41) {
            *byte ^= 0x55;
        }
    }
    for _ in 0..20 {
        for packets in flood.chunks(7) {
            for arrived in receiver.receive(packets) {
                assert!(arrived.opened.is_empty());
            }
        }
    }
    let counters = *receiver.nic.counters();
    assert!(counters.openings > 0 && counters.openings <= 2 * counters.arrivals);
    assert_eq!(counters.packets_received, 20 * packets.len() as u64);
    assert!(counters.arrivals <= counters.packets_received);
    let arrived = receiver.receive(&packets);
    assert!(arrived.iter().any(|arrived| !arrived.opened.is_empty()));
    assert!(message.sealed().len() > 30_000);
}

#[test]
fn a_key_that_was_removed_opens_nothing_and_a_reset_device_gets_its_keys_again() {
    let (_, key, packets) = sent(false, 6, 1, 600);
    let mut receiver = Receiver::new(1);
    let opened = |receiver: &mut Receiver| receiver.receive(&packets)[0].opened.len();
    assert_eq!(opened(&mut receiver), 0, "the key is not installed yet");
    let handle = receiver.install(&key, 600);
    assert_eq!(opened(&mut receiver), 1);
    receiver.driver.reset(&mut receiver.nic);
    receiver.tell_keys();
    assert_eq!(opened(&mut receiver), 1);
    receiver.keys.remove(handle);
    receiver.tell_keys();
    assert_eq!(opened(&mut receiver), 0);
    assert_eq!(receiver.nic.receive_contexts(), 0);
    let handle = receiver.install(&key, 600);
    assert_eq!(opened(&mut receiver), 1);
    // A packet that waits while its key is removed is lost: its bytes are neither what came nor
    // what anybody can check.
    receiver.driver.receive(&mut receiver.nic, &packets[0]);
    receiver.keys.remove(handle);
    receiver.driver.reap(&mut receiver.nic);
    let mut arrived = 0;
    receiver.driver.take_arrivals(&mut receiver.nic, &mut |_| arrived += 1);
    assert_eq!(arrived, 0);
    assert_eq!(receiver.driver.statistics().opened_without_key, 1);
}

#[test]
fn sessions_beyond_the_room_arrive_as_they_came() {
    let (_, key, packets) = sent(false, 6, 1, 600);
    let mut receiver = Receiver::new(0);
    receiver.install(&key, 600);
    assert!(receiver.receive(&packets)[0].opened.is_empty());
    let counters = receiver.nic.counters();
    assert_eq!((counters.openings, counters.receive_contexts_created), (0, 0));
    assert_eq!(receiver.driver.statistics().receive_contexts_refused, 1);
}
