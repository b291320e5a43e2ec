// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The file `keys` of a device's directory.
//!
//! The file `keys` is written once. It has the root secret, in clear or sealed by a TPM.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 16 | `SMT device v2`, zeros |
//! | 16 | 4 | device |
//! | 20 | 1 | 0 in clear, 1 sealed |
//! | 21 | 32 | in clear: the root secret, and nothing more |
//! | 21 | 4 | sealed: index of the TPM's counter |
//! | 25 | 4 | index of the TPM's register of the logs |
//! | 29 | 64 | the TPM's storage key |
//! | 93 | 32 | the second secret, which the TPM asks for |
//! | 125 | 2, n, 2, m | length and bytes of the sealed root secret, private and public part |
//!
//! A file of version 1 has no index at 25. Such a device is read and runs, and remembers no logs.

use smt_attestation::DeviceId;
use zeroize::Zeroizing;

use crate::tpm::{POINT_LEN, Sealed, StorageKey, TpmError, Transport};

/// Each version with its first bytes.
const MAGIC: &[u8; 16] = b"SMT device v2\0\0\0";
const MAGIC_1: &[u8; 16] = b"SMT device v1\0\0\0";

/// How the root secret is kept.
pub(crate) enum Keeping {
    Clear,
    Sealed(Box<Seal>),
}

/// A root secret that a TPM has sealed.
pub(crate) struct Seal {
    pub(crate) index: u32,
    /// The register of the logs, which devices of version 1 do not have.
    pub(crate) register: Option<u32>,
    pub(crate) point: [u8; POINT_LEN],
    pub(crate) second: Zeroizing<[u8; 32]>,
    pub(crate) sealed: Sealed,
}

impl Seal {
    /// The root secret.
    pub(crate) fn open(&self, tpm: &mut Transport) -> Result<Zeroizing<[u8; 32]>, TpmError> {
        tpm.start_up()?;
        let key = self.storage_key(tpm)?;
        let opened = self.sealed.open(tpm, &key, &self.second);
        tpm.let_go(&key)?;
        opened
    }

    /// The key of the TPM that the device was made with. The host can answer with a key of its own,
    /// and would then know the keys of all sessions that begin with it.
    pub(crate) fn storage_key(&self, tpm: &mut Transport) -> Result<StorageKey, TpmError> {
        let key = StorageKey::create(tpm)?;
        if key.point() == self.point {
            return Ok(key);
        }
        tpm.let_go(&key)?;
        Err(TpmError::OtherTpm)
    }
}

/// The first bytes of the file, to which the file `state` is bound too: the version and the device.
pub(crate) fn head(device: DeviceId, has_memory: bool) -> [u8; 20] {
    let mut head = [0; 20];
    head[..16].copy_from_slice(if has_memory { MAGIC } else { MAGIC_1 });
    head[16..].copy_from_slice(&device.0.to_be_bytes());
    head
}

/// The file as bytes.
pub(crate) fn encode(
    (device, has_memory): (DeviceId, bool),
    root: &[u8; 32],
    keeping: &Keeping,
) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(1024));
    bytes.extend(head(device, has_memory));
    match keeping {
        Keeping::Clear => {
            bytes.push(0);
            bytes.extend_from_slice(root);
        }
        Keeping::Sealed(seal) => {
            bytes.push(1);
            bytes.extend(seal.index.to_be_bytes());
            if let Some(register) = seal.register {
                bytes.extend(register.to_be_bytes());
            }
            bytes.extend(seal.point);
            bytes.extend_from_slice(&*seal.second);
            for part in [&seal.sealed.private, &seal.sealed.public] {
                bytes.extend((part.len() as u16).to_be_bytes());
                bytes.extend(part);
            }
        }
    }
    bytes
}

/// The file `keys`, without the root secret where that is sealed.
pub(crate) struct Decoded {
    pub(crate) device: DeviceId,
    pub(crate) clear: Zeroizing<[u8; 32]>,
    pub(crate) keeping: Keeping,
    pub(crate) has_memory: bool,
}

/// Reads the file. Nothing if it is none.
pub(crate) fn decode(bytes: &[u8]) -> Option<Decoded> {
    let (magic, rest) = bytes.split_first_chunk::<16>()?;
    let (device, rest) = rest.split_first_chunk::<4>()?;
    let device = DeviceId(u32::from_be_bytes(*device));
    let (kind, rest) = rest.split_first()?;
    let has_memory = magic == MAGIC;
    if !has_memory && magic != MAGIC_1 {
        return None;
    }
    if *kind == 0 {
        let clear = Zeroizing::new(rest.try_into().ok()?);
        return Some(Decoded { device, clear, keeping: Keeping::Clear, has_memory });
    }
    let (index, mut rest) = rest.split_first_chunk::<4>()?;
    let mut register = None;
    if has_memory {
        let (index, after) = rest.split_first_chunk::<4>()?;
        (register, rest) = (Some(u32::from_be_bytes(*index)), after);
    }
    let (point, rest) = rest.split_first_chunk::<POINT_LEN>()?;
    let (second, mut rest) = rest.split_first_chunk::<32>()?;
    let mut part = || {
        let (length, after) = rest.split_first_chunk::<2>()?;
        let (part, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        rest = after;
        Some(part.to_vec())
    };
    let sealed = Sealed { private: part()?, public: part()? };
    let second = Zeroizing::new(*second);
    let index = u32::from_be_bytes(*index);
    let seal = Seal { index, register, point: *point, second, sealed };
    let (clear, keeping) = (Zeroizing::new([0; 32]), Keeping::Sealed(Box::new(seal)));
    let is_whole = rest.is_empty() && *kind == 1;
    is_whole.then_some(Decoded { device, clear, keeping, has_memory })
}
