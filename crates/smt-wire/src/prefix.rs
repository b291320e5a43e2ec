// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The 12 bytes that begin every packet (SPEC §3.1).
//!
//! Reserved bytes are written as zero and not looked at. Version and type stay at offsets 0 and 1
//! in all versions.

use crate::field::{put, u16_at};
use crate::packet_type::PacketType;

/// The fields that all packets share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prefix {
    /// Set by the sender. Over native IP a NIC sees part of TCP's acknowledgement number.
    pub(crate) version: u8,
    /// The packet's type. Copied into every segment by a NIC, like all of the prefix.
    pub(crate) ty: u8,
    /// Low 8 bits of the key epoch, set by the sealing side; 0 in handshake packets.
    pub(crate) epoch: u8,
    /// Bit 0: RETRANSMIT, set by the side that sends bytes again. The others are reserved.
    pub(crate) flags: u8,
    /// TCP's data offset: it tells a NIC where a segment's payload begins (SPEC §15.2).
    pub(crate) header_words: u8,
    /// Bytes of the packet, or 0 for "to the end of the datagram": one value for all packets
    /// that a NIC or kernel cuts from one send. Set by the sender.
    pub(crate) length: u16,
}

impl Prefix {
    pub(crate) const LEN: usize = 12;

    /// The bit of `flags` that marks bytes sent before.
    pub(crate) const RETRANSMIT: u8 = 0x01;

    /// A prefix as sent; epoch and flags 0.
    pub(crate) fn new(version: u8, ty: PacketType, length: u16) -> Self {
        let header_words = header_words(ty);
        Self { version, ty: ty as u8, epoch: 0, flags: 0, header_words, length }
    }

    pub(crate) fn read(bytes: &[u8; Self::LEN]) -> Self {
        Self {
            version: bytes[field::VERSION],
            ty: bytes[field::TYPE],
            epoch: bytes[field::EPOCH],
            flags: bytes[field::FLAGS],
            header_words: bytes[field::HEADER_WORDS],
            length: u16_at(bytes, field::LENGTH),
        }
    }

    /// Writes the first 12 bytes of `out`.
    pub(crate) fn write(&self, out: &mut [u8]) {
        let mut bytes = [0; Self::LEN];
        bytes[field::VERSION] = self.version;
        bytes[field::TYPE] = self.ty;
        bytes[field::EPOCH] = self.epoch;
        bytes[field::FLAGS] = self.flags;
        bytes[field::HEADER_WORDS] = self.header_words;
        put(&mut bytes, field::LENGTH, &self.length.to_be_bytes());
        put(out, 0..Self::LEN, &bytes);
    }
}

/// The one value of the header words that a type may have.
pub(crate) const fn header_words(ty: PacketType) -> u8 {
    match ty {
        PacketType::Data => HEADER_WORDS_DATA,
        _ => HEADER_WORDS_OTHER,
    }
}

/// (8 + 36) / 4 words in the high nibble: DATA's index, id, length and offset pass for options.
pub(crate) const HEADER_WORDS_DATA: u8 = 0xB0;
/// (8 + 12) / 4 words in the high nibble. Also that of types still unknown.
pub(crate) const HEADER_WORDS_OTHER: u8 = 0x50;

pub(crate) mod field {
    crate::layout::fields! {
        VERSION = 0;
        TYPE = 1;
        EPOCH = 2;
        FLAGS = 3;
        HEADER_WORDS = 4;
        LENGTH = 6..8;
        RESERVED = 8..12;
    }
}

const _: () = assert!(field::RESERVED.end == Prefix::LEN);
const _: () = assert!(HEADER_WORDS_DATA as usize >> 4 == (8 + crate::DataHeader::LEN) / 4);
const _: () = assert!(HEADER_WORDS_OTHER as usize >> 4 == (8 + Prefix::LEN) / 4);
