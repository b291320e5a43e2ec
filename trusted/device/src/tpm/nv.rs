// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Indices of a TPM's memory that outlives power, each with a secret of its own.

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::buffer::Fields;
use super::commands::{Code, NV_DEFINE_SPACE, OWNER};
use super::session::{Command, Session};
use super::{TpmError, Transport};

/// The range of indices that owners define (part 2, section 14.6; a place in it of our own).
const INDICES: std::ops::Range<u32> = 0x0181_5300..0x0181_5340;
/// TPM_RC_NV_DEFINED: the index is taken.
const RC_DEFINED: u32 = 0x14c;
/// The TPM sets this when the index is written first.
pub(super) const WRITTEN: u32 = 1 << 29;

/// An index as this process expects it.
pub(super) struct Index<'a> {
    pub(super) index: u32,
    pub(super) secret: &'a [u8; 32],
    pub(super) attributes: u32,
    /// Bytes of its value.
    pub(super) length: u16,
}

/// Defines the first free index.
pub(super) fn define(
    tpm: &mut Transport,
    secret: &[u8; 32],
    attributes: u32,
    length: u16,
) -> Result<u32, TpmError> {
    for index in INDICES {
        let public = Index { index, secret, attributes, length }.public_area();
        let parameters = Fields::default().sized(secret).sized(&public.0);
        match tpm.with_empty_password(NV_DEFINE_SPACE, OWNER, &parameters) {
            Ok(_) => return Ok(index),
            Err(TpmError::Refused { code: RC_DEFINED, .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Err(TpmError::Refused { command: NV_DEFINE_SPACE.1, code: RC_DEFINED })
}

impl Index<'_> {
    /// A command on the index, which authorizes itself. Its name is that of an index with our
    /// attributes, so the TPM refuses one of another kind.
    pub(super) fn run(
        &self,
        tpm: &mut Transport,
        session: &mut Session,
        code: Code,
        parameters: Fields,
    ) -> Result<Zeroizing<Vec<u8>>, TpmError> {
        let digest = Sha256::digest(&self.public_area().0);
        let name = Fields::default().u16(0x000b).bytes(&digest);
        let handles = &[self.index, self.index];
        let names: &[&[u8]] = &[&name.0, &name.0];
        let secret = self.secret;
        session.run(tpm, &Command { code, handles, names, secret, parameters, is_secret: false })
    }

    /// Index, name SHA-256, attributes, no policy, length.
    fn public_area(&self) -> Fields {
        let fields = Fields::default().u32(self.index).u16(0x000b).u32(self.attributes);
        fields.sized(&[]).u16(self.length)
    }
}
