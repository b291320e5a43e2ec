// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets out: the device numbers and seals each packet of a segment that it has cut.

use alloc::vec::Vec;

use super::cipher::Cipher;
use super::suite::EspSuite;
use super::{ENGINE, EXTENDED, FIRST_SPI, HEADER, PROTOCOL, last_number, trailer};
use crate::big_endian::{u16_at, u32_at, u64_at};
use crate::engine::{
    BadContextBlock, ContextBlock, Engine, EngineError, PlannedPackets, Protected, Stage,
};
use crate::headers::Headers;
use crate::packet_numbers::PacketNumbers;
use crate::segmentation::PACKET_MAX;

/// The ESP engine of the transmit side.
#[derive(Clone, Copy, Debug, Default)]
pub struct EspEngine;

/// An association for packets out: keys, and the number of its next packet.
#[derive(Clone)]
pub struct EspContext {
    spi: u32,
    is_extended: bool,
    cipher: Cipher,
    numbers: PacketNumbers,
}

impl EspContext {
    /// The number of the next packet; `None` after the highest one.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        self.numbers.next()
    }

    /// Bytes of a packet once it is sealed.
    fn sealed_bytes(&self, headers: &Headers, packet: usize) -> usize {
        let suite = self.cipher.suite();
        let trailer = trailer::bytes_behind(packet - headers.transport_at);
        packet + HEADER + suite.iv_bytes() + trailer + suite.icv_bytes()
    }

    /// ESP's header and IV. The IV is the number: no two packets have the same (RFC 4106 §3.1).
    fn write_header(&self, packet: &mut Vec<u8>, number: u64) {
        packet.extend(self.spi.to_be_bytes());
        packet.extend((number as u32).to_be_bytes());
        let iv = number.to_be_bytes();
        packet.extend(&iv[..self.cipher.suite().iv_bytes()]);
    }

    fn seal(&self, number: u64, headers: &Headers, packet: &mut Vec<u8>) -> Option<()> {
        let payload = packet.split_off(headers.transport_at);
        let next_header_at = headers.ip.next_header_at();
        let next_header = core::mem::replace(&mut packet[next_header_at], PROTOCOL);
        self.write_header(packet, number);
        packet.extend(&payload);
        trailer::append(packet, payload.len(), next_header);
        packet.resize(packet.len() + self.cipher.suite().icv_bytes(), 0);
        headers.write_ip_length(packet);
        let high = self.is_extended.then_some((number >> 32) as u32);
        let esp = &mut packet[headers.transport_at..];
        self.cipher.seal(esp, high).ok()
    }
}

impl Engine for EspEngine {
    type Context = EspContext;

    fn create(&self, block: &ContextBlock) -> Result<EspContext, BadContextBlock> {
        let bytes = block.bytes();
        if bytes[0] != ENGINE {
            return Err(BadContextBlock::OtherEngine);
        }
        let suite = EspSuite::of_code(u16_at(bytes, 2)).ok_or(BadContextBlock::UnknownSuite)?;
        let material = &bytes[4..4 + suite.key_material_bytes()];
        let cipher = Cipher::new(suite, material).ok_or(BadContextBlock::UnknownSuite)?;
        let spi = u32_at(bytes, 40);
        let is_extended = bytes[1] & EXTENDED != 0;
        let numbers = PacketNumbers::new(u64_at(bytes, 44), last_number(is_extended));
        let numbers =
            numbers.filter(|_| spi >= FIRST_SPI).ok_or(BadContextBlock::BadAssociation)?;
        Ok(EspContext { spi, is_extended, cipher, numbers })
    }

    /// Takes the number forward. A lower one changes nothing: it was used.
    fn resync(&self, context: &mut EspContext, number: u64) {
        context.numbers.go_on_with(number);
    }

    fn stage(&self, _context: &EspContext) -> Stage {
        Stage::Packet
    }

    /// Nothing is done before a segment is cut.
    fn protect(&self, _context: &mut EspContext, _: &mut [u8]) -> Result<Protected, EngineError> {
        Ok(Protected::default())
    }

    fn permits(
        &self,
        context: &EspContext,
        headers: &Headers,
        planned: PlannedPackets<'_>,
    ) -> Result<(), EngineError> {
        let PlannedPackets { packets, longest, .. } = planned;
        // The longest packet is the longest one sealed, too.
        if context.sealed_bytes(headers, longest) > PACKET_MAX {
            return Err(EngineError::BadPayload);
        }
        context.numbers.suffice(packets)
    }

    fn transform(
        &self,
        context: &mut EspContext,
        headers: &Headers,
        packet: &mut Vec<u8>,
    ) -> Result<Protected, EngineError> {
        let number = context.numbers.take()?;
        let bytes = (packet.len() - headers.transport_at) as u64;
        let sealed = context.seal(number, headers, packet);
        sealed.ok_or(EngineError::BadPayload)?;
        Ok(Protected { records: 1, bytes })
    }
}

/// No byte of a key.
impl core::fmt::Debug for EspContext {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("EspContext")
            .field("spi", &self.spi)
            .field("number", &self.numbers.next())
            .finish_non_exhaustive()
    }
}
