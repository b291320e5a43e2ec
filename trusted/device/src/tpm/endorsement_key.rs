// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The TPM's endorsement key: its vendor has certified it, and by it a stranger far away learns
//! that another key is in the same TPM (*TCG EK Credential Profile for TPM Family 2.0*).

use zeroize::Zeroizing;

use super::buffer::{Fields, sized, take, u16};
use super::commands::{
    ACTIVATE_CREDENTIAL, EMPTY_PASSWORD, ENDORSEMENT, NULL, NV_READ, NV_READ_PUBLIC, POLICY_SECRET,
    Primary, START_AUTH_SESSION,
};
use super::quote::{Quote, QuotingKey};
use super::session::nonce;
use super::{TpmError, Transport};

/// Restricted, decrypting, bound to its TPM, and used by its policy alone.
const ATTRIBUTES: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 16 | 1 << 17;
/// The policy of all endorsement keys: TPM2_PolicySecret by the endorsement hierarchy.
const POLICY: [u8; 32] = [
    0x83, 0x71, 0x97, 0x67, 0x44, 0x84, 0xb3, 0xf8, 0x1a, 0x90, 0xcc, 0x8d, 0x46, 0xa5, 0xd7, 0x24,
    0xfd, 0x52, 0xd7, 0x6e, 0x06, 0x52, 0x0b, 0x64, 0xf2, 0xa1, 0xda, 0x1b, 0x33, 0x14, 0x69, 0xaa,
];
/// TPM_RC_HANDLE for the first handle: the index is not defined.
const RC_HANDLE: u32 = 0x18b;
/// Bytes of an index that each TPM reads at once.
const READ_LEN: u16 = 512;
/// A session by policies.
const POLICY_SESSION: u8 = 1;

/// The kinds of endorsement keys whose certificates TPMs have at fixed places.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EndorsementKind {
    /// RSA with 2,048 bits.
    Rsa,
    /// P-256.
    Ecc,
}

/// A secret for whoever has two keys in one TPM: the endorsement key, which decrypts it, and the
/// key whose name it was made for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Credential {
    /// The secret, encrypted, and its MAC, which is over the name too (TPMS_ID_OBJECT).
    pub blob: Vec<u8>,
    /// The seed of both, encrypted for the endorsement key (TPMU_ENCRYPTED_SECRET).
    pub seed: Vec<u8>,
}

impl Credential {
    /// The longest blob: the secret's 32 bytes and their MAC's, each with its length.
    pub const BLOB_LEN_MAX: usize = 68;
    /// The longest encrypted seed: that for RSA with 2,048 bits.
    pub const SEED_LEN_MAX: usize = 256;

    /// Whether its parts are no longer than those of a credential for a key of ours.
    #[must_use]
    pub fn is_bounded(&self) -> bool {
        self.blob.len() <= Self::BLOB_LEN_MAX && self.seed.len() <= Self::SEED_LEN_MAX
    }
}

/// The answer of a TPM to a credential.
pub struct Activated {
    /// The secret.
    pub secret: Zeroizing<Vec<u8>>,
    /// A quote by the key that the credential was made for.
    pub quote: Quote,
}

/// The certificate of a TPM's endorsement key as the TPM has it, of RSA if there are two.
///
/// # Errors
/// Those of the TPM and of the way to it.
pub fn endorsement_certificate(
    tpm: &mut Transport,
) -> Result<Option<(EndorsementKind, Vec<u8>)>, TpmError> {
    for kind in [EndorsementKind::Rsa, EndorsementKind::Ecc] {
        if let Some(length) = length_of(tpm, kind.index())? {
            let certificate = read(tpm, kind.index(), length)?;
            return Ok(Some((kind, without_padding(certificate))));
        }
    }
    Ok(None)
}

impl EndorsementKind {
    fn index(self) -> u32 {
        match self {
            Self::Rsa => 0x01c0_0002,
            Self::Ecc => 0x01c0_000a,
        }
    }

    /// The fixed public area from which a TPM makes the certified key: the profile's L-1 and L-2.
    fn template(self) -> Fields {
        let common = |kind| {
            let fields = Fields::default().u16(kind).u16(0x000b).u32(ATTRIBUTES).sized(&POLICY);
            // AES-128 in CFB for what the key protects, and no scheme.
            fields.u16(0x0006).u16(128).u16(0x0043).u16(0x0010)
        };
        match self {
            // 2,048 bits, the usual exponent.
            Self::Rsa => common(0x0001).u16(2048).u32(0).sized(&[0; 256]),
            // P-256, no KDF.
            Self::Ecc => common(0x0023).u16(0x0003).u16(0x0010).sized(&[0; 32]).sized(&[0; 32]),
        }
    }

    /// Has the TPM open a credential for `key`, and quote `data` with that key.
    ///
    /// # Errors
    /// [`TpmError::Refused`] if the credential was made for another endorsement key or another
    /// key, or was altered; those of the TPM and of the way to it.
    pub fn activate(
        self,
        tpm: &mut Transport,
        credential: &Credential,
        data: &[u8; 32],
    ) -> Result<Activated, TpmError> {
        let key = QuotingKey::create(tpm)?;
        let secret = self.open(tpm, &key, credential);
        let quote = key.quote(tpm, data);
        let let_go = key.let_go(tpm);
        let activated = Activated { secret: secret?, quote: quote? };
        let_go.map(|()| activated)
    }

    fn open(
        self,
        tpm: &mut Transport,
        key: &QuotingKey,
        credential: &Credential,
    ) -> Result<Zeroizing<Vec<u8>>, TpmError> {
        let Primary { handle: endorsement, .. } =
            tpm.create_primary(ENDORSEMENT, &self.template())?;
        let secret = PolicySession::start(tpm).and_then(|session| {
            let secret = session.open(tpm, [key.handle, endorsement], credential);
            // The session ends with the command that it authorizes, and stays if that failed. The
            // failure counts, and not what becomes of the session.
            if secret.is_err() {
                let _ = tpm.flush(session.0);
            }
            secret
        });
        let flushed = tpm.flush(endorsement);
        secret.and_then(|secret| flushed.map(|()| secret))
    }
}

/// A session that satisfies the policy of endorsement keys.
struct PolicySession(u32);

impl PolicySession {
    fn start(tpm: &mut Transport) -> Result<Self, TpmError> {
        let fields = Fields::default()
            .u32(NULL)
            .u32(NULL)
            .sized(&nonce()?)
            .sized(&[])
            .u8(POLICY_SESSION)
            .u16(0x0010)
            .u16(0x000b);
        let response = tpm.plain(START_AUTH_SESSION, fields)?;
        let (session, _) = response.handle_and_parameters(START_AUTH_SESSION, false)?;
        // No nonce, no parameters, no reference, no end.
        let parameters = Fields::default().sized(&[]).sized(&[]).sized(&[]).u32(0);
        let handles = [ENDORSEMENT, session];
        match tpm.authorized(POLICY_SECRET, &handles, &EMPTY_PASSWORD, &parameters) {
            Ok(_) => Ok(Self(session)),
            Err(error) => {
                let _ = tpm.flush(session);
                Err(error)
            }
        }
    }

    /// The secret of a credential, for the key and the endorsement key of `handles`.
    fn open(
        &self,
        tpm: &mut Transport,
        handles: [u32; 2],
        credential: &Credential,
    ) -> Result<Zeroizing<Vec<u8>>, TpmError> {
        let policy = Fields::default().u32(self.0).sized(&[]).u8(0).sized(&[]);
        let authorizations = [&EMPTY_PASSWORD[..], &policy.0].concat();
        let parameters = Fields::default().sized(&credential.blob).sized(&credential.seed);
        let response =
            tpm.authorized(ACTIVATE_CREDENTIAL, &handles, &authorizations, &parameters)?;
        let mut rest = response.parameters(ACTIVATE_CREDENTIAL)?;
        let secret = sized(&mut rest).ok_or(TpmError::Forged(ACTIVATE_CREDENTIAL.1))?;
        Ok(Zeroizing::new(secret.to_vec()))
    }
}

/// The bytes of an index, nothing if it is not defined.
fn length_of(tpm: &mut Transport, index: u32) -> Result<Option<u16>, TpmError> {
    let response = match tpm.plain(NV_READ_PUBLIC, Fields::default().u32(index)) {
        Err(TpmError::Refused { code: RC_HANDLE, .. }) => return Ok(None),
        other => other?,
    };
    let mut rest = &response.0[..];
    let length = (|| {
        let mut area = sized(&mut rest)?;
        let _index_hash_attributes = take::<10>(&mut area)?;
        let _policy = sized(&mut area)?;
        u16(&mut area)
    })();
    length.map(Some).ok_or(TpmError::Forged(NV_READ_PUBLIC.1))
}

/// Reads an index by its own, empty password, which those of certificates have.
fn read(tpm: &mut Transport, index: u32, length: u16) -> Result<Vec<u8>, TpmError> {
    let mut bytes = Vec::with_capacity(usize::from(length));
    let mut begin = 0;
    while begin < length {
        let part = READ_LEN.min(length - begin);
        let parameters = Fields::default().u16(part).u16(begin);
        let response = tpm.authorized(NV_READ, &[index, index], &EMPTY_PASSWORD, &parameters)?;
        let mut rest = response.parameters(NV_READ)?;
        let taken = sized(&mut rest).filter(|it| it.len() == usize::from(part));
        bytes.extend_from_slice(taken.ok_or(TpmError::Forged(NV_READ.1))?);
        begin += part;
    }
    Ok(bytes)
}

/// A certificate without what fills its index: DER says its own length.
fn without_padding(mut certificate: Vec<u8>) -> Vec<u8> {
    if let [0x30, 0x82, high, low, ..] = certificate[..] {
        certificate.truncate(4 + usize::from(u16::from_be_bytes([high, low])));
    }
    certificate
}
