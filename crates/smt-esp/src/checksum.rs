// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The Internet checksum (RFC 1071), and the pseudo-headers of RFC 9293 §3.1 and RFC 8200 §8.1.

use std::net::IpAddr;

/// A sum of 16-bit words that has not been folded.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Sum(u64);

impl Sum {
    /// Adds bytes; an odd last one is the upper half of a word. Only the last part may be odd.
    pub(crate) fn add(self, bytes: &[u8]) -> Self {
        let mut words = bytes.chunks_exact(4);
        let mut sum = self.0;
        for word in &mut words {
            sum += u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
        }
        let mut last = [0; 4];
        let rest = words.remainder();
        last[..rest.len()].copy_from_slice(rest);
        Self(sum + u64::from(u32::from_be_bytes(last)))
    }

    /// The pseudo-header of a transport protocol.
    pub(crate) fn pseudo(source: IpAddr, destination: IpAddr, protocol: u8, length: usize) -> Self {
        let address = |sum: Self, address| match address {
            IpAddr::V4(v4) => sum.add(&v4.octets()),
            IpAddr::V6(v6) => sum.add(&v6.octets()),
        };
        let sum = address(address(Self::default(), source), destination);
        Self(sum.0 + u64::from(protocol) + length as u64)
    }

    /// The sum folded to 16 bits, not inverted: what a partial checksum holds.
    pub(crate) fn folded(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xFFFF {
            sum = (sum & 0xFFFF) + (sum >> 16);
        }
        u16::try_from(sum).unwrap_or(u16::MAX)
    }

    /// The checksum: the inverse of the folded sum.
    pub(crate) fn checksum(self) -> u16 {
        !self.folded()
    }

    /// UDP's checksum, for which zero means that there is none (RFC 768).
    pub(crate) fn udp_checksum(self) -> u16 {
        match self.checksum() {
            0 => 0xFFFF,
            checksum => checksum,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071_has_its_sum() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::default().add(&bytes).folded(), 0xddf2);
    }

    #[test]
    fn a_checksum_over_itself_is_zero() {
        let mut header =
            *b"\x45\x00\x00\x73\x00\x00\x40\x00\x40\x11\x00\x00\xc0\xa8\x00\x01\xc0\xa8\x00\xc7";
        let checksum = Sum::default().add(&header).checksum();
        assert_eq!(checksum, 0xb861);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        assert_eq!(Sum::default().add(&header).checksum(), 0);
    }

    #[test]
    fn an_odd_last_byte_is_the_upper_half_of_a_word() {
        assert_eq!(Sum::default().add(&[1, 2, 3]).folded(), 0x0102 + 0x0300);
    }
}
