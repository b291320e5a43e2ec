// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A packet of IP with SMT in it: behind UDP, or natively (SPEC §15.1, §15.2).

use core::ops::Range;

use crate::checksum::changed;
use crate::data_header::DataHeader;

/// By what a switch recognizes SMT.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Recognition {
    /// A packet of UDP is SMT's if one of its ports is this one.
    pub udp_port: u16,
    /// The IP protocol number of SMT.
    pub protocol: u8,
}

impl Default for Recognition {
    /// Port 17379, and protocol 253.
    fn default() -> Self {
        Self { udp_port: 17_379, protocol: 253 }
    }
}

/// The version of IP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum IpVersion {
    /// IPv4.
    V4,
    /// IPv6, without extension headers.
    V6,
}

/// The layer between IP and SMT.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Transport {
    /// UDP.
    Udp,
    /// SMT's own 8 bytes.
    Native,
}

/// Where the parts of a packet are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IpPacket {
    /// The version of IP.
    pub ip: IpVersion,
    /// The carrier of SMT.
    pub transport: Transport,
    /// Where the header behind IP begins; the datagram is 8 bytes further.
    pub transport_at: usize,
    /// The datagram: SMT's packets. Padding of the link behind it is no part of it.
    pub datagram: Range<usize>,
}

/// The two ends of a packet, IPv4 addresses in the last 4 bytes.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Addresses {
    /// The sender's.
    pub source: [u8; 16],
    /// The receiver's.
    pub destination: [u8; 16],
}

/// The name of a message in the network: no two live messages have the same.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct MessageName {
    /// From whom to whom. The receiver chooses the session's index.
    pub addresses: Addresses,
    /// The receiver's index of the session.
    pub session: u64,
    /// The message's id.
    pub id: u64,
}

impl IpPacket {
    /// Reads a packet from its IP header on. `None` if it is of another protocol, a fragment,
    /// malformed or cut short.
    #[must_use]
    pub fn read(bytes: &[u8], recognition: &Recognition) -> Option<Self> {
        let (ip, transport_at, end, protocol) = match bytes.first()? >> 4 {
            4 => {
                let header = bytes.first_chunk::<20>()?;
                let words = usize::from(header[0] & 0xF);
                let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3FFF != 0;
                if words < 5 || is_fragment {
                    return None;
                }
                let total = u16::from_be_bytes([header[2], header[3]]);
                (IpVersion::V4, words * 4, usize::from(total), header[9])
            }
            6 => {
                let header = bytes.first_chunk::<40>()?;
                let behind = u16::from_be_bytes([header[4], header[5]]);
                (IpVersion::V6, 40, 40 + usize::from(behind), header[6])
            }
            _ => return None,
        };
        let behind = bytes.get(transport_at..end)?;
        let header = behind.first_chunk::<TRANSPORT_BYTES>()?;
        let transport = match protocol {
            UDP if has_port(header, recognition.udp_port) => {
                let length = u16::from_be_bytes([header[4], header[5]]);
                (usize::from(length) == behind.len()).then_some(Transport::Udp)?
            }
            of if of == recognition.protocol => Transport::Native,
            _ => return None,
        };
        Some(Self { ip, transport, transport_at, datagram: transport_at + TRANSPORT_BYTES..end })
    }

    /// The header of the DATA packet that the datagram begins with.
    #[must_use]
    pub fn data_header(&self, bytes: &[u8]) -> Option<DataHeader> {
        DataHeader::read(bytes.get(self.datagram.clone())?)
    }

    /// The packet's two ends.
    #[must_use]
    pub fn addresses(&self, bytes: &[u8]) -> Option<Addresses> {
        let mut addresses = Addresses { source: [0; 16], destination: [0; 16] };
        match self.ip {
            IpVersion::V4 => {
                addresses.source[12..].copy_from_slice(bytes.get(12..16)?);
                addresses.destination[12..].copy_from_slice(bytes.get(16..20)?);
            }
            IpVersion::V6 => {
                addresses.source.copy_from_slice(bytes.get(8..24)?);
                addresses.destination.copy_from_slice(bytes.get(24..40)?);
            }
        }
        Some(addresses)
    }

    /// The name of the message that a DATA packet belongs to.
    #[must_use]
    pub fn message_name(&self, bytes: &[u8]) -> Option<MessageName> {
        let DataHeader { session, id, .. } = self.data_header(bytes)?;
        Some(MessageName { addresses: self.addresses(bytes)?, session, id })
    }
}

/// DSCP and ECN of a packet; `None` if it is none of IP.
pub(crate) fn traffic_class(bytes: &[u8]) -> Option<u8> {
    match bytes.first()? >> 4 {
        4 => bytes.first_chunk::<20>().map(|header| header[1]),
        6 => {
            let header = bytes.first_chunk::<40>()?;
            Some(header[0] << 4 | header[1] >> 4)
        }
        _ => None,
    }
}

/// Sets DSCP and ECN, with the checksum of IPv4; the packet has a whole header.
pub(crate) fn set_traffic_class(bytes: &mut [u8], class: u8) {
    match bytes[0] >> 4 {
        4 => {
            let first = bytes[0];
            set_ipv4_word(bytes, 0, [first, class]);
        }
        _ => {
            bytes[0] = bytes[0] & 0xF0 | class >> 4;
            bytes[1] = bytes[1] & 0x0F | class << 4;
        }
    }
}

/// Sets a word of IPv4's header and its checksum, which stays wrong if it was (RFC 1624).
pub(crate) fn set_ipv4_word(header: &mut [u8], at: usize, word: [u8; 2]) {
    let before = u16::from_be_bytes([header[at], header[at + 1]]);
    let checksum = u16::from_be_bytes([header[10], header[11]]);
    let after = changed(checksum, before, u16::from_be_bytes(word));
    header[at..at + 2].copy_from_slice(&word);
    header[10..12].copy_from_slice(&after.to_be_bytes());
}

fn has_port(header: &[u8; TRANSPORT_BYTES], port: u16) -> bool {
    let [high, low] = port.to_be_bytes();
    header[..2] == [high, low] || header[2..4] == [high, low]
}

/// UDP's header, and SMT's own in its place.
pub(crate) const TRANSPORT_BYTES: usize = 8;
const UDP: u8 = 17;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::samples::{Carrier, data, packet};

    fn read(bytes: &[u8]) -> Option<IpPacket> {
        IpPacket::read(bytes, &Recognition::default())
    }

    #[test]
    fn a_message_has_one_name_whatever_carries_it() {
        for carrier in Carrier::ALL {
            let bytes = packet(carrier, &data(77, 300));
            let name = read(&bytes).unwrap().message_name(&bytes).unwrap();
            assert_eq!((name.session, name.id), (5, 77));
            assert_eq!(name.addresses.source[15], 1);
            assert_eq!(name.addresses.destination[15], 2);
        }
    }

    #[test]
    fn packets_of_other_protocols_and_ports_are_none() {
        let udp = packet(Carrier::Udp4, &data(1, 10));
        for (at, byte) in [(9, 6), (9, 1), (0, 0x55), (0, 0x44), (6, 0x20), (7, 1), (23, 0)] {
            let mut other = udp.clone();
            other[at] = byte;
            assert_eq!(read(&other), None, "byte {at} is {byte}");
        }
        let mut tcp = packet(Carrier::Native4, &data(1, 10));
        tcp[9] = 6;
        assert_eq!(read(&tcp), None);
    }

    #[test]
    fn a_packet_that_was_cut_short_is_none_and_padding_behind_one_is_not_read() {
        for carrier in Carrier::ALL {
            let mut bytes = packet(carrier, &data(1, 10));
            for length in 0..bytes.len() {
                assert_eq!(read(&bytes[..length]), None, "{carrier:?}, {length} bytes");
            }
            let end = bytes.len();
            bytes.extend_from_slice(&[0; 6]);
            assert_eq!(read(&bytes).unwrap().datagram.end, end);
        }
    }
}
