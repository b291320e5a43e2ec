// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The eight bytes before a datagram natively over IP (SPEC §15.2): TCP's ports and sequence
//! number, which UDP's header stands for elsewhere.

/// The header before an SMT datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct NativeHeader {
    pub(super) source: u16,
    pub(super) destination: u16,
}

impl NativeHeader {
    /// Bytes of the header.
    pub(super) const LEN: usize = 8;

    pub(super) fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..2].copy_from_slice(&self.source.to_be_bytes());
        bytes[2..4].copy_from_slice(&self.destination.to_be_bytes());
        // The sequence number is 0: each packet names its own offset.
        bytes
    }

    /// The header at the beginning of `bytes`, and what is behind it. `None` if `bytes` are too
    /// few.
    pub(super) fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (header, datagram) = bytes.split_first_chunk::<{ Self::LEN }>()?;
        let [s0, s1, d0, d1, ..] = *header;
        let header = Self {
            source: u16::from_be_bytes([s0, s1]),
            destination: u16::from_be_bytes([d0, d1]),
        };
        Some((header, datagram))
    }
}

/// The bytes behind the header of an IPv4 packet. `None` if the packet is cut short or no IPv4.
pub(super) fn behind_ipv4(packet: &[u8]) -> Option<&[u8]> {
    let first = *packet.first()?;
    let length = usize::from(first & 0xF) * 4;
    (first >> 4 == 4 && length >= 20).then(|| packet.get(length..))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let header = NativeHeader {
            source: 0x0102,
            destination: 0xFFFE,
        };
        let bytes = [&header.to_bytes()[..], b"rest"].concat();
        assert_eq!(bytes[..8], [1, 2, 0xFF, 0xFE, 0, 0, 0, 0]);
        assert_eq!(NativeHeader::parse(&bytes), Some((header, &b"rest"[..])));
        assert_eq!(NativeHeader::parse(&bytes[..7]), None);
    }

    #[test]
    fn options_of_ipv4_are_passed_over() {
        let mut packet = [0_u8; 30];
        packet[0] = 0x46;
        packet[24] = 9;
        assert_eq!(behind_ipv4(&packet).map(|rest| rest[0]), Some(9));
        for (first, length) in [(0x44, 30), (0x65, 30), (0x4F, 30)] {
            packet[0] = first;
            assert_eq!(behind_ipv4(&packet[..length]), None);
        }
        assert_eq!(behind_ipv4(&[]), None);
    }
}
