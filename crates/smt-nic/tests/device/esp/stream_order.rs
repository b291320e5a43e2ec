// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets of a TCP connection go up in the order in which they came, merged or not, in the clear
//! or opened.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use smt_nic::esp::EspSuite;

use super::host::EspHost;
use super::software::{Agreed, header, payload};

const FIN: u8 = 0x01;
const RST: u8 = 0x04;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;

/// A packet of a connection, as its sender makes it.
#[derive(Clone, Copy, Debug)]
struct Sent {
    is_v4: bool,
    port: u16,
    sequence: u32,
    acknowledgement: u8,
    flags: u8,
    bytes: usize,
}

impl Sent {
    fn packet(self) -> Vec<u8> {
        let mut header = header(self.is_v4, true, self.port, self.sequence);
        let tcp = header.len() - 20;
        header[tcp + 11] = self.acknowledgement;
        header[tcp + 13] = self.flags;
        if self.bytes > 0 {
            let sent = EspHost::sender().send(None, &header, &payload(self.bytes), 0);
            return sent.1[0].clone();
        }
        // The length as IP tells it.
        let (at, length) = if self.is_v4 { (2, 40) } else { (4, 20) };
        header[at + 1] = length;
        header
    }
}

/// Port, sequence number and payload of a packet.
fn read(packet: &[u8]) -> (u16, u32, &[u8]) {
    let tcp = if packet[0] >> 4 == 4 { 20 } else { 40 };
    let field = |at: usize| packet[tcp + at..tcp + at + 4].try_into().unwrap();
    let port = u16::from_be_bytes([packet[tcp], packet[tcp + 1]]);
    (port, u32::from_be_bytes(field(4)), &packet[tcp + 20..])
}

#[test]
fn no_packet_of_a_connection_overtakes_segments_that_wait() {
    for is_v4 in [true, false] {
        let first =
            Sent { is_v4, port: 9, sequence: 7, acknowledgement: 1, flags: ACK, bytes: 500 };
        for (acknowledgement, flags, bytes) in [
            (2, ACK | PSH, 500),
            (2, ACK, 0),
            (1, ACK | FIN, 100),
            (1, ACK | FIN, 0),
            (1, ACK | RST, 0),
        ] {
            let next = Sent { sequence: 507, acknowledgement, flags, bytes, ..first };
            let mut host = EspHost::with(16, 1);
            let arrived = host.receive(&[first, next].map(Sent::packet));
            let sequences: Vec<u32> = arrived.iter().map(|of| read(&of.packet).1).collect();
            assert_eq!(sequences, [7, 507], "flags {flags:#x}, {bytes} bytes");
        }
    }
}

#[test]
fn a_packet_of_another_connection_or_direction_ends_no_merge() {
    let first =
        Sent { is_v4: true, port: 9, sequence: 7, acknowledgement: 1, flags: ACK, bytes: 500 };
    let second = Sent { sequence: 507, ..first };
    let of_another = Sent { port: 10, bytes: 0, ..first };
    let mut back = Sent { bytes: 0, ..first }.packet();
    back[12..20].rotate_left(4);
    back[20..24].rotate_left(2);
    let mut host = EspHost::with(16, 1);
    let packets = [first.packet(), of_another.packet(), back, second.packet()];
    let merged: Vec<u16> = host.receive(&packets).iter().map(|of| of.packets).collect();
    assert_eq!(merged, [1, 1, 2]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    /// Three connections, whose packets are of all kinds, in the clear and in ESP.
    #[test]
    fn every_connection_goes_up_in_the_order_in_which_it_came(
        is_v4: bool,
        steps in prop::collection::vec((1_u16..4, 0_u8..8, any::<bool>()), 1..30),
    ) {
        let agreed = Agreed::new(EspSuite::NullHmacSha256);
        let (mut host, mut sealer) = (EspHost::with(16, 1), agreed.sealer());
        host.add_inbound(&agreed).unwrap();
        let mut next = BTreeMap::new();
        let mut sent: BTreeMap<u16, VecDeque<Sent>> = BTreeMap::new();
        let mut packets = Vec::new();
        for (port, kind, is_sealed) in steps {
            let sequence = next.entry(port).or_insert(7_u32);
            let (acknowledgement, flags, bytes) = match kind {
                0 => (1, ACK | PSH, 300),
                1 => (1, ACK | FIN, 300),
                2 => (1, ACK, 0),
                3 => (2, ACK, 300),
                4 => (1, ACK, 20),
                _ => (1, ACK, 300),
            };
            let of = Sent { is_v4, port, sequence: *sequence, acknowledgement, flags, bytes };
            *sequence += bytes as u32;
            sent.entry(port).or_default().push_back(of);
            packets.push(match is_sealed {
                true => sealer.seal(&of.packet()),
                false => of.packet(),
            });
        }
        for arrived in host.receive(&packets) {
            let (port, sequence, bytes) = read(&arrived.packet);
            let waiting = sent.get_mut(&port).unwrap();
            prop_assert_eq!(sequence, waiting[0].sequence);
            let merged = waiting.drain(..usize::from(arrived.packets));
            let expected: Vec<u8> = merged.flat_map(|of| payload(of.bytes)).collect();
            prop_assert_eq!(bytes, &expected[..]);
        }
        prop_assert!(sent.values().all(VecDeque::is_empty));
    }
}
