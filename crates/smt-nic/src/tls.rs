// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The TLS engine: it seals the records of a segment by a flow context, whose record number counts
//! by itself, as NICs with autonomous offload do (SMT paper §2.3).
//!
//! The context block is, big-endian:
//!
//! | off | size | field |
//! |--:|--:|:--|
//! | 0 | 1 | engine: 1 |
//! | 2 | 2 | suite: its code in TLS 1.3 |
//! | 4 | 32 | key; shorter ones first, zeros behind |
//! | 36 | 12 | IV |
//! | 48 | 8 | number of the first record |
//!
//! The payload of a segment is whole records (RFC 8446 §5.2), each with its header, its inner
//! plaintext (content, type and padding) and 16 bytes of room for the tag. The nonce is the IV XOR
//! the number.
//!
//! **The engine cannot know that a number is wrong.** It seals what comes under the number that the
//! context has. The driver sees to it that no number meets two plaintexts.

use aes_gcm::aead::AeadInPlace;
use aes_gcm::{Aes128Gcm, Aes256Gcm, KeyInit};
use chacha20poly1305::ChaCha20Poly1305;

use crate::engine::{BadContextBlock, ContextBlock, Engine, EngineError, Protected};

/// The engine's name in byte 0 of a context block.
pub const ENGINE: u8 = 1;

/// The TLS engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct TlsEngine;

/// The context of a flow: its keys, and the number of its next record.
#[derive(Clone)]
pub struct TlsContext {
    cipher: Cipher,
    iv: [u8; 12],
    /// The number of the next record; `None` after the highest one.
    number: Option<u64>,
}

#[derive(Clone)]
#[allow(
    clippy::large_enum_variant,
    reason = "contexts are of one size in the device's memory"
)]
enum Cipher {
    Aes128Gcm(Aes128Gcm),
    Aes256Gcm(Aes256Gcm),
    ChaCha20Poly1305(ChaCha20Poly1305),
}

impl TlsContext {
    /// The number of the next record; `None` after the highest one.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        self.number
    }

    fn seal(&self, number: u64, record: &mut [u8]) -> Result<(), EngineError> {
        let (header, rest) = record.split_at_mut(HEADER);
        let (plaintext, tag) = rest.split_at_mut(rest.len() - TAG);
        let mut nonce = self.iv;
        for (byte, of) in nonce[4..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= of;
        }
        let nonce = (&nonce).into();
        let sealed = match &self.cipher {
            Cipher::Aes128Gcm(of) => of.encrypt_in_place_detached(nonce, header, plaintext),
            Cipher::Aes256Gcm(of) => of.encrypt_in_place_detached(nonce, header, plaintext),
            Cipher::ChaCha20Poly1305(of) => of.encrypt_in_place_detached(nonce, header, plaintext),
        };
        let made = sealed.map_err(|_| EngineError::BadPayload)?;
        tag.copy_from_slice(&made);
        Ok(())
    }
}

/// No byte of a key.
impl core::fmt::Debug for TlsContext {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("TlsContext")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

impl Engine for TlsEngine {
    type Context = TlsContext;

    fn create(&self, block: &ContextBlock) -> Result<TlsContext, BadContextBlock> {
        let bytes = block.bytes();
        if bytes[0] != ENGINE {
            return Err(BadContextBlock::OtherEngine);
        }
        let key = &bytes[4..36];
        let cipher = match u16::from_be_bytes([bytes[2], bytes[3]]) {
            AES_128_GCM => Aes128Gcm::new_from_slice(&key[..16]).map(Cipher::Aes128Gcm),
            AES_256_GCM => Aes256Gcm::new_from_slice(key).map(Cipher::Aes256Gcm),
            CHACHA20_POLY1305 => {
                ChaCha20Poly1305::new_from_slice(key).map(Cipher::ChaCha20Poly1305)
            }
            _ => return Err(BadContextBlock::UnknownSuite),
        };
        let mut iv = [0; 12];
        iv.copy_from_slice(&bytes[36..48]);
        let mut number = [0; 8];
        number.copy_from_slice(&bytes[48..56]);
        Ok(TlsContext {
            cipher: cipher.map_err(|_| BadContextBlock::UnknownSuite)?,
            iv,
            number: Some(u64::from_be_bytes(number)),
        })
    }

    fn resync(&self, context: &mut TlsContext, number: u64) {
        context.number = Some(number);
    }

    fn protect(
        &self,
        context: &mut TlsContext,
        payload: &mut [u8],
    ) -> Result<Protected, EngineError> {
        let records = count_records(payload)?;
        let first = context.number.ok_or(EngineError::NumbersUsedUp)?;
        let last = first
            .checked_add(records - 1)
            .ok_or(EngineError::NumbersUsedUp)?;
        let mut rest = payload;
        let mut bytes = 0;
        for number in first..=last {
            let length = record_bytes(rest).ok_or(EngineError::BadPayload)?;
            let (record, behind) = rest.split_at_mut(length);
            context.seal(number, record)?;
            bytes += (length - HEADER - TAG) as u64;
            rest = behind;
        }
        context.number = last.checked_add(1);
        Ok(Protected { records, bytes })
    }
}

/// How many records a payload is, which must be whole ones: nothing is sealed before all are known
/// to be.
fn count_records(payload: &[u8]) -> Result<u64, EngineError> {
    let mut rest = payload;
    let mut records = 0;
    while !rest.is_empty() {
        let length = record_bytes(rest).ok_or(EngineError::BadPayload)?;
        rest = &rest[length..];
        records += 1;
    }
    match records {
        0 => Err(EngineError::BadPayload),
        records => Ok(records),
    }
}

/// Bytes of the record at the beginning of `bytes`, if it is whole.
fn record_bytes(bytes: &[u8]) -> Option<usize> {
    let [APPLICATION_DATA, 3, 3, high, low, ..] = *bytes else {
        return None;
    };
    let body = usize::from(u16::from_be_bytes([high, low]));
    let length = HEADER + body;
    // At least the content type is inside (RFC 8446 §5.2).
    ((TAG + 1..=BODY_MAX).contains(&body) && length <= bytes.len()).then_some(length)
}

const AES_128_GCM: u16 = 0x1301;
const AES_256_GCM: u16 = 0x1302;
const CHACHA20_POLY1305: u16 = 0x1303;
const APPLICATION_DATA: u8 = 0x17;
/// Bytes of a record's header.
const HEADER: usize = 5;
/// Bytes of a record's tag.
const TAG: usize = 16;
/// Bytes of a record behind its header, the most that RFC 8446 §5.2 permits.
const BODY_MAX: usize = (1 << 14) + 256;

#[cfg(test)]
mod tests;
