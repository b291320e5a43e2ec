// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where ESP is in a packet that was received.

use crate::error::OpenError;
use crate::ip::{Headers, protocol};
use crate::udp::{UDP_HEADER_LEN, UdpPayload};

/// Where ESP is in a packet, as the network brought it: nothing here has authenticated.
#[derive(Clone, Copy, Debug)]
pub struct EspPlace {
    pub(crate) headers: Headers,
    pub(crate) esp_at: usize,
    pub(crate) spi: u32,
    pub(crate) low: u32,
    pub(crate) in_udp: bool,
}

impl EspPlace {
    /// The SPI, by which a receiver finds the association, and may spread packets over its queues:
    /// the ports are encrypted.
    #[must_use]
    pub const fn spi(&self) -> u32 {
        self.spi
    }
}

/// The content of a received IP packet.
#[derive(Clone, Copy, Debug)]
pub enum Carried {
    /// ESP, by itself or in UDP.
    Esp(EspPlace),
    /// An IKE message in UDP, behind its marker.
    Ike,
    /// A keepalive in UDP.
    Keepalive,
    /// Anything else.
    Other,
}

impl Carried {
    /// Looks for ESP in an IP packet; `udp_port` is where ESP in UDP comes to, if at all.
    ///
    /// # Errors
    /// [`OpenError::Malformed`] and [`OpenError::Fragment`].
    pub fn find(packet: &[u8], udp_port: Option<u16>) -> Result<Self, OpenError> {
        let headers = Headers::parse(packet)?;
        let payload = &packet[headers.upper.at..headers.length];
        let upper = headers.upper;
        match upper.protocol {
            protocol::ESP if headers.fragment => Err(OpenError::Fragment),
            protocol::ESP => place(&headers, payload, false).map(Self::Esp),
            protocol::UDP if !headers.fragment => in_udp(&headers, payload, udp_port),
            _ => Ok(Self::Other),
        }
    }
}

fn in_udp(headers: &Headers, datagram: &[u8], port: Option<u16>) -> Result<Carried, OpenError> {
    let Some((header, rest)) = datagram.split_first_chunk::<UDP_HEADER_LEN>() else {
        return Ok(Carried::Other);
    };
    if port != Some(u16::from_be_bytes([header[2], header[3]])) {
        return Ok(Carried::Other);
    }
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    if length != datagram.len() {
        return Err(OpenError::Malformed);
    }
    match UdpPayload::of(rest) {
        UdpPayload::Keepalive => Ok(Carried::Keepalive),
        UdpPayload::Ike(_) => Ok(Carried::Ike),
        UdpPayload::Esp(esp) => place(headers, esp, true).map(Carried::Esp),
        UdpPayload::Malformed => Err(OpenError::Malformed),
    }
}

fn place(headers: &Headers, esp: &[u8], in_udp: bool) -> Result<EspPlace, OpenError> {
    let [a, b, c, d, e, f, g, h] = *esp.first_chunk().ok_or(OpenError::Malformed)?;
    Ok(EspPlace {
        headers: *headers,
        esp_at: headers.length - esp.len(),
        spi: u32::from_be_bytes([a, b, c, d]),
        low: u32::from_be_bytes([e, f, g, h]),
        in_udp,
    })
}
