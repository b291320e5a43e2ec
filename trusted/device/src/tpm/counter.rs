// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A counter in a TPM that only grows.

use sha2::{Digest, Sha256};

use super::buffer::{Fields, sized};
use super::commands::{Code, NV_DEFINE_SPACE, NV_INCREMENT, NV_READ, OWNER};
use super::session::{Command, Session};
use super::storage_key::StorageKey;
use super::{TpmError, Transport};

/// The range of indices that owners define (part 2, section 14.6; a place in it of our own).
const INDICES: std::ops::Range<u32> = 0x0181_5300..0x0181_5340;
/// TPM_RC_NV_DEFINED: the index is taken.
const RC_DEFINED: u32 = 0x14c;
/// A counter (bits 4 to 7), written and read with its own secret; no dictionary attacks are
/// counted.
const ATTRIBUTES: u32 = 1 << 2 | 1 << 4 | 1 << 18 | 1 << 25;
/// The TPM sets this when the counter is incremented first.
const WRITTEN: u32 = 1 << 29;

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
        for index in INDICES {
            let public = public_area(index, ATTRIBUTES);
            let parameters = Fields::default().sized(secret).sized(&public.0);
            match tpm.with_empty_password(NV_DEFINE_SPACE, OWNER, &parameters) {
                Ok(_) => return Ok(Self { index, secret }),
                Err(TpmError::Refused { code: RC_DEFINED, .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Err(TpmError::Refused { command: NV_DEFINE_SPACE.1, code: RC_DEFINED })
    }

    /// Makes the counter readable, for which it must have been incremented once.
    ///
    /// # Errors
    /// Those of the TPM and of the way to it.
    pub fn begin(&self, tpm: &mut Transport, key: &StorageKey) -> Result<u64, TpmError> {
        let mut session = Session::start(tpm, key)?;
        self.run(tpm, &mut session, NV_INCREMENT, ATTRIBUTES)?;
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
        self.run(tpm, &mut session, NV_INCREMENT, ATTRIBUTES | WRITTEN)?;
        let after = self.read(tpm, &mut session)?;
        session.end(tpm)?;
        Ok((value.checked_add(1) == Some(after)).then_some(after))
    }

    fn read(&self, tpm: &mut Transport, session: &mut Session) -> Result<u64, TpmError> {
        let response = self.run(tpm, session, NV_READ, ATTRIBUTES | WRITTEN)?;
        let mut rest = &response[..];
        let value = sized(&mut rest).and_then(|value| value.try_into().ok());
        value.map(u64::from_be_bytes).ok_or(TpmError::Forged(NV_READ.1))
    }

    /// A command on the counter, which authorizes itself. Its name is that of a counter with our
    /// attributes, so the TPM refuses an index of another kind.
    fn run(
        &self,
        tpm: &mut Transport,
        session: &mut Session,
        code: Code,
        attributes: u32,
    ) -> Result<zeroize::Zeroizing<Vec<u8>>, TpmError> {
        let digest = Sha256::digest(&public_area(self.index, attributes).0);
        let name = Fields::default().u16(0x000b).bytes(&digest);
        // Eight bytes from the beginning.
        let is_read = code.0 == NV_READ.0;
        let parameters = if is_read { Fields::default().u16(8).u16(0) } else { Fields::default() };
        let handles = &[self.index, self.index];
        let names: &[&[u8]] = &[&name.0, &name.0];
        let secret = self.secret;
        session.run(tpm, &Command { code, handles, names, secret, parameters, is_secret: false })
    }
}

/// Index, name SHA-256, attributes, no policy, eight bytes.
fn public_area(index: u32, attributes: u32) -> Fields {
    Fields::default().u32(index).u16(0x000b).u32(attributes).sized(&[]).u16(8)
}
