// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets out: the device gives each packet of a segment that it has cut an IV, and seals it.

use alloc::vec::Vec;

use zeroize::Zeroizing;

use super::association::{DerivedKey, PspVersion};
use super::master_keys::KEY_BIT;
use super::packet::{OVERHEAD_BYTES, WORD};
use super::sealer::{Contents, Sealer};
use super::{ENGINE, PORT, UDP, UDP_BYTES};
use crate::big_endian::{put_u16, u16_at, u32_at, u64_at};
use crate::engine::{
    BadContextBlock, ContextBlock, Engine, EngineError, PlannedPackets, Protected, Stage,
};
use crate::headers::{Headers, Transport};
use crate::packet_numbers::PacketNumbers;
use crate::segment_place;
use crate::segmentation::PACKET_MAX;

/// The PSP engine of the transmit side.
#[derive(Clone, Copy, Debug, Default)]
pub struct PspEngine;

/// An association for packets out, and the IV of its next packet.
#[derive(Clone)]
pub struct PspContext {
    sealer: Sealer,
    ivs: PacketNumbers,
}

impl PspContext {
    /// The IV of the next packet; `None` after the highest one.
    #[must_use]
    pub fn next_iv(&self) -> Option<u64> {
        self.ivs.next()
    }

    fn seal(&self, iv: u64, headers: &Headers, packet: &mut Vec<u8>) -> Option<()> {
        segment_place::take_alone(packet, headers)?;
        let native = packet.split_off(headers.transport_at);
        let next_header_at = headers.ip.next_header_at();
        let next_header = core::mem::replace(&mut packet[next_header_at], UDP);
        packet.extend(source_port(&native).to_be_bytes());
        packet.extend(PORT.to_be_bytes());
        // Length and checksum.
        packet.extend([0; 4]);
        let contents =
            Contents { next_header, clear_bytes: clear_bytes(&native), payload: &native };
        let sealed = self.sealer.seal(iv, contents, packet);
        sealed.ok()?;
        let length = packet.len() - headers.transport_at;
        put_u16(packet, headers.transport_at + 4, length as u16);
        headers.write_ip_length(packet);
        Some(())
    }
}

impl Engine for PspEngine {
    type Context = PspContext;

    fn create(&self, block: &ContextBlock) -> Result<PspContext, BadContextBlock> {
        let bytes = block.bytes();
        if bytes[0] != ENGINE {
            return Err(BadContextBlock::OtherEngine);
        }
        let version = PspVersion::of_number(bytes[1]).ok_or(BadContextBlock::UnknownSuite)?;
        let spi = u32_at(bytes, 36);
        let ivs = PacketNumbers::new(u64_at(bytes, 40), u64::MAX);
        let ivs = ivs.filter(|_| spi & !KEY_BIT != 0).ok_or(BadContextBlock::BadAssociation)?;
        let mut key = Zeroizing::new([0; 32]);
        key.copy_from_slice(&bytes[4..36]);
        Ok(PspContext { sealer: Sealer::new(spi, version, &DerivedKey::new(*key)), ivs })
    }

    /// Takes the IV forward. A lower one changes nothing: it was used.
    fn resync(&self, context: &mut PspContext, iv: u64) {
        context.ivs.go_on_with(iv);
    }

    fn stage(&self, _context: &PspContext) -> Stage {
        Stage::Packet
    }

    /// Nothing is done before a segment is cut.
    fn protect(&self, _context: &mut PspContext, _: &mut [u8]) -> Result<Protected, EngineError> {
        Ok(Protected::default())
    }

    fn permits(
        &self,
        context: &PspContext,
        headers: &Headers,
        planned: PlannedPackets<'_>,
    ) -> Result<(), EngineError> {
        let PlannedPackets { header, packets, longest } = planned;
        let is_good = headers.transport == Transport::Smt
            && longest + UDP_BYTES + OVERHEAD_BYTES <= PACKET_MAX
            && segment_place::has_places(header, headers, packets);
        if !is_good {
            return Err(EngineError::BadPayload);
        }
        context.ivs.suffice(packets)
    }

    fn transform(
        &self,
        context: &mut PspContext,
        headers: &Headers,
        packet: &mut Vec<u8>,
    ) -> Result<Protected, EngineError> {
        let iv = context.ivs.take()?;
        let bytes = (packet.len() - headers.transport_at) as u64;
        let sealed = context.seal(iv, headers, packet);
        sealed.ok_or(EngineError::BadPayload)?;
        Ok(Protected { records: 1, bytes })
    }
}

/// The SPI and the next IV, no key.
impl core::fmt::Debug for PspContext {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PspContext")
            .field("spi", &self.sealer.spi())
            .field("next_iv", &self.ivs.next())
            .finish_non_exhaustive()
    }
}

/// The source port of UDP: one of the dynamic ports (RFC 6335), by both native ports. Packets
/// between two ports keep their way and their order, and others may take another.
fn source_port(native: &[u8]) -> u16 {
    DYNAMIC_PORTS | (u16_at(native, 0) ^ u16_at(native, 2))
}

/// The bytes that stay clear: the native header, and that of a DATA or a control packet behind it.
fn clear_bytes(native: &[u8]) -> usize {
    let most = match native.get(TYPE) {
        Some(&DATA) => DATA_CLEAR,
        _ => CONTROL_CLEAR,
    };
    most.min(native.len() / WORD * WORD)
}

/// The lowest of the dynamic ports, whose two upper bits all of them have.
const DYNAMIC_PORTS: u16 = 0xC000;
/// Where a packet's type is behind the native header, and the type of DATA (SPEC §3, §4.1).
const TYPE: usize = 8 + 1;
const DATA: u8 = 0x01;
/// Bytes of the native header with that of DATA, and with that of a control packet.
const DATA_CLEAR: usize = 11 * WORD;
const CONTROL_CLEAR: usize = 9 * WORD;
