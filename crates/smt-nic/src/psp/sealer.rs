// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The sealing of packets, under IVs that another part counts.

use alloc::vec::Vec;

use super::association::{DerivedKey, PspCipher, PspVersion};
use super::packet::{
    ALWAYS, CRYPT_OFFSET_MASK, EXTENSION_MIN, HEADER_BYTES, PAYLOAD_MAX, SealFailed, VERSION_SHIFT,
    WORD, nonce,
};

/// The cipher of an association, and what is in the headers of its packets.
#[derive(Clone)]
pub(super) struct Sealer {
    spi: u32,
    version: PspVersion,
    cipher: PspCipher,
}

/// The contents of a packet.
#[derive(Clone, Copy)]
pub(super) struct Contents<'a> {
    /// The IP protocol number of the payload.
    pub(super) next_header: u8,
    /// How many bytes of the payload stay clear.
    pub(super) clear_bytes: usize,
    pub(super) payload: &'a [u8],
}

impl Sealer {
    pub(super) fn new(spi: u32, version: PspVersion, key: &DerivedKey) -> Self {
        Self { spi, version, cipher: key.cipher(version) }
    }

    pub(super) fn spi(&self) -> u32 {
        self.spi
    }

    /// Seals contents under an IV, and appends the packet to `out`. After an error nothing was
    /// appended.
    pub(super) fn seal(
        &self,
        iv: u64,
        contents: Contents<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), SealFailed> {
        let Contents { next_header, clear_bytes, payload } = contents;
        let words = u8::try_from(clear_bytes / WORD).unwrap_or(u8::MAX);
        let is_possible = clear_bytes.is_multiple_of(WORD) && words <= CRYPT_OFFSET_MASK;
        if !is_possible || clear_bytes > payload.len() {
            return Err(SealFailed::BadCryptOffset);
        }
        if payload.len() > PAYLOAD_MAX {
            return Err(SealFailed::TooLong);
        }
        let start = out.len();
        out.extend_from_slice(&[next_header, EXTENSION_MIN, words]);
        out.push(self.version.number() << VERSION_SHIFT | ALWAYS);
        out.extend_from_slice(&self.spi.to_be_bytes());
        out.extend_from_slice(&iv.to_be_bytes());
        out.extend_from_slice(payload);
        let (clear, text) = out[start..].split_at_mut(HEADER_BYTES + clear_bytes);
        let Some(icv) = self.cipher.seal(nonce(clear), clear, text) else {
            out.truncate(start);
            return Err(SealFailed::TooLong);
        };
        out.extend_from_slice(&icv);
        Ok(())
    }
}
