// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets of PSP: header, clear bytes, ciphertext, ICV.
//!
//! | off | size | field |
//! |--:|--:|:--|
//! | 0 | 1 | next header: IP protocol number of what is inside |
//! | 1 | 1 | header extension length: 1; with a virtualization cookie 2 |
//! | 2 | 1 | crypt offset, in words of 4 bytes behind byte 16 (6 bits) |
//! | 3 | 1 | sample (0x80), drop (0x40), version (4 bits from 0x04 on), cookie (0x02), 1 |
//! | 4 | 4 | SPI |
//! | 8 | 8 | IV |
//!
//! The ICV covers all bytes before it. The nonce is the SPI and the IV.

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use thiserror::Error;

use super::association::{Association, PspVersion};
use super::master_keys::MasterKeys;
use super::sealer::{Contents, Sealer};
use crate::big_endian::u32_at;

/// A sending context: an association, and the IVs that are left of it.
pub struct SendContext {
    sealer: Sealer,
    /// The next IV; `None` after the highest one.
    next_iv: Option<u64>,
}

/// A packet that was opened.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OpenedPacket {
    /// The IP protocol number of what is inside.
    pub next_header: u8,
    /// Where it is in the packet: its clear bytes and its plaintext.
    pub payload: Range<usize>,
    /// The SPI, which tells the host which peer the packet is of.
    pub spi: u32,
}

/// A payload that is not sealed.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum SealFailed {
    /// All IVs of the association are used up.
    #[error("all IVs of the association are used up: ask the peer for a new one")]
    IvsUsedUp,
    /// The crypt offset is no multiple of 4 up to 252, or lies beyond the payload's end.
    #[error("the crypt offset is no multiple of 4 up to 252 within the payload")]
    BadCryptOffset,
    /// The payload does not fit a packet.
    #[error("the payload does not fit a packet")]
    TooLong,
}

/// A packet that is not opened, and stays as it came.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum OpenFailed {
    /// The bytes are no packet of PSP, or of a version that the engine does not have.
    #[error("bytes from the network are no packet of a version of PSP that is known")]
    Malformed,
    /// The device has no key for the SPI's top bit.
    #[error("the device has no key for this SPI")]
    NoKey,
    /// The ICV is wrong: forged, damaged, or of a device key that was replaced.
    #[error("the packet does not authenticate under the key of its SPI")]
    Forged,
}

impl SendContext {
    /// The context of an association that the peer's device has allocated. Its IVs begin with 1,
    /// and it takes the association with it: under two contexts packets would share their nonces.
    /// A host that is told an association makes one of it, and no other.
    ///
    /// ```compile_fail,E0382
    /// use smt_nic::psp::{Association, SendContext};
    /// fn twice(association: Association) -> [SendContext; 2] {
    ///     [SendContext::new(association), SendContext::new(association)]
    /// }
    /// ```
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "the association is used up")]
    pub fn new(association: Association) -> Self {
        Self {
            sealer: Sealer::new(association.spi, association.version, &association.key),
            next_iv: Some(1),
        }
    }

    /// Seals a payload, of which the first `clear_bytes` stay clear, and appends the packet to
    /// `out`. A repetition is sealed anew, under the next IV.
    ///
    /// # Errors
    /// [`SealFailed`]; nothing was appended, and no IV was used.
    pub fn seal(
        &mut self,
        next_header: u8,
        clear_bytes: usize,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), SealFailed> {
        let iv = self.next_iv.ok_or(SealFailed::IvsUsedUp)?;
        let contents = Contents { next_header, clear_bytes, payload };
        self.sealer.seal(iv, contents, out)?;
        self.next_iv = iv.checked_add(1);
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn skip_to(&mut self, iv: u64) {
        self.next_iv = Some(iv);
    }
}

/// The SPI and the next IV, no key.
impl fmt::Debug for SendContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendContext")
            .field("spi", &self.sealer.spi())
            .field("next_iv", &self.next_iv)
            .finish_non_exhaustive()
    }
}

impl MasterKeys {
    /// Opens a packet in place, from its PSP header to its ICV.
    ///
    /// # Errors
    /// [`OpenFailed`]; the packet is as it came.
    pub fn open(&self, packet: &mut [u8]) -> Result<OpenedPacket, OpenFailed> {
        let (front, icv) =
            packet.split_last_chunk_mut::<ICV_BYTES>().ok_or(OpenFailed::Malformed)?;
        let header = Header::parse(front).ok_or(OpenFailed::Malformed)?;
        let key = self.derive(header.spi, header.version);
        let cipher = key.ok_or(OpenFailed::NoKey)?.cipher(header.version);
        let length = front.len();
        let (clear, text) = front.split_at_mut(header.text_at);
        if !cipher.open(nonce(clear), clear, text, icv) {
            return Err(OpenFailed::Forged);
        }
        Ok(OpenedPacket {
            next_header: header.next_header,
            payload: header.payload_at..length,
            spi: header.spi,
        })
    }
}

/// A header, parsed.
struct Header {
    next_header: u8,
    version: PspVersion,
    spi: u32,
    /// Where the payload begins, and where its ciphertext does.
    payload_at: usize,
    text_at: usize,
}

impl Header {
    /// Reads the header of a packet without its ICV. The sample and drop bits, and reserved ones,
    /// count for nothing. An extension is passed over, but its last word may be encrypted: then the
    /// payload behind it begins where it ends.
    fn parse(packet: &[u8]) -> Option<Self> {
        let header = packet.get(..HEADER_BYTES)?;
        let [next_header, extension, crypt_offset, flags] = *header.first_chunk::<4>()?;
        let payload_at = 8 + 8 * usize::from(extension);
        let text_at = HEADER_BYTES + WORD * usize::from(crypt_offset & CRYPT_OFFSET_MASK);
        let is_whole = payload_at.max(text_at) <= packet.len();
        if extension < EXTENSION_MIN || !is_whole || flags & ALWAYS == 0 {
            return None;
        }
        Some(Self {
            next_header,
            version: PspVersion::of_number(flags >> VERSION_SHIFT & VERSION_MASK)?,
            spi: u32_at(header, 4),
            payload_at,
            text_at,
        })
    }
}

/// The nonce: the SPI and the IV as they are in the header.
pub(super) fn nonce(header: &[u8]) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce.copy_from_slice(&header[4..HEADER_BYTES]);
    nonce
}

/// Bytes of the header without an extension.
pub const HEADER_BYTES: usize = 16;
/// Bytes of the integrity check value behind a packet.
pub const ICV_BYTES: usize = 16;
/// Bytes that a packet has beside its payload.
pub const OVERHEAD_BYTES: usize = HEADER_BYTES + ICV_BYTES;
/// Bytes of the longest payload: behind a header of UDP (8) in a packet of IP.
pub(super) const PAYLOAD_MAX: usize = 65_535 - 8 - OVERHEAD_BYTES;
pub(super) const WORD: usize = 4;
pub(super) const CRYPT_OFFSET_MASK: u8 = 0x3F;
pub(super) const EXTENSION_MIN: u8 = 1;
pub(super) const VERSION_SHIFT: u8 = 2;
const VERSION_MASK: u8 = 0x0F;
pub(super) const ALWAYS: u8 = 1;
