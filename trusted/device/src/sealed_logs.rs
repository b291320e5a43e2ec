// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The files `memory.0` and `memory.1`: where each log of the device ends.
//!
//! Each file has 2,896 bytes, always:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 24 | nonce |
//! | 24 | 2,872 | the content under XChaCha20-Poly1305, whose key follows from the root secret |
//!
//! | offset in the content | bytes | field |
//! |---|---|---|
//! | 0 | 8 | number of the sealing, from 0, big-endian |
//! | 8 | 32 | the value of the TPM's register before the sealing, zeros without a TPM |
//! | 40 | 64 times 44 | log (4), sequence number (8) and cumulative digest (32) of its end; zeros |
//!
//! A sealing overwrites the file that does not have the last one, and syncs it. With a TPM it then
//! extends the TPM's register with SHA-256 over the whole file. The register's value is a digest
//! over all sealings since the device was made: the one file that leads to it, from the value that
//! it names itself, has the last sealing, and each other one is refused. A crash before the
//! register was extended therefore leaves the sealing before as the last one, and a crash after it
//! leaves the new one. Two copies of a device that seal at the same time extend the register one
//! after the other. The second one then finds a value that its file does not lead to, and
//! stops.
//!
//! Without a TPM the file with the higher number has the last sealing, and whoever restores both
//! has an earlier one again.
//!
//! The version is in the bytes that the encryption authenticates: a file of another version does
//! not open.

use std::io;
use std::os::fd::RawFd;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use sha2::{Digest, Sha256};
use smt_attestation::DeviceId;
use smt_device_client::{End, LOGS_MAX, LogId, Sealing};
use zeroize::Zeroizing;

use crate::files::{Files, Slot};
use crate::secret_memory::{SecretBox, clear_stack};
use crate::store_error::StoreError;
use crate::tpm::{Register, StorageKey, Transport, extended};

const MAGIC: &[u8; 16] = b"SMT memory v1\0\0\0";
const NAMES: [&str; 2] = ["memory.0", "memory.1"];
const NONCE_LEN: usize = 24;
/// Bytes of a log with its end.
const END_LEN: usize = 44;
const HEAD_LEN: usize = 40;
const CONTENT_LEN: usize = HEAD_LEN + LOGS_MAX * END_LEN;

/// The secrets of sealings.
pub(crate) struct SealingKeys {
    /// The key of the files.
    pub(crate) cipher: Zeroizing<[u8; 32]>,
    /// The secret of the register, zeros without one.
    pub(crate) register: Zeroizing<[u8; 32]>,
}

/// The register of a device, and the way there.
pub(crate) struct RegisterPlace {
    pub(crate) tpm: Transport,
    pub(crate) key: StorageKey,
    pub(crate) index: u32,
}

/// The logs' ends as they were sealed last, and the place of the next sealing.
pub struct SealedLogs {
    slots: [Box<dyn Slot + Send>; 2],
    /// The slot that has the last sealing.
    last: usize,
    number: u64,
    /// The register's value, zeros without one.
    value: [u8; 32],
    device: DeviceId,
    keys: SecretBox<SealingKeys>,
    register: Option<RegisterPlace>,
    ends: Vec<(LogId, End)>,
}

/// The content of a file.
struct Content {
    number: u64,
    before: [u8; 32],
    ends: Vec<(LogId, End)>,
}

/// Writes the first sealing, that of a device without logs, and returns SHA-256 over its file.
pub(crate) fn create(
    files: &dyn Files,
    device: DeviceId,
    cipher: &[u8; 32],
) -> Result<[u8; 32], StoreError> {
    let content = Content { number: 0, before: [0; 32], ends: Vec::new() };
    let file = content.seal(cipher, device)?;
    // A second file that an earlier try has left is none of this device's keys.
    for name in NAMES {
        files.write(name, &file)?;
        files.sync(name)?;
    }
    files.sync_names()?;
    Ok(digest(&file))
}

impl SealedLogs {
    /// Finds the last sealing.
    pub(crate) fn open(
        files: &dyn Files,
        device: DeviceId,
        keys: SealingKeys,
        mut register: Option<RegisterPlace>,
    ) -> Result<Self, StoreError> {
        let keys = SecretBox::new(keys).map_err(io::Error::from)?;
        let mut found = Vec::new();
        for (place, name) in NAMES.iter().enumerate() {
            match files.read(name) {
                Ok(file) => found.extend(
                    Content::open(&file, &keys.cipher, device).map(|it| (place, digest(&file), it)),
                ),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        let (value, last) = if let Some(RegisterPlace { tpm, key, index }) = &mut register {
            let register = Register { index: *index, secret: &keys.register };
            let value = register.value(tpm, key)?;
            let leads_there = |(_, digest, content): &(usize, [u8; 32], Content)| {
                extended(&content.before, digest) == value
            };
            let last = found.into_iter().find(leads_there);
            (value, last.ok_or(StoreError::MemoryRestored)?)
        } else {
            let last = found.into_iter().max_by_key(|(_, _, content)| content.number);
            ([0; 32], last.ok_or(StoreError::Altered("memory"))?)
        };
        let (last, _, Content { number, ends, .. }) = last;
        let slots = [files.slot(NAMES[0])?, files.slot(NAMES[1])?];
        Ok(Self { slots, last, number, value, device, keys, register, ends })
    }

    /// The ends of all logs, as they were sealed last.
    #[must_use]
    pub fn ends(&self) -> &[(LogId, End)] {
        &self.ends
    }

    /// The descriptors of the files, and of the way to the TPM.
    pub(crate) fn descriptors(&self) -> (Vec<RawFd>, Option<RawFd>) {
        let files = self.slots.iter().filter_map(|slot| slot.descriptor()).collect();
        (files, self.register.as_ref().map(|it| it.tpm.descriptor()))
    }

    fn write(&mut self, ends: &[(LogId, End)]) -> Result<(), StoreError> {
        let number = self.number + 1;
        let content = Content { number, before: self.value, ends: ends.to_vec() };
        let file = content.seal(&self.keys.cipher, self.device)?;
        let next = 1 - self.last;
        self.slots[next].write(&file)?;
        self.slots[next].sync()?;
        if let Some(RegisterPlace { tpm, key, index }) = &mut self.register {
            let register = Register { index: *index, secret: &self.keys.register };
            let digest = digest(&file);
            let expected = extended(&self.value, &digest);
            if register.extend(tpm, key, &digest)? != expected {
                return Err(StoreError::Copied);
            }
            self.value = expected;
        }
        (self.last, self.number, self.ends) = (next, number, ends.to_vec());
        Ok(())
    }
}

impl Sealing for SealedLogs {
    fn seal(&mut self, ends: &[(LogId, End)]) -> io::Result<()> {
        let written = self.write(ends);
        // Keys of the file and of the TPM's session were there.
        clear_stack::<{ 256 << 10 }>();
        written.map_err(io::Error::other).inspect_err(|error| {
            eprintln!("smt-device: no log goes on until the device starts again: {error}");
        })
    }
}

impl Content {
    fn seal(&self, key: &[u8; 32], device: DeviceId) -> io::Result<Vec<u8>> {
        let mut clear = Vec::with_capacity(CONTENT_LEN);
        clear.extend(self.number.to_be_bytes());
        clear.extend(self.before);
        for (log, end) in &self.ends {
            clear.extend(log.0.to_be_bytes());
            clear.extend(end.sequence.to_be_bytes());
            clear.extend(end.digest);
        }
        clear.resize(CONTENT_LEN, 0);
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce)?;
        let payload = Payload { msg: &clear, aad: &aad(device) };
        let sealed = XChaCha20Poly1305::new(key.into()).encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.map_err(|_| io::Error::other("too much to encrypt"))?;
        Ok([&nonce[..], &sealed].concat())
    }

    /// Nothing for a file that the device did not write, or that was torn.
    fn open(file: &[u8], key: &[u8; 32], device: DeviceId) -> Option<Self> {
        let (nonce, sealed) = file.split_first_chunk::<NONCE_LEN>()?;
        let payload = Payload { msg: sealed, aad: &aad(device) };
        let clear = XChaCha20Poly1305::new(key.into());
        let clear = clear.decrypt(&XNonce::from(*nonce), payload).ok()?;
        let (number, rest) = clear.split_first_chunk::<8>()?;
        let (before, rest) = rest.split_first_chunk::<32>()?;
        let (all, []) = rest.as_chunks::<END_LEN>() else {
            return None;
        };
        let ends = all.iter().map_while(|bytes| {
            let (log, rest) = bytes.split_first_chunk::<4>()?;
            let (sequence, digest) = rest.split_first_chunk::<8>()?;
            let (log, sequence) = (LogId(u32::from_be_bytes(*log)), u64::from_be_bytes(*sequence));
            let end = End { sequence, digest: digest.try_into().ok()? };
            (sequence > 0).then_some((log, end))
        });
        let number = u64::from_be_bytes(*number);
        Some(Self { number, before: *before, ends: ends.collect() })
    }
}

fn digest(file: &[u8]) -> [u8; 32] {
    Sha256::digest(file).into()
}

/// Bound to the file: the version and the device.
fn aad(device: DeviceId) -> [u8; 20] {
    let mut aad = [0; 20];
    aad[..16].copy_from_slice(MAGIC);
    aad[16..].copy_from_slice(&device.0.to_be_bytes());
    aad
}
