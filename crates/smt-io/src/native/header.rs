// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The header of IPv4, as far as a raw socket hands it over before a datagram (SPEC §15.2).

/// The bytes behind the header of an IPv4 packet. `None` if the packet is cut short or no IPv4.
pub(super) fn behind_ipv4(packet: &[u8]) -> Option<&[u8]> {
    let first = *packet.first()?;
    let length = usize::from(first & 0xF) * 4;
    (first >> 4 == 4 && length >= 20).then(|| packet.get(length..))?
}

/// The identification of an IPv4 packet that has a whole header.
pub(super) fn identification(packet: &[u8]) -> Option<u16> {
    let bytes = packet.get(4..6)?.first_chunk()?;
    Some(u16::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

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
