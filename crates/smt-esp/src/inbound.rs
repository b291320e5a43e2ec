// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An association for packets in: RFC 4303 §3.4.

use std::net::IpAddr;
use std::time::Duration;

use crate::buffer::PacketBuffer;
use crate::cipher::{Cipher, ESP_HEADER_LEN};
use crate::error::OpenError;
use crate::ip::{self, Headers, protocol};
use crate::lifetime::Usage;
use crate::locate::EspPlace;
use crate::numbers::SequenceNumbers;
use crate::outbound::check;
use crate::parameters::{Mode, Parameters, ParametersError};
use crate::selector::{Flow, Selectors};
use crate::statistics::AssociationStatistics;
use crate::suite::Suite;
use crate::trailer::{self, TRAILER_LEN, Trailer};
use crate::tunnel;
use crate::udp::UDP_HEADER_LEN;
use crate::window::ReplayWindow;

/// A packet was opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Opened {
    /// The association's SPI.
    pub spi: u32,
    /// The packet's sequence number.
    pub number: u64,
    /// The packet is a dummy, to be dropped; the buffer holds no packet (RFC 4303 §2.6).
    pub dummy: bool,
    /// A soft limit was reached: the association should be replaced. Said once.
    pub soft_expired: bool,
}

/// An association for packets in.
pub struct InboundAssociation {
    spi: u32,
    suite: Suite,
    cipher: Cipher,
    tunnel: bool,
    in_udp: bool,
    extended: bool,
    window: ReplayWindow,
    usage: Usage,
    selectors: Selectors,
    local: Option<IpAddr>,
    remote: Option<IpAddr>,
    /// Bytes and packets are in `usage`.
    refused: AssociationStatistics,
}

impl InboundAssociation {
    /// An association whose lifetime begins `now`, a time since a beginning of the caller's.
    ///
    /// The fields of a tunnel header do not count here: [`Parameters::local`] and
    /// [`Parameters::remote`] tell which outer addresses are taken.
    ///
    /// # Errors
    /// If the parameters are out of their ranges.
    pub fn new(parameters: Parameters, now: Duration) -> Result<Self, ParametersError> {
        check(&parameters)?;
        let width = parameters.replay_window;
        let (extended, first) = (parameters.extended_numbers, parameters.first_number);
        // Both ends have the same range of numbers.
        SequenceNumbers::new(first, extended).ok_or(ParametersError::FirstNumber(first))?;
        let window = ReplayWindow::new(width, extended, first)
            .ok_or(ParametersError::ReplayWindow(width))?;
        Ok(Self {
            spi: parameters.spi,
            suite: parameters.key.suite(),
            cipher: Cipher::new(&parameters.key),
            tunnel: matches!(parameters.mode, Mode::Tunnel(_)),
            in_udp: parameters.encapsulation.is_some(),
            extended,
            window,
            usage: Usage::new(parameters.lifetime, now),
            selectors: parameters.selectors,
            local: parameters.local,
            remote: parameters.remote,
            refused: AssociationStatistics::default(),
        })
    }

    /// The association's SPI.
    #[must_use]
    pub const fn spi(&self) -> u32 {
        self.spi
    }

    /// The addresses that packets must have: this host's and the peer's.
    #[must_use]
    pub const fn addresses(&self) -> (Option<IpAddr>, Option<IpAddr>) {
        (self.local, self.remote)
    }

    /// The highest number that has authenticated; 0 before the first packet.
    #[must_use]
    pub const fn highest_number(&self) -> u64 {
        self.window.top()
    }

    /// How well the association fits a packet's addresses: each that is required counts, and
    /// nothing if one differs (RFC 4301 §4.1, the longest match).
    pub(crate) fn fit(&self, place: &EspPlace) -> Option<u8> {
        let one = |wanted: Option<IpAddr>, address| match wanted {
            None => Some(0),
            Some(wanted) => (wanted == address).then_some(1),
        };
        let local = one(self.local, place.headers.destination)?;
        let remote = one(self.remote, place.headers.source)?;
        // An association that names the destination comes before one that names the source.
        Some(local * 2 + remote)
    }

    /// Opens the packet in `buffer` in place; `place` is what [`Carried::find`] found there.
    ///
    /// # Errors
    /// [`OpenError`]; the bytes in `buffer` are worthless then.
    ///
    /// # Panics
    /// If `place` was found in another packet.
    ///
    /// [`Carried::find`]: crate::Carried::find
    pub fn open(
        &mut self,
        buffer: &mut PacketBuffer<'_>,
        place: &EspPlace,
        now: Duration,
    ) -> Result<Opened, OpenError> {
        if self.in_udp != place.in_udp {
            return Err(OpenError::Encapsulation);
        }
        let opened = self.open_counted(buffer, place, now);
        match opened {
            Err(OpenError::Replay) => self.refused.replay += 1,
            Err(OpenError::BelowWindow) => self.refused.replay_window += 1,
            Err(OpenError::Integrity) => self.refused.failed += 1,
            _ => {}
        }
        opened
    }

    fn open_counted(
        &mut self,
        buffer: &mut PacketBuffer<'_>,
        place: &EspPlace,
        now: Duration,
    ) -> Result<Opened, OpenError> {
        let around = ESP_HEADER_LEN + self.suite.iv_len() + self.suite.icv_len();
        let esp_len = place.headers.length - place.esp_at;
        let protected_len = esp_len.checked_sub(around);
        let protected_len =
            protected_len.filter(|length| *length >= TRAILER_LEN).ok_or(OpenError::Malformed)?;
        self.usage.permits(protected_len, now)?;
        let number = self.window.infer(place.low)?;
        self.window.check(number)?;

        buffer.set_length(place.headers.length);
        let high = self.extended.then_some((number >> 32) as u32);
        let esp = &mut buffer.packet_mut()[place.esp_at..];
        self.cipher.open(esp, high).map_err(|_| OpenError::Integrity)?;
        // All below is the peer's own word.
        self.window.mark(number);
        let soft_expired = self.usage.count(protected_len, now);

        let payload_at = place.esp_at + ESP_HEADER_LEN + self.suite.iv_len();
        let trailer = trailer::read(&buffer.packet()[payload_at..payload_at + protected_len])?;
        let dummy = trailer.next_header == protocol::NO_NEXT;
        if !dummy {
            if self.tunnel {
                unwrap_tunnel(buffer, place, payload_at, trailer)?;
            } else {
                unwrap_transport(buffer, place, payload_at, trailer);
            }
            let headers = Headers::parse(buffer.packet()).map_err(|_| OpenError::Inner)?;
            let flow = Flow::new(buffer.packet(), &headers);
            if !self.selectors.match_inbound(&flow) {
                return Err(OpenError::Selectors);
            }
        }
        Ok(Opened { spi: self.spi, number, dummy, soft_expired })
    }

    /// Whether a packet has reached a soft limit: the association should be replaced.
    #[must_use]
    pub const fn is_soft_expired(&self) -> bool {
        self.usage.is_soft_expired()
    }

    /// Counts of what was opened and refused so far.
    #[must_use]
    pub const fn statistics(&self) -> AssociationStatistics {
        AssociationStatistics {
            bytes: self.usage.bytes(),
            packets: self.usage.packets(),
            ..self.refused
        }
    }
}

/// Puts the IP header in front of the payload again.
fn unwrap_transport(
    buffer: &mut PacketBuffer<'_>,
    place: &EspPlace,
    payload_at: usize,
    trailer: Trailer,
) {
    let header_len = place.esp_at - if place.in_udp { UDP_HEADER_LEN } else { 0 };
    let payload = &buffer.packet()[payload_at..payload_at + trailer.payload_len];
    let payload_len = without_traffic_padding(payload, trailer.next_header);
    buffer.remove_gap(header_len, payload_at - header_len);
    let length = header_len + payload_len;
    buffer.set_length(length);
    let packet = buffer.packet_mut();
    packet[place.headers.upper.next_header_at] = trailer.next_header;
    ip::set_length(packet, length);
}

/// The length of a payload without traffic flow confidentiality padding, which only a protocol
/// that tells its own length is able to have (RFC 4303 §2.7).
fn without_traffic_padding(payload: &[u8], next_header: u8) -> usize {
    match payload.first_chunk::<UDP_HEADER_LEN>() {
        Some(header) if next_header == protocol::UDP => {
            let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
            if (UDP_HEADER_LEN..payload.len()).contains(&length) { length } else { payload.len() }
        }
        _ => payload.len(),
    }
}

/// Takes the inner packet out of an outer one.
fn unwrap_tunnel(
    buffer: &mut PacketBuffer<'_>,
    place: &EspPlace,
    payload_at: usize,
    trailer: Trailer,
) -> Result<(), OpenError> {
    let inner = &buffer.packet()[payload_at..payload_at + trailer.payload_len];
    let headers = Headers::parse(inner).map_err(|_| OpenError::Inner)?;
    let expected = if headers.is_v4() { protocol::IPV4 } else { protocol::IPV6 };
    if trailer.next_header != expected {
        return Err(OpenError::Inner);
    }
    // The inner packet tells its own length: what follows is padding (RFC 4303 §2.7).
    buffer.remove_gap(0, payload_at);
    buffer.set_length(headers.length);
    tunnel::carry_congestion(
        buffer.packet_mut(),
        headers.traffic_class,
        place.headers.traffic_class,
    )
}
