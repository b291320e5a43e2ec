// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The device's directory: its root secret, its epoch and its groups' secrets.
//!
//! The file `keys` (`keys_file.rs`) has the root secret.
//!
//! The file `state` has a nonce (24 bytes), and under XChaCha20-Poly1305 the epoch (8 bytes) and
//! each group secret (number, 4 bytes; secret, 32 bytes). It is replaced as a whole. Its key
//! follows from the root secret.
//!
//! The files `memory.0` and `memory.1` have the ends of logs (`sealed_logs.rs`).
//!
//! The file `certificate` has what the device's manufacturer states of it, if it does.
//!
//! With a TPM `state` has the counter's value, or one more after a crash between writing the file
//! and incrementing the counter. Files that were copied before the device's last start have less:
//! they are refused.

use std::io;
use std::path::Path;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use smt_attestation::{DeviceId, Epoch, GroupSecret, SigningKey};
use smt_device_client::SecretNumber;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::files::{Files, Folder};
use crate::keys_file::{self, Decoded, Keeping, Seal, head};
use crate::sealed_logs::{self, RegisterPlace, SealedLogs, SealingKeys};
use crate::store_error::StoreError;
use crate::tpm::{Counter, Register, Sealed, StorageKey, Transport};

const NONCE_LEN: usize = 24;
/// Bytes of a group secret with its number.
const SECRET_LEN: usize = 36;
/// Secrets of groups, besides the device's own.
const SECRETS_MAX: usize = 63;

/// An open device directory. One process at a time has it.
pub struct Store {
    files: Box<dyn Files>,
    device: DeviceId,
    root: Zeroizing<[u8; 32]>,
    keeping: Keeping,
    has_memory: bool,
    epoch: u64,
    secrets: Vec<(SecretNumber, Zeroizing<[u8; 32]>)>,
}

impl Store {
    /// Makes a device in a directory. With a TPM, its root secret is sealed and its epochs are the
    /// TPM's.
    ///
    /// # Errors
    /// [`StoreError::Exists`], [`StoreError::Tpm`], [`StoreError::File`].
    pub fn create(
        directory: &Path,
        device: DeviceId,
        tpm: Option<&mut Transport>,
    ) -> Result<Self, StoreError> {
        Self::create_in(Box::new(Folder::create(directory)?), device, tpm)
    }

    /// Makes a device as [`Store::create`] does, in files of any kind.
    ///
    /// # Errors
    /// Those of [`Store::create`].
    pub fn create_in(
        files: Box<dyn Files>,
        device: DeviceId,
        tpm: Option<&mut Transport>,
    ) -> Result<Self, StoreError> {
        if files.exists("keys") {
            return Err(StoreError::Exists(files.place()));
        }
        let root = random()?;
        let memory = sealed_logs::create(&*files, device, &derive(&root, b"SMT device mem  "))?;
        let (keeping, epoch) = match tpm {
            None => (Keeping::Clear, 0),
            Some(tpm) => {
                tpm.start_up()?;
                let key = StorageKey::create(tpm)?;
                let second = random()?;
                let sealed = Sealed::seal(tpm, &key, &root, &second)?;
                let counter = Counter::define(tpm, &second)?;
                let (index, epoch) = (counter.index, counter.begin(tpm, &key)?);
                let register = Register::define(tpm, &second)?;
                register.begin(tpm, &key, &memory)?;
                let register = Some(register.index);
                tpm.let_go(&key)?;
                let point = key.point();
                let seal = Seal { index, register, point, second, sealed };
                (Keeping::Sealed(Box::new(seal)), epoch)
            }
        };
        let (has_memory, secrets) = (true, Vec::new());
        let store = Self { files, device, root, keeping, has_memory, epoch, secrets };
        store.save()?;
        // Written last: without it there is no device, and the next try begins anew.
        let keys = keys_file::encode((device, store.has_memory), &store.root, &store.keeping);
        store.write("keys", &keys)?;
        Ok(store)
    }

    /// Opens a device. The TPM must be the one that it was made with.
    ///
    /// # Errors
    /// Any [`StoreError`] but [`StoreError::Exists`] and those of epochs.
    pub fn open(directory: &Path, tpm: Option<&mut Transport>) -> Result<Self, StoreError> {
        Self::open_in(Box::new(Folder::open(directory)?), tpm)
    }

    /// Opens a device as [`Store::open`] does, from files of any kind.
    ///
    /// # Errors
    /// Those of [`Store::open`].
    pub fn open_in(files: Box<dyn Files>, tpm: Option<&mut Transport>) -> Result<Self, StoreError> {
        let missing = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => StoreError::Missing(files.place()),
            _ => error.into(),
        };
        let keys = files.read("keys").map_err(missing)?;
        let Decoded { device, clear, keeping, has_memory } =
            keys_file::decode(&keys).ok_or(StoreError::Altered("keys"))?;
        let root = match (&keeping, tpm) {
            (Keeping::Clear, None) => clear,
            (Keeping::Sealed(seal), Some(tpm)) => seal.open(tpm)?,
            (Keeping::Clear, Some(_)) => return Err(StoreError::HasNoTpm),
            (Keeping::Sealed(_), None) => return Err(StoreError::NeedsTpm),
        };
        let (epoch, secrets) = (0, Vec::new());
        let mut store = Self { files, device, root, keeping, has_memory, epoch, secrets };
        store.load()?;
        Ok(store)
    }

    /// Begins an epoch that the device never had: the file is on the disk before the counter moves.
    ///
    /// # Errors
    /// [`StoreError::Restored`], [`StoreError::Copied`], [`StoreError::Tpm`],
    /// [`StoreError::NeedsTpm`], [`StoreError::File`].
    pub fn next_epoch(&mut self, tpm: Option<&mut Transport>) -> Result<Epoch, StoreError> {
        let Keeping::Sealed(seal) = &self.keeping else {
            self.epoch += 1;
            self.save()?;
            return Ok(Epoch(self.epoch));
        };
        let tpm = tpm.ok_or(StoreError::NeedsTpm)?;
        let key = seal.storage_key(tpm)?;
        let (index, second) = (seal.index, seal.second.clone());
        let counter = Counter { index, secret: &second };
        let value = counter.value(tpm, &key)?;
        if self.epoch != value && self.epoch != value + 1 {
            return Err(StoreError::Restored { files: self.epoch, tpm: value });
        }
        if self.epoch == value {
            self.epoch += 1;
            self.save()?;
        }
        let taken = counter.increment_from(tpm, &key, value)?.ok_or(StoreError::Copied)?;
        tpm.let_go(&key)?;
        Ok(Epoch(taken))
    }

    /// Finds the logs' ends that were sealed last. The TPM is at hand as long as they are.
    ///
    /// # Errors
    /// [`StoreError::HasNoMemory`], [`StoreError::MemoryRestored`], [`StoreError::Altered`],
    /// [`StoreError::Tpm`], [`StoreError::NeedsTpm`], [`StoreError::File`].
    pub fn open_logs(&self, tpm: Option<Transport>) -> Result<SealedLogs, StoreError> {
        let (mut register, mut secret) = (None, Zeroizing::new([0; 32]));
        if !self.has_memory {
            return Err(StoreError::HasNoMemory);
        }
        if let Keeping::Sealed(seal) = &self.keeping {
            let mut tpm = tpm.ok_or(StoreError::NeedsTpm)?;
            let key = seal.storage_key(&mut tpm)?;
            let index = seal.register.ok_or(StoreError::HasNoMemory)?;
            secret = seal.second.clone();
            register = Some(RegisterPlace { tpm, key, index });
        }
        let keys = SealingKeys { cipher: self.derive(b"SMT device mem  "), register: secret };
        SealedLogs::open(&*self.files, self.device, keys, register)
    }

    /// Gives the device a group's secret.
    ///
    /// # Errors
    /// [`StoreError::SecretExists`], also for number 0, which is the device's own;
    /// [`StoreError::File`].
    pub fn add_secret(
        &mut self,
        number: SecretNumber,
        secret: Zeroizing<[u8; 32]>,
    ) -> Result<(), StoreError> {
        let is_taken = number.0 == 0 || self.secrets.iter().any(|(it, _)| *it == number);
        if is_taken || self.secrets.len() == SECRETS_MAX {
            return Err(StoreError::SecretExists(number.0));
        }
        self.secrets.push((number, secret));
        self.save()
    }

    /// Gives the device the secrets of groups, all of them or none. One that it has already, with
    /// the same bytes, is no mistake: a device may be given its secrets again.
    ///
    /// # Errors
    /// Those of [`Store::add_secret`].
    pub fn add_secrets(
        &mut self,
        secrets: &[(SecretNumber, Zeroizing<[u8; 32]>)],
    ) -> Result<(), StoreError> {
        let before = self.secrets.len();
        let mut taken = Ok(());
        for (number, secret) in secrets {
            let had = self.secrets.iter().find(|(it, _)| it == number).map(|(_, had)| had);
            match had.map(|had| bool::from(had.as_slice().ct_eq(secret.as_slice()))) {
                Some(true) => {}
                None if number.0 != 0 && self.secrets.len() < SECRETS_MAX => {
                    self.secrets.push((*number, secret.clone()));
                }
                _ => {
                    taken = Err(StoreError::SecretExists(number.0));
                    break;
                }
            }
        }
        let taken = taken.and_then(|()| self.save());
        if taken.is_err() {
            self.secrets.truncate(before);
        }
        taken
    }

    /// Keeps the manufacturer's certificate of the device in the place of an earlier one. It is on
    /// the disk when this returns, and a crash before leaves the earlier one.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn write_certificate(&self, certificate: &[u8]) -> Result<(), StoreError> {
        self.write("certificate", certificate)
    }

    /// The manufacturer's certificate of the device, nothing if it has none.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn certificate(&self) -> Result<Option<Vec<u8>>, StoreError> {
        match self.files.read("certificate") {
            Ok(bytes) => Ok(Some(bytes.to_vec())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The files alone: secrets are wiped, and no other process opens the device meanwhile.
    pub(crate) fn into_files(self) -> Box<dyn Files> {
        self.files
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> DeviceId {
        self.device
    }

    /// The key of signatures.
    #[must_use]
    pub fn signing_key(&self) -> SigningKey {
        SigningKey::new(&self.derive(b"SMT device sign "))
    }

    /// The seed of the device's own key (Ed25519), which its manufacturer certifies.
    #[must_use]
    pub fn hardware_seed(&self) -> Zeroizing<[u8; 32]> {
        self.derive(b"SMT device hard ")
    }

    /// All secrets: 0, the device's own, and those of groups.
    pub fn secrets(&self) -> impl Iterator<Item = (SecretNumber, GroupSecret)> {
        let own = (SecretNumber(0), GroupSecret::new(*self.derive(b"SMT device own  ")));
        let groups = self.secrets.iter().map(|(number, it)| (*number, GroupSecret::new(**it)));
        std::iter::once(own).chain(groups)
    }

    /// A key for one purpose.
    fn derive(&self, purpose: &[u8; 16]) -> Zeroizing<[u8; 32]> {
        derive(&self.root, purpose)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        let key = self.derive(b"SMT device state");
        XChaCha20Poly1305::new((&*key).into())
    }

    /// Replaces the file `state`: the new one is on the disk before it has the name.
    fn save(&self) -> Result<(), StoreError> {
        let mut clear = Zeroizing::new(Vec::with_capacity(8 + 64 * SECRET_LEN));
        clear.extend(self.epoch.to_be_bytes());
        for (number, secret) in &self.secrets {
            clear.extend(number.0.to_be_bytes());
            clear.extend_from_slice(&**secret);
        }
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(io::Error::from)?;
        let payload = Payload { msg: &clear, aad: &head(self.device, self.has_memory) };
        let sealed = self.cipher().encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.map_err(|_| io::Error::other("too much to encrypt"))?;
        self.write("state", &[&nonce[..], &sealed].concat())
    }

    fn load(&mut self) -> Result<(), StoreError> {
        const ALTERED: StoreError = StoreError::Altered("state");
        let file = self.files.read("state")?;
        let (nonce, sealed) = file.split_first_chunk::<NONCE_LEN>().ok_or(ALTERED)?;
        let payload = Payload { msg: sealed, aad: &head(self.device, self.has_memory) };
        let clear = self.cipher().decrypt(&XNonce::from(*nonce), payload).map_err(|_| ALTERED)?;
        let clear = Zeroizing::new(clear);
        let (epoch, secrets) = clear.split_first_chunk::<8>().ok_or(ALTERED)?;
        self.epoch = u64::from_be_bytes(*epoch);
        let (secrets, []) = secrets.as_chunks::<SECRET_LEN>() else {
            return Err(ALTERED);
        };
        self.secrets.reserve_exact(secrets.len());
        for secret in secrets {
            let [a, b, c, d, bytes @ ..] = secret;
            let number = SecretNumber(u32::from_be_bytes([*a, *b, *c, *d]));
            self.secrets.push((number, Zeroizing::new(*bytes)));
        }
        Ok(())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let new = format!("{name}.new");
        self.files.write(&new, bytes)?;
        self.files.sync(&new)?;
        self.files.rename(&new, name)?;
        Ok(self.files.sync_names()?)
    }
}

/// A key for one purpose, from the root secret.
fn derive(root: &[u8; 32], purpose: &[u8; 16]) -> Zeroizing<[u8; 32]> {
    let keyed = <Hmac<Sha256> as KeyInit>::new_from_slice(root);
    let hmac = keyed.unwrap_or_else(|_| unreachable!("32 bytes fit")).chain_update(purpose);
    Zeroizing::new(hmac.finalize().into_bytes().into())
}

fn random() -> io::Result<Zeroizing<[u8; 32]>> {
    let mut bytes = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *bytes)?;
    Ok(bytes)
}
