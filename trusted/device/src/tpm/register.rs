// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A register in a TPM that remembers, as one digest, all that it was extended with.

use sha2::{Digest, Sha256};

use super::buffer::{Fields, sized};
use super::commands::{NV_EXTEND, NV_READ};
use super::nv::{self, Index};
use super::session::Session;
use super::storage_key::StorageKey;
use super::{TpmError, Transport};

/// A digest that is extended (bits 4 to 7), written and read with its own secret; no dictionary
/// attacks are counted.
const ATTRIBUTES: u32 = 4 << 4 | 1 << 2 | 1 << 18 | 1 << 25;
/// Bytes of its value.
const VALUE_LEN: u16 = 32;

/// An NV index that can only be extended, with the secret that it takes to use it.
///
/// Its value is SHA-256 over the value before and what it was extended with, so that two different
/// histories have two different values. An index that is deleted and defined again begins at zeros:
/// it takes the secret to bring the history back.
pub struct Register<'a> {
    /// The index.
    pub index: u32,
    /// The secret.
    pub secret: &'a [u8; 32],
}

impl<'a> Register<'a> {
    /// Defines a register at the first free index. Its value is zero.
    ///
    /// # Errors
    /// Those of the TPM, which may have no place left, and of the way to it.
    pub fn define(tpm: &mut Transport, secret: &'a [u8; 32]) -> Result<Self, TpmError> {
        let index = nv::define(tpm, secret, ATTRIBUTES, VALUE_LEN)?;
        Ok(Self { index, secret })
    }

    /// Extends a register that was defined just now.
    ///
    /// # Errors
    /// Those of the TPM and of the way to it.
    pub fn begin(
        &self,
        tpm: &mut Transport,
        key: &StorageKey,
        with: &[u8; 32],
    ) -> Result<[u8; 32], TpmError> {
        self.extend_from(tpm, key, ATTRIBUTES, with)
    }

    /// The value, in a session of its own.
    ///
    /// # Errors
    /// Those of the TPM, which has none before the first extension, and of the way to it.
    pub fn value(&self, tpm: &mut Transport, key: &StorageKey) -> Result<[u8; 32], TpmError> {
        let mut session = Session::start(tpm, key)?;
        let value = self.read(tpm, &mut session)?;
        session.end(tpm)?;
        Ok(value)
    }

    /// Extends the register, and returns its value afterwards.
    ///
    /// # Errors
    /// Those of the TPM and of the way to it. Then it is not known whether it was extended.
    pub fn extend(
        &self,
        tpm: &mut Transport,
        key: &StorageKey,
        with: &[u8; 32],
    ) -> Result<[u8; 32], TpmError> {
        self.extend_from(tpm, key, ATTRIBUTES | nv::WRITTEN, with)
    }

    fn extend_from(
        &self,
        tpm: &mut Transport,
        key: &StorageKey,
        attributes: u32,
        with: &[u8; 32],
    ) -> Result<[u8; 32], TpmError> {
        let mut session = Session::start(tpm, key)?;
        let parameters = Fields::default().sized(with);
        self.index(attributes).run(tpm, &mut session, NV_EXTEND, parameters)?;
        let value = self.read(tpm, &mut session)?;
        session.end(tpm)?;
        Ok(value)
    }

    fn read(&self, tpm: &mut Transport, session: &mut Session) -> Result<[u8; 32], TpmError> {
        let index = self.index(ATTRIBUTES | nv::WRITTEN);
        // All bytes from the beginning.
        let parameters = Fields::default().u16(VALUE_LEN).u16(0);
        let response = index.run(tpm, session, NV_READ, parameters)?;
        let mut rest = &response[..];
        let value = sized(&mut rest).and_then(|value| value.try_into().ok());
        value.ok_or(TpmError::Forged(NV_READ.1))
    }

    fn index(&self, attributes: u32) -> Index<'_> {
        Index { index: self.index, secret: self.secret, attributes, length: VALUE_LEN }
    }
}

/// The value of a register after it was extended.
#[must_use]
pub fn extended(before: &[u8; 32], with: &[u8; 32]) -> [u8; 32] {
    Sha256::new().chain_update(before).chain_update(with).finalize().into()
}
