// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Receive-side scaling: the Toeplitz hash over a packet's addresses and ports, and for SMT over
//! the id of its message, if the host wants so. ESP hides the ports: there the SPI takes their
//! place, and a flow stays on its queue whether the device opens its packets or the host does.
//!
//! A hash over ports alone gives a session one core. With the message's id the messages of one
//! session are spread, and all packets of one message stay together (SMT paper §4.4.2, §7).

use crate::headers::{Headers, IpVersion, Transport};
use crate::receive::coalescing::DataFields;

/// The fields that are hashed.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum RssFields {
    /// Addresses and ports.
    #[default]
    Ports,
    /// Addresses and ports, and of SMT's DATA packets the message's id.
    PortsAndMessage,
}

/// The hash of a device.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Rss {
    /// The fields.
    pub fields: RssFields,
    /// The key of the Toeplitz hash; secret, where peers must not choose queues.
    pub key: [u8; KEY_BYTES],
}

impl Default for Rss {
    /// Ports, by the key in the specification of RSS, zeros behind.
    fn default() -> Self {
        let mut key = [0; KEY_BYTES];
        key[..EXAMPLE_KEY.len()].copy_from_slice(&EXAMPLE_KEY);
        Self { fields: RssFields::default(), key }
    }
}

impl Rss {
    /// The hash of a packet with these headers.
    #[must_use]
    pub fn hash(&self, packet: &[u8], headers: &Headers) -> u32 {
        let addresses = match headers.ip {
            IpVersion::V4 => packet.get(12..20),
            IpVersion::V6 => packet.get(8..40),
        };
        // The SPI is in their place in ESP.
        let ports = packet.get(headers.transport_at..headers.transport_at + 4);
        let (Some(addresses), Some(ports)) = (addresses, ports) else {
            return 0;
        };
        let is_smt = headers.transport == Transport::Smt;
        let id = (self.fields == RssFields::PortsAndMessage && is_smt)
            .then(|| DataFields::read(packet, headers))
            .flatten()
            .map(|data| data.id.to_be_bytes());
        let id = id.as_ref().map_or(&[][..], |id| id);
        self.toeplitz(addresses.iter().chain(ports).chain(id).copied())
    }

    /// The Toeplitz hash of bytes, as many as the key permits: the others count for nothing.
    fn toeplitz(&self, bytes: impl Iterator<Item = u8>) -> u32 {
        let (head, tail) = self.key.split_at(4);
        let mut window = head.iter().fold(0_u32, |window, byte| window << 8 | u32::from(*byte));
        let mut hash = 0;
        for (byte, next) in bytes.zip(tail) {
            for bit in (0..8).rev() {
                if byte >> bit & 1 == 1 {
                    hash ^= window;
                }
                window = window << 1 | u32::from(next >> bit & 1);
            }
        }
        hash
    }
}

/// The queue of a hash, by a table of 128 entries that names the queues in turn. `None` without any
/// queue.
pub(crate) fn queue_of(hash: u32, queues: u32) -> Option<u16> {
    let entry = hash % TABLE_ENTRIES;
    u16::try_from(entry.checked_rem(queues)?).ok()
}

/// Bytes of the key: for two addresses of IPv6, ports, an id and four more.
pub const KEY_BYTES: usize = 52;

const TABLE_ENTRIES: u32 = 128;

/// The key in the specification of RSS, by which its examples are computed.
const EXAMPLE_KEY: [u8; 40] = [
    0x6D, 0x5A, 0x56, 0xDA, 0x25, 0x5B, 0x0E, 0xC2, 0x41, 0x67, 0x25, 0x3D, 0x43, 0xA3, 0x8F, 0xB0,
    0xD0, 0xCA, 0x2B, 0xCB, 0xAE, 0x7B, 0x30, 0xB4, 0x77, 0xCB, 0x2D, 0xA3, 0x80, 0x30, 0xF2, 0x0C,
    0x6A, 0x42, 0xB7, 0x3B, 0xBE, 0xAC, 0x01, 0xFA,
];

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use core::net::SocketAddr;

    /// A packet of TCP between these ends.
    fn packet(source: &str, destination: &str) -> Vec<u8> {
        let [source, destination]: [SocketAddr; 2] =
            [source, destination].map(|text| text.parse().unwrap());
        let mut bytes = match (source, destination) {
            (SocketAddr::V4(source), SocketAddr::V4(destination)) => {
                let mut bytes = std::vec![0; 20];
                bytes[0] = 0x45;
                bytes[9] = 6;
                bytes[12..16].copy_from_slice(&source.ip().octets());
                bytes[16..20].copy_from_slice(&destination.ip().octets());
                bytes
            }
            (SocketAddr::V6(source), SocketAddr::V6(destination)) => {
                let mut bytes = std::vec![0; 40];
                bytes[0] = 0x60;
                bytes[6] = 6;
                bytes[8..24].copy_from_slice(&source.ip().octets());
                bytes[24..40].copy_from_slice(&destination.ip().octets());
                bytes
            }
            _ => unreachable!("ends of one version"),
        };
        bytes.extend_from_slice(&source.port().to_be_bytes());
        bytes.extend_from_slice(&destination.port().to_be_bytes());
        bytes.extend_from_slice(&[0; 16]);
        let data_offset = bytes.len() - 8;
        bytes[data_offset] = 5 << 4;
        bytes
    }

    #[test]
    fn the_examples_of_the_specification_of_rss_have_their_hashes() {
        for (source, destination, hash) in [
            ("66.9.149.187:2794", "161.142.100.80:1766", 0x51CC_C178),
            ("199.92.111.2:14230", "65.69.140.83:4739", 0xC626_B0EA),
            ("24.19.198.95:12898", "12.22.207.184:38024", 0x5C2B_394A),
            ("[3ffe:2501:200:1fff::7]:2794", "[3ffe:2501:200:3::1]:1766", 0x4020_7D3D),
        ] {
            let packet = packet(source, destination);
            let headers = Headers::parse(&packet, 253).unwrap();
            assert_eq!(Rss::default().hash(&packet, &headers), hash, "{source}");
        }
    }

    #[test]
    fn a_device_without_queues_has_no_queue_for_a_hash() {
        assert_eq!(queue_of(7, 0), None);
        assert_eq!(queue_of(130, 3), Some(2));
    }
}
