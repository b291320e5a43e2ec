// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sessions with a TPM that nobody on the way can enter (part 1, section 19).

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::buffer::{Fields, sized, take, u32};
use super::commands::{Code, NULL, SESSIONS, START_AUTH_SESSION};
use super::derivation::{SharedSecret, hmac, kdf_a};
use super::storage_key::StorageKey;
use super::{TpmError, Transport};

/// The session goes on after a command, and the response's first field is encrypted or not.
const CONTINUE: u8 = 1;
const ENCRYPT: u8 = 1 << 6;
const NONCE_LEN: usize = 32;

/// A session whose key follows from a salt that only this process and the TPM know.
pub(super) struct Session {
    handle: u32,
    key: Zeroizing<[u8; 32]>,
    /// The TPM's last nonce.
    theirs: Vec<u8>,
}

/// A command in a session, on an object with a name and a secret of its own.
pub(super) struct Command<'a> {
    pub(super) code: Code,
    /// The handles, the authorized one first, and their names (part 1, section 16).
    pub(super) handles: &'a [u32],
    pub(super) names: &'a [&'a [u8]],
    /// The object's secret.
    pub(super) secret: &'a [u8],
    pub(super) parameters: Fields,
    /// Whether the first field of the response is secret.
    pub(super) is_secret: bool,
}

impl Session {
    pub(super) fn start(tpm: &mut Transport, key: &StorageKey) -> Result<Self, TpmError> {
        let ours = nonce()?;
        let SharedSecret { secret: salt, encrypted } = key.salt();
        // HMAC, encryption by XOR with SHA-256 (each TPM has it), SHA-256.
        let fields = Fields::default()
            .u32(key.handle)
            .u32(NULL)
            .sized(&ours)
            .sized(&encrypted)
            .u8(0)
            .u16(0x000a)
            .u16(0x000b)
            .u16(0x000b);
        let response = tpm.plain(START_AUTH_SESSION, fields)?;
        let (handle, mut rest) = response.handle_and_parameters(START_AUTH_SESSION, false)?;
        let theirs = sized(&mut rest).ok_or(TpmError::Forged(START_AUTH_SESSION.1))?.to_vec();
        let key = kdf_a(&*salt, b"ATH\0", [&theirs, &ours], 1, 256);
        Ok(Self { handle, key, theirs })
    }

    /// Has the TPM do a command, and returns the parameters of its response. They are the TPM's
    /// own, and it has done this very command: both are in a MAC over this call's nonce.
    pub(super) fn run(
        &mut self,
        tpm: &mut Transport,
        command: &Command<'_>,
    ) -> Result<Zeroizing<Vec<u8>>, TpmError> {
        let Command { code, parameters, .. } = command;
        let ours = nonce()?;
        let attributes = if command.is_secret { CONTINUE | ENCRYPT } else { CONTINUE };
        let mut digest = Sha256::new().chain_update(code.0.to_be_bytes());
        command.names.iter().for_each(|name| digest.update(name));
        let digest = digest.chain_update(&parameters.0).finalize();
        let key = self.key_of(command.secret);
        let mac = hmac(&key, &[&digest, &ours, &self.theirs, &[attributes]]);
        let authorization =
            Fields::default().u32(self.handle).sized(&ours).u8(attributes).sized(&mac);
        let handles = command.handles.iter().fold(Fields::default(), |all, it| all.u32(*it));
        let fields =
            handles.u32(authorization.0.len() as u32).bytes(&authorization.0).bytes(&parameters.0);
        let response = tpm.send(*code, SESSIONS, &fields.0)?;
        let parts = parts_of(&response.0).ok_or(TpmError::Forged(code.1))?;
        let digest = Sha256::new()
            .chain_update(0_u32.to_be_bytes())
            .chain_update(code.0.to_be_bytes())
            .chain_update(parts.parameters)
            .finalize();
        let expected = hmac(&key, &[&digest, parts.nonce, &ours, &[parts.attributes]]);
        if !bool::from(expected.as_slice().ct_eq(parts.mac)) {
            return Err(TpmError::Forged(code.1));
        }
        self.theirs = parts.nonce.to_vec();
        let mut clear = Zeroizing::new(parts.parameters.to_vec());
        if command.is_secret {
            decrypt(&mut clear, &key, &self.theirs, &ours).ok_or(TpmError::Forged(code.1))?;
        }
        Ok(clear)
    }

    pub(super) fn end(self, tpm: &mut Transport) -> Result<(), TpmError> {
        tpm.flush(self.handle)
    }

    /// The session's key and the object's secret, of which a TPM forgets zeros at the end (part 1,
    /// section 19.6.4.3).
    fn key_of(&self, secret: &[u8]) -> Zeroizing<Vec<u8>> {
        let length = secret.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let secret = &secret[..length];
        let mut key = Zeroizing::new(Vec::with_capacity(self.key.len() + secret.len()));
        key.extend_from_slice(&*self.key);
        key.extend_from_slice(secret);
        key
    }
}

/// The parts of a response in one session.
struct Parts<'a> {
    parameters: &'a [u8],
    nonce: &'a [u8],
    attributes: u8,
    mac: &'a [u8],
}

fn parts_of(mut rest: &[u8]) -> Option<Parts<'_>> {
    let length = u32(&mut rest)? as usize;
    let (parameters, mut rest) = rest.split_at_checked(length)?;
    let nonce = sized(&mut rest)?;
    let [attributes] = take(&mut rest)?;
    let mac = sized(&mut rest)?;
    rest.is_empty().then_some(Parts { parameters, nonce, attributes, mac })
}

/// Decrypts the first field by XOR with a mask (part 1, section 11.4.7.3).
fn decrypt(parameters: &mut [u8], key: &[u8], theirs: &[u8], ours: &[u8]) -> Option<()> {
    let (length, rest) = parameters.split_first_chunk_mut::<2>()?;
    let secret = rest.get_mut(..usize::from(u16::from_be_bytes(*length)))?;
    let bits = secret.len() as u32 * 8;
    for (block, bytes) in (1..).zip(secret.chunks_mut(32)) {
        let mask = kdf_a(key, b"XOR\0", [theirs, ours], block, bits);
        for (byte, mask) in bytes.iter_mut().zip(mask.iter()) {
            *byte ^= mask;
        }
    }
    Some(())
}

pub(super) fn nonce() -> Result<[u8; NONCE_LEN], TpmError> {
    let mut nonce = [0; NONCE_LEN];
    getrandom::fill(&mut nonce).map_err(|error| TpmError::Transport(error.into()))?;
    Ok(nonce)
}
