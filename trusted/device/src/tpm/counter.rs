// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A counter in a TPM that only grows.

use super::buffer::{Fields, sized};
use super::commands::{NV_INCREMENT, NV_READ};
use super::nv::{self, Index};
use super::session::Session;
use super::storage_key::StorageKey;
use super::{TpmError, Transport};

/// A counter (bits 4 to 7), written and read with its own secret; no dictionary attacks are
/// counted.
const ATTRIBUTES: u32 = 1 << 2 | 1 << 4 | 1 << 18 | 1 << 25;
/// Bytes of its value.
const VALUE_LEN: u16 = 8;

/// An NV counter with the secret that it takes to use it.
///
/// A counter that is deleted and defined again does not start from the beginning: a TPM begins
/// each new one above all that were deleted (part 1, section 37.2.4).
pub struct Counter<'a> {
    /// The index.
    pub index: u32,
    /// The secret.
    pub secret: &'a [u8; 32],
}

impl<'a> Counter<'a> {
    /// Defines a counter at the first free index.
    ///
    /// # Errors
    /// Those of the TPM, which may have no place left, and of the way to it.
    pub fn define(tpm: &mut Transport, secret: &'a [u8; 32]) -> Result<Self, TpmError> {
        let index = nv::define(tpm, secret, ATTRIBUTES, VALUE_LEN)?;
        Ok(Self { index, secret })
    }

    /// Makes the counter readable, for which it must have been incremented once.
    ///
    /// # Errors
    /// Those of the TPM and of the way to it.
    pub fn begin(&self, tpm: &mut Transport, key: &StorageKey) -> Result<u64, TpmError> {
        let mut session = Session::start(tpm, key)?;
        self.index(ATTRIBUTES).run(tpm, &mut session, NV_INCREMENT, Fields::default())?;
        let value = self.read(tpm, &mut session)?;
        session.end(tpm)?;
        Ok(value)
    }

    /// The value, in a session of its own.
    ///
    /// # Errors
    /// Those of the TPM and of the way to it.
    pub fn value(&self, tpm: &mut Transport, key: &StorageKey) -> Result<u64, TpmError> {
        let mut session = Session::start(tpm, key)?;
        let value = self.read(tpm, &mut session)?;
        session.end(tpm)?;
        Ok(value)
    }

    /// Increments the counter from `value`, which is what it is now. The new value is the caller's
    /// alone: each increment that a TPM has confirmed added one, so two callers who both find
    /// `value + 1` afterwards cannot have added two. Nothing if somebody else has incremented it
    /// meanwhile.
    ///
    /// # Errors
    /// Those of the TPM and of the way to it.
    pub fn increment_from(
        &self,
        tpm: &mut Transport,
        key: &StorageKey,
        value: u64,
    ) -> Result<Option<u64>, TpmError> {
        let mut session = Session::start(tpm, key)?;
        let index = self.index(ATTRIBUTES | nv::WRITTEN);
        index.run(tpm, &mut session, NV_INCREMENT, Fields::default())?;
        let after = self.read(tpm, &mut session)?;
        session.end(tpm)?;
        Ok((value.checked_add(1) == Some(after)).then_some(after))
    }

    fn read(&self, tpm: &mut Transport, session: &mut Session) -> Result<u64, TpmError> {
        let index = self.index(ATTRIBUTES | nv::WRITTEN);
        // All bytes from the beginning.
        let parameters = Fields::default().u16(VALUE_LEN).u16(0);
        let response = index.run(tpm, session, NV_READ, parameters)?;
        let mut rest = &response[..];
        let value = sized(&mut rest).and_then(|value| value.try_into().ok());
        value.map(u64::from_be_bytes).ok_or(TpmError::Forged(NV_READ.1))
    }

    fn index(&self, attributes: u32) -> Index<'_> {
        Index { index: self.index, secret: self.secret, attributes, length: VALUE_LEN }
    }
}
