// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages that tell a sender that its packet is too long (RFC 4301 §8.2): "fragmentation needed"
//! of ICMP (RFC 1191 §4), "packet too big" of ICMPv6 (RFC 4443 §3.2).

/// The message about `packet`, as a whole IP packet that its sender gets. `limit` is the longest
/// packet that would pass. Nothing for an IPv4 packet that routers may fragment, and for an error
/// message of ICMP, about which none is sent.
pub(crate) fn too_big(packet: &[u8], limit: usize) -> Option<Vec<u8>> {
    match packet.first()? >> 4 {
        4 => too_big_v4(packet, limit),
        6 => too_big_v6(packet, limit),
        _ => None,
    }
}

fn too_big_v4(packet: &[u8], limit: usize) -> Option<Vec<u8>> {
    let header_len = 4 * usize::from(packet[0] & 0xF);
    let header = packet.get(..header_len).filter(|header| header.len() >= 20)?;
    let is_icmp = header[9] == 1;
    if header[6] & 0x40 == 0 || is_icmp {
        return None;
    }
    // The header and eight bytes behind it.
    let quoted = packet.get(..header_len + 8)?;
    let mut message = vec![0; 28];
    message[0] = 0x45;
    let length = (28 + quoted.len()) as u16;
    message[2..4].copy_from_slice(&length.to_be_bytes());
    message[6] = 0x40;
    message[8] = 64;
    message[9] = 1;
    // From the address that the packet could not reach, to its sender.
    message[12..16].copy_from_slice(&header[16..20]);
    message[16..20].copy_from_slice(&header[12..16]);
    let sum = checksum(0, &message[..20]);
    message[10..12].copy_from_slice(&sum.to_be_bytes());
    message[20..22].copy_from_slice(&[3, 4]);
    message[26..28].copy_from_slice(&(limit.min(0xFFFF) as u16).to_be_bytes());
    message.extend_from_slice(quoted);
    let sum = checksum(0, &message[20..]);
    message[22..24].copy_from_slice(&sum.to_be_bytes());
    Some(message)
}

fn too_big_v6(packet: &[u8], limit: usize) -> Option<Vec<u8>> {
    let header = packet.get(..40)?;
    let is_error = header[6] == 58 && packet.get(40).is_some_and(|kind| kind & 0x80 == 0);
    if is_error {
        return None;
    }
    // As much as fits the least MTU.
    let quoted = &packet[..packet.len().min(1_280 - 48)];
    let mut message = vec![0; 48];
    message[0] = 0x60;
    let length = 8 + quoted.len() as u32;
    message[4..6].copy_from_slice(&(length as u16).to_be_bytes());
    message[6] = 58;
    message[7] = 64;
    message[8..24].copy_from_slice(&header[24..40]);
    message[24..40].copy_from_slice(&header[8..24]);
    message[40] = 2;
    message[44..48].copy_from_slice(&(limit as u32).to_be_bytes());
    message.extend_from_slice(quoted);
    let sum = checksum(length + 58, &message[8..]);
    message[42..44].copy_from_slice(&sum.to_be_bytes());
    Some(message)
}

/// The Internet checksum (RFC 1071) of bytes and of what was summed up before.
fn checksum(before: u32, bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| {
        let second = pair.get(1).copied().unwrap_or(0);
        u32::from(u16::from_be_bytes([pair[0], second]))
    });
    let mut sum: u32 = before + words.sum::<u32>();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(flags: u8, protocol: u8) -> Vec<u8> {
        let mut packet = vec![0; 1_500];
        packet[0] = 0x45;
        packet[6] = flags;
        packet[9] = protocol;
        packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        packet
    }

    #[test]
    fn a_sender_is_told_the_longest_packet_of_ipv4() {
        let message = too_big(&v4(0x40, 6), 1_400).unwrap();
        assert_eq!(message[12..20], [10, 0, 0, 2, 10, 0, 0, 1], "back to the sender");
        assert_eq!(message[20..22], [3, 4]);
        assert_eq!(message[26..28], 1_400_u16.to_be_bytes());
        assert_eq!(checksum(0, &message[..20]), 0);
        assert_eq!(checksum(0, &message[20..]), 0);
        assert_eq!(message.len(), 56);
    }

    #[test]
    fn a_sender_is_told_the_longest_packet_of_ipv6() {
        let mut packet = vec![0; 2_000];
        packet[0] = 0x60;
        packet[6] = 6;
        let message = too_big(&packet, 1_400).unwrap();
        assert_eq!(message.len(), 1_280);
        assert_eq!(message[44..48], 1_400_u32.to_be_bytes());
        assert_eq!(checksum(58 + 1_240, &message[8..]), 0);
    }

    #[test]
    fn no_message_is_about_a_packet_that_may_be_fragmented_or_about_an_error() {
        assert_eq!(too_big(&v4(0, 6), 1_400), None);
        assert_eq!(too_big(&v4(0x40, 1), 1_400), None);
        let mut error = vec![0; 1_500];
        error[0] = 0x60;
        error[6] = 58;
        error[40] = 2;
        assert_eq!(too_big(&error, 1_400), None);
        for length in 0..28 {
            assert_eq!(too_big(&v4(0x40, 6)[..length], 1_400), None);
        }
    }
}
