// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The keys of a device that is a library in this process: a file that only its owner reads.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use data_encoding::HEXLOWER;
use smt_a2m::Identity;
use smt_attestation::{DeviceId, GroupSecret, SigningKey};
use zeroize::Zeroizing;

/// Why the keys cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyError {
    /// There are keys already.
    #[error("your request: {0} has keys already")]
    Exist(String),
    /// There are no keys.
    #[error("your request: {0} has no keys: `smt-trusted a2m init {0}` makes some")]
    Missing(String),
    /// Others may read the keys.
    #[error("your files: others may read {0}/keys: `chmod 600 {0}/keys`")]
    Readable(String),
    /// The file is no file of keys.
    #[error("your files: {0}/keys are not what `smt-trusted a2m init` wrote")]
    Malformed(String),
    /// Reading or writing failed.
    #[error("the operating system: the keys of {0} cannot be read or written")]
    File(String, #[source] io::Error),
    /// There is no randomness.
    #[error("the operating system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

/// Makes new keys, and fails if there are some.
pub(crate) fn create(directory: &Path) -> Result<(), KeyError> {
    let name = directory.display().to_string();
    let failed = |error| KeyError::File(name.clone(), error);
    let mut keys = Zeroizing::new([0; 64]);
    getrandom::fill(&mut *keys).map_err(KeyError::Random)?;
    fs::create_dir_all(directory).map_err(failed)?;
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(directory.join("keys"));
    let mut file = file.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => KeyError::Exist(name.clone()),
        _ => failed(error),
    })?;
    let text = Zeroizing::new(HEXLOWER.encode(&*keys));
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)
}

/// Reads the keys.
pub(crate) fn read(directory: &Path) -> Result<Identity, KeyError> {
    let name = directory.display().to_string();
    let path = directory.join("keys");
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => KeyError::Missing(name.clone()),
        _ => KeyError::File(name.clone(), error),
    };
    if fs::metadata(&path).map_err(failed)?.mode() & 0o077 != 0 {
        return Err(KeyError::Readable(name));
    }
    let text = Zeroizing::new(fs::read(path).map_err(failed)?);
    let bytes = HEXLOWER.decode(&text).map(Zeroizing::new);
    let bytes = bytes.map_err(|_| KeyError::Malformed(name.clone()))?;
    let keys = bytes.split_first_chunk::<32>();
    let keys = keys.and_then(|(secret, seed)| Some((secret, seed.try_into().ok()?)));
    let (secret, seed) = keys.ok_or(KeyError::Malformed(name))?;
    Ok(Identity {
        device: DeviceId(1),
        secret: GroupSecret::new(*secret),
        signing_key: SigningKey::new(seed),
    })
}
