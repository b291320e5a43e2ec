// SPDX-License-Identifier: Apache-2.0 OR MIT
//! ESP in UDP (RFC 3948).

use crate::parameters::Encapsulation;

pub(crate) const UDP_HEADER_LEN: usize = 8;

/// The bytes that precede an IKE message on ESP's UDP port, where ESP has its SPI (RFC 3948 §2.2).
pub const NON_ESP_MARKER: [u8; 4] = [0; 4];

/// The datagram that keeps the state of address translators (RFC 3948 §2.3).
pub const KEEPALIVE: [u8; 1] = [0xFF];

/// The content of a datagram to ESP's UDP port.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum UdpPayload<'a> {
    /// A keepalive, to be dropped.
    Keepalive,
    /// An IKE message, without its marker.
    Ike(&'a [u8]),
    /// ESP, from its SPI on.
    Esp(&'a [u8]),
    /// Too short for any of them, to be dropped.
    Malformed,
}

impl<'a> UdpPayload<'a> {
    /// Tells what the payload of a datagram is.
    #[must_use]
    pub fn of(payload: &'a [u8]) -> Self {
        if payload == KEEPALIVE {
            return Self::Keepalive;
        }
        match payload.split_first_chunk() {
            Some((&NON_ESP_MARKER, message)) => Self::Ike(message),
            Some(_) if payload.len() >= 8 => Self::Esp(payload),
            _ => Self::Malformed,
        }
    }
}

/// Writes the header of the datagram that `datagram` is: with its length, without a checksum.
pub(crate) fn write_header(datagram: &mut [u8], ports: Encapsulation) {
    let length = u16::try_from(datagram.len()).unwrap_or(u16::MAX);
    datagram[..2].copy_from_slice(&ports.local_port.to_be_bytes());
    datagram[2..4].copy_from_slice(&ports.remote_port.to_be_bytes());
    datagram[4..6].copy_from_slice(&length.to_be_bytes());
    datagram[6..8].fill(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marker_keepalive_and_esp_are_told_apart() {
        assert_eq!(UdpPayload::of(&KEEPALIVE), UdpPayload::Keepalive);
        assert_eq!(UdpPayload::of(&[0, 0, 0, 0, 9]), UdpPayload::Ike(&[9]));
        let esp = [0, 0, 1, 0, 0, 0, 0, 1];
        assert_eq!(UdpPayload::of(&esp), UdpPayload::Esp(&esp));
        assert_eq!(UdpPayload::of(&[]), UdpPayload::Malformed);
        assert_eq!(UdpPayload::of(&esp[..7]), UdpPayload::Malformed);
    }
}
