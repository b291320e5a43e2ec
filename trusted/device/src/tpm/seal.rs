// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A secret that only one TPM opens, and only for whoever has a second secret.

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::buffer::{Fields, sized};
use super::commands::{CREATE, LOAD, UNSEAL, created};
use super::session::{Command, Session};
use super::storage_key::StorageKey;
use super::{TpmError, Transport};

/// Sealed data: type KEYEDHASH, name SHA-256; bound to this TPM and its storage key, opened by the
/// second secret; no dictionary attacks are counted; no policy, no scheme.
const ATTRIBUTES: u32 = 1 << 1 | 1 << 4 | 1 << 6 | 1 << 10;

/// A sealed secret, as it lies in a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sealed {
    /// The private part, encrypted by the TPM.
    pub private: Vec<u8>,
    /// The public part.
    pub public: Vec<u8>,
}

impl Sealed {
    /// Seals `secret`, to be opened with `second`.
    ///
    /// The secret goes to the TPM in clear: the host that a device is made on is trusted while it
    /// is made.
    ///
    /// # Errors
    /// Those of the TPM and of the way to it.
    pub fn seal(
        tpm: &mut Transport,
        key: &StorageKey,
        secret: &[u8; 32],
        second: &[u8; 32],
    ) -> Result<Self, TpmError> {
        let public = Fields::default()
            .u16(0x0008)
            .u16(0x000b)
            .u32(ATTRIBUTES)
            .sized(&[])
            .u16(0x0010)
            .sized(&[]);
        let sensitive = Zeroizing::new(Fields::default().sized(second).sized(secret).0);
        let parameters = Fields::default().sized(&sensitive).sized(&public.0).sized(&[]).u32(0);
        let response = tpm.with_empty_password(CREATE, key.handle, &parameters)?;
        let parts = created(response.parameters(CREATE)?);
        let (private, public) = parts.ok_or(TpmError::Forged(CREATE.1))?;
        Ok(Self { private, public })
    }

    /// Opens the secret in the TPM that sealed it.
    ///
    /// # Errors
    /// [`TpmError::Refused`] by another TPM, and with another second secret; those of the way.
    pub fn open(
        &self,
        tpm: &mut Transport,
        key: &StorageKey,
        second: &[u8; 32],
    ) -> Result<Zeroizing<[u8; 32]>, TpmError> {
        let parameters = Fields::default().sized(&self.private).sized(&self.public);
        let response = tpm.with_empty_password(LOAD, key.handle, &parameters)?;
        let (handle, _) = response.handle_and_parameters(LOAD, true)?;
        let mut session = Session::start(tpm, key)?;
        let name = Fields::default().u16(0x000b).bytes(&Sha256::digest(&self.public));
        let unsealed = session.run(
            tpm,
            &Command {
                code: UNSEAL,
                handles: &[handle],
                names: &[&name.0],
                secret: second,
                parameters: Fields::default(),
                is_secret: true,
            },
        )?;
        session.end(tpm)?;
        tpm.flush(handle)?;
        let mut rest = &unsealed[..];
        let secret = sized(&mut rest).and_then(|secret| secret.try_into().ok());
        secret.map(Zeroizing::new).ok_or(TpmError::Forged(UNSEAL.1))
    }
}
