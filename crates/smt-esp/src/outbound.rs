// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An association for packets out: RFC 4303 §3.3.

use std::time::Duration;

use crate::buffer::PacketBuffer;
use crate::checksum::Sum;
use crate::cipher::{Cipher, ESP_HEADER_LEN};
use crate::error::SealError;
use crate::ip::{self, Headers, protocol};
use crate::lifetime::Usage;
use crate::limits::FIRST_SPI;
use crate::numbers::SequenceNumbers;
use crate::parameters::{Encapsulation, Mode, Parameters, ParametersError};
use crate::selector::{Flow, Selectors};
use crate::statistics::AssociationStatistics;
use crate::suite::Suite;
use crate::trailer::{self, TRAILER_LEN};
use crate::tunnel::Inner;
use crate::udp::{self, UDP_HEADER_LEN};

/// A packet was sealed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Sealed {
    /// The association's SPI.
    pub spi: u32,
    /// The packet's sequence number.
    pub number: u64,
    /// A soft limit was reached: the association should be replaced. Said once.
    pub soft_expired: bool,
}

/// An association for packets out.
pub struct OutboundAssociation {
    spi: u32,
    suite: Suite,
    cipher: Cipher,
    mode: Mode,
    encapsulation: Option<Encapsulation>,
    extended: bool,
    numbers: SequenceNumbers,
    usage: Usage,
    selectors: Selectors,
}

/// How the bytes of a packet are laid out before it is sealed.
struct Layout {
    /// Bytes before UDP or ESP, as they are now: zero in tunnel mode.
    header_len: usize,
    /// The byte that names what follows the header, and what it is.
    next_header_at: usize,
    next_header: u8,
    /// The packet's length, without what follows it in the caller's memory.
    length: usize,
}

impl OutboundAssociation {
    /// An association whose lifetime begins `now`, a time since a beginning of the caller's.
    ///
    /// # Errors
    /// If the parameters are out of their ranges.
    pub fn new(parameters: Parameters, now: Duration) -> Result<Self, ParametersError> {
        check(&parameters)?;
        let first = parameters.first_number;
        let numbers = SequenceNumbers::new(first, parameters.extended_numbers)
            .ok_or(ParametersError::FirstNumber(first))?;
        Ok(Self {
            spi: parameters.spi,
            suite: parameters.key.suite(),
            cipher: Cipher::new(&parameters.key),
            mode: parameters.mode,
            encapsulation: parameters.encapsulation,
            extended: parameters.extended_numbers,
            numbers,
            usage: Usage::new(parameters.lifetime, now),
            selectors: parameters.selectors,
        })
    }

    /// The association's SPI.
    #[must_use]
    pub const fn spi(&self) -> u32 {
        self.spi
    }

    /// The number of the next packet; nothing once all are used. A successor in another process
    /// begins there, or beyond.
    #[must_use]
    pub const fn next_number(&self) -> Option<u64> {
        self.numbers.next()
    }

    /// Whether a flow's packets are for this association.
    #[must_use]
    pub fn is_for(&self, flow: &Flow) -> bool {
        self.selectors.match_outbound(flow)
    }

    /// The longest packet, in bytes with its IP header, that is at most `mtu` bytes once sealed.
    #[must_use]
    pub fn longest_packet(&self, mtu: usize) -> usize {
        let around = self.bytes_before() + self.suite.icv_len();
        (mtu.saturating_sub(around) & !(trailer::ALIGNMENT - 1)).saturating_sub(TRAILER_LEN)
    }

    /// Seals the IP packet in `buffer`, in place.
    ///
    /// # Errors
    /// [`SealError`]; the packet must not be sent then.
    pub fn seal(
        &mut self,
        buffer: &mut PacketBuffer<'_>,
        now: Duration,
    ) -> Result<Sealed, SealError> {
        let headers = Headers::parse(buffer.packet())?;
        let layout = match self.mode {
            Mode::Transport if headers.fragment => return Err(SealError::Fragment),
            Mode::Transport => Layout {
                header_len: headers.protected.at,
                next_header_at: headers.protected.next_header_at,
                next_header: headers.protected.protocol,
                length: headers.length,
            },
            Mode::Tunnel(_) => Layout {
                header_len: 0,
                next_header_at: 0,
                next_header: if headers.is_v4() { protocol::IPV4 } else { protocol::IPV6 },
                length: headers.length,
            },
        };
        let inner = Inner::of(buffer.packet(), headers.traffic_class);
        self.seal_layout(buffer, &layout, inner, now)
    }

    /// Makes a dummy packet out of the IP header in `buffer`, which the receiver opens and drops
    /// (RFC 4303 §2.6). In tunnel mode the packet in `buffer` travels as the dummy's payload.
    ///
    /// # Errors
    /// [`SealError`]; the packet must not be sent then.
    pub fn seal_dummy(
        &mut self,
        buffer: &mut PacketBuffer<'_>,
        now: Duration,
    ) -> Result<Sealed, SealError> {
        let headers = Headers::parse(buffer.packet())?;
        let transport = matches!(self.mode, Mode::Transport);
        let place = headers.protected;
        let layout = Layout {
            header_len: if transport { place.at } else { 0 },
            next_header_at: if transport { place.next_header_at } else { 0 },
            next_header: protocol::NO_NEXT,
            length: headers.length,
        };
        let inner = Inner::of(buffer.packet(), headers.traffic_class);
        self.seal_layout(buffer, &layout, inner, now)
    }

    fn seal_layout(
        &mut self,
        buffer: &mut PacketBuffer<'_>,
        layout: &Layout,
        inner: Inner,
        now: Duration,
    ) -> Result<Sealed, SealError> {
        let payload_len = layout.length - layout.header_len;
        let trailer_len = trailer::length(payload_len);
        let before = self.bytes_before();
        let added = before + trailer_len + self.suite.icv_len();
        let v4 = match self.mode {
            Mode::Transport => buffer.packet()[0] >> 4 == 4,
            Mode::Tunnel(outer) => outer.source.is_ipv4(),
        };
        let sealed_len = layout.length + added;
        if sealed_len > ip::longest(v4) {
            let limit = self.longest_packet(ip::longest(v4));
            return Err(SealError::TooBig { limit });
        }
        buffer.set_length(layout.length);
        if buffer.headroom() < before || buffer.tailroom() < added - before {
            return Err(SealError::NoRoom);
        }
        self.usage.permits(payload_len + trailer_len, now)?;
        // The number is used from here on, whatever comes.
        let number = self.numbers.take().ok_or(SealError::SequenceExhausted)?;

        buffer.insert_gap(layout.header_len, before);
        buffer.set_length(sealed_len);
        self.write_headers(buffer.packet_mut(), layout, inner, number);
        let (packet, esp_at) = (buffer.packet_mut(), self.esp_at(layout));
        let payload_end = esp_at + ESP_HEADER_LEN + self.suite.iv_len() + payload_len;
        trailer::write(&mut packet[payload_end..payload_end + trailer_len], layout.next_header);
        self.cipher
            .seal(&mut packet[esp_at..], self.high(number))
            .map_err(|_| SealError::Cipher)?;
        if self.encapsulation.is_some() && !v4 {
            set_udp_checksum(packet, esp_at - UDP_HEADER_LEN)?;
        }
        Ok(Sealed {
            spi: self.spi,
            number,
            soft_expired: self.usage.count(payload_len + trailer_len, now),
        })
    }

    /// Writes what precedes the payload: outer header or changed IP header, UDP, ESP and IV.
    fn write_headers(&self, packet: &mut [u8], layout: &Layout, inner: Inner, number: u64) {
        let length = packet.len();
        let next_header_at = match self.mode {
            Mode::Transport => layout.next_header_at,
            Mode::Tunnel(outer) => {
                outer.write(&mut packet[..outer.length()], inner, number as u16);
                if outer.source.is_ipv4() { 9 } else { 6 }
            }
        };
        let esp_at = self.esp_at(layout);
        packet[next_header_at] = protocol::ESP;
        if let Some(ports) = self.encapsulation {
            packet[next_header_at] = protocol::UDP;
            udp::write_header(&mut packet[esp_at - UDP_HEADER_LEN..], ports);
        }
        ip::set_length(packet, length);
        let esp = &mut packet[esp_at..];
        esp[..4].copy_from_slice(&self.spi.to_be_bytes());
        esp[4..8].copy_from_slice(&(number as u32).to_be_bytes());
        if self.suite.iv_len() > 0 {
            esp[8..16].copy_from_slice(&number.to_be_bytes());
        }
    }

    /// Where ESP begins in a sealed packet.
    const fn esp_at(&self, layout: &Layout) -> usize {
        layout.header_len + self.bytes_before() - ESP_HEADER_LEN - self.suite.iv_len()
    }

    /// Bytes that come before the payload: outer header, UDP, ESP header, IV.
    const fn bytes_before(&self) -> usize {
        let outer = match &self.mode {
            Mode::Transport => 0,
            Mode::Tunnel(outer) => outer.length(),
        };
        let udp = if self.encapsulation.is_some() { UDP_HEADER_LEN } else { 0 };
        outer + udp + ESP_HEADER_LEN + self.suite.iv_len()
    }

    fn high(&self, number: u64) -> Option<u32> {
        self.extended.then_some((number >> 32) as u32)
    }

    /// Whether a packet has reached a soft limit: the association should be replaced.
    #[must_use]
    pub const fn is_soft_expired(&self) -> bool {
        self.usage.is_soft_expired()
    }

    /// Counts of what was sealed so far.
    #[must_use]
    pub const fn statistics(&self) -> AssociationStatistics {
        AssociationStatistics {
            bytes: self.usage.bytes(),
            packets: self.usage.packets(),
            replay_window: 0,
            replay: 0,
            failed: 0,
        }
    }
}

/// IPv6 has no UDP without a checksum, but for tunnels that are known to both ends (RFC 8200
/// §8.1).
fn set_udp_checksum(packet: &mut [u8], udp_at: usize) -> Result<(), SealError> {
    let headers = Headers::parse(packet)?;
    let datagram = &packet[udp_at..];
    let sum = Sum::pseudo(headers.source, headers.destination, protocol::UDP, datagram.len());
    let checksum = sum.add(datagram).udp_checksum();
    packet[udp_at + 6..udp_at + 8].copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}

pub(crate) fn check(parameters: &Parameters) -> Result<(), ParametersError> {
    if parameters.spi < FIRST_SPI {
        return Err(ParametersError::Spi(parameters.spi));
    }
    if let Mode::Tunnel(outer) = parameters.mode
        && outer.source.is_ipv4() != outer.destination.is_ipv4()
    {
        return Err(ParametersError::TunnelAddresses);
    }
    Ok(())
}
