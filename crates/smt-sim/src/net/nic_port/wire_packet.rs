// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The IP packets of a device, and the payloads that the simulator's cables carry instead: a
//! datagram of SMT alone, or everything behind UDP's header in a packet of PSP.

use smt_nic::psp;
use smt_nic_driver::{NativePacket, OutgoingAddresses};

use super::sent_datagram::SentDatagram;
use crate::net::capture::checksum;
use crate::net::packet::{HostId, Packet, Protocol};

/// The payload of a packet that leaves a device.
pub(super) fn to_cable(packet: &[u8]) -> SentDatagram {
    let priority = packet[1] >> PRIORITY_SHIFT;
    if packet[PROTOCOL] == UDP {
        let receiver = packet[16..IP_HEADER].first_chunk();
        return SentDatagram {
            to: HostId::of_ip(*receiver.expect("an address of IPv4 has 4 bytes")),
            protocol: Protocol::Psp,
            priority,
            bytes: packet[IP_HEADER + UDP_HEADER..].to_vec(),
        };
    }
    let mut packet = packet.to_vec();
    let read = NativePacket::parse(&mut packet, SMT).expect("a native packet");
    SentDatagram {
        to: HostId::of(read.destination),
        protocol: Protocol::Smt,
        priority,
        bytes: packet[read.datagram].to_vec(),
    }
}

/// The packet with a payload from a cable: a native one that is alone in its segment (SPEC §15.2),
/// or one of PSP (SPEC §15.3).
pub(super) fn from_cable(packet: &Packet) -> Vec<u8> {
    let addresses =
        OutgoingAddresses { source: packet.from.address(), destination: packet.to.address() };
    let headers = addresses.headers(SMT, packet.priority);
    let mut bytes = headers.expect("all hosts have addresses of IPv4");
    if packet.protocol == Protocol::Psp {
        bytes[PROTOCOL] = UDP;
        bytes.truncate(IP_HEADER);
        bytes.extend(UDP_SOURCE_PORT.to_be_bytes());
        bytes.extend(psp::PORT.to_be_bytes());
        bytes.extend(length(UDP_HEADER + packet.bytes.len()));
        // No checksum: the ICV covers what is behind.
        bytes.extend([0; 2]);
    }
    bytes.extend_from_slice(&packet.bytes);
    let length = length(bytes.len());
    bytes[2..4].copy_from_slice(&length);
    if packet.is_marked {
        bytes[1] |= CONGESTION_EXPERIENCED;
    }
    let sum = checksum(0, &bytes[..IP_HEADER]);
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    bytes
}

fn length(bytes: usize) -> [u8; 2] {
    let length = u16::try_from(bytes).expect("a payload that fits a packet");
    length.to_be_bytes()
}

/// The IP protocol number of SMT.
pub(super) const SMT: u8 = 253;
const UDP: u8 = 17;
/// Any of the dynamic ports: nobody reads it.
const UDP_SOURCE_PORT: u16 = 0xC000;
/// Where the protocol number is in the header of IPv4.
const PROTOCOL: usize = 9;
/// Bytes of an IPv4 header without options.
const IP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
/// The code point of a congested queue (RFC 3168 §5).
const CONGESTION_EXPERIENCED: u8 = 0b11;
/// Where a priority stands in the traffic class.
const PRIORITY_SHIFT: u32 = 5;
