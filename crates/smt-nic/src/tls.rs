// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The TLS engine: it seals the records of a segment by a flow context, whose record number counts
//! by itself, as NICs with autonomous offload do (SMT paper §2.3).
//!
//! The context block is, big-endian:
//!
//! | off | size | field |
//! |--:|--:|:--|
//! | 0 | 1 | engine: 1 |
//! | 1 | 1 | direction: 0, sending ([`receive`] has the other) |
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

use zeroize::Zeroizing;

use crate::big_endian::{u16_at, u64_at};
use crate::engine::{BadContextBlock, ContextBlock, Engine, EngineError, Protected};
use record_key::{APPLICATION_DATA, HEADER, RecordKey, TAG};

pub mod receive;
mod record_key;

/// The engine's name in byte 0 of a context block.
pub const ENGINE: u8 = 1;

/// The TLS engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct TlsEngine;

/// The context of a flow: its keys, and the number of its next record.
#[derive(Clone)]
pub struct TlsContext {
    key: RecordKey,
    /// The number of the next record; `None` after the highest one.
    number: Option<u64>,
}

impl TlsContext {
    /// The number of the next record; `None` after the highest one.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        self.number
    }
}

/// No byte of a key.
impl core::fmt::Debug for TlsContext {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("TlsContext").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Engine for TlsEngine {
    type Context = TlsContext;

    fn create(&self, block: &ContextBlock) -> Result<TlsContext, BadContextBlock> {
        let bytes = block.bytes();
        Ok(TlsContext { key: key_of(block, SENDING)?, number: Some(u64_at(bytes, 48)) })
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
        let last = first.checked_add(records - 1).ok_or(EngineError::NumbersUsedUp)?;
        let mut rest = payload;
        let mut bytes = 0;
        for number in first..=last {
            let length = record_bytes(rest).ok_or(EngineError::BadPayload)?;
            let (record, behind) = rest.split_at_mut(length);
            let sealed = context.key.seal(number, record);
            sealed.map_err(|_| EngineError::BadPayload)?;
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

/// The key in a context block of this direction.
fn key_of(block: &ContextBlock, direction: u8) -> Result<RecordKey, BadContextBlock> {
    let bytes = block.bytes();
    if bytes[..2] != [ENGINE, direction] {
        return Err(BadContextBlock::OtherEngine);
    }
    let suite = u16_at(bytes, 2);
    let (mut key, mut iv) = (Zeroizing::new([0; 32]), Zeroizing::new([0; 12]));
    key.copy_from_slice(&bytes[4..36]);
    iv.copy_from_slice(&bytes[36..48]);
    RecordKey::new(suite, &key, iv).ok_or(BadContextBlock::UnknownSuite)
}

/// The direction in byte 1 of a context block.
const SENDING: u8 = 0;
/// Bytes of a record behind its header, the most that RFC 8446 §5.2 permits.
const BODY_MAX: usize = (1 << 14) + 256;

#[cfg(test)]
mod tests;
