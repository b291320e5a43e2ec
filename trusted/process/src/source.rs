// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reading configuration files, with errors that name file, line and field.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use smt_mesh::Certificates;
use toml::Spanned;
use zeroize::Zeroizing;

use crate::keys::{PublicKey, is_public_key};
use crate::new_log::{GROWTH, GROWTH_RANGE};

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("your files: {} cannot be read: {error}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A file is no TOML, or lacks a field, or has one too many.
    #[error("your files: {}: {error}", .path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The mistake, and its place.
        error: Box<toml::de::Error>,
    },
    /// A field has a value that it cannot have.
    #[error("your files: {}, line {line}: {field}: {why}", .path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The field.
        field: &'static str,
        /// The mistake.
        why: String,
    },
    /// A file of a secret is none.
    #[error("your files: {}: {why}", .path.display())]
    Secret {
        /// The file.
        path: PathBuf,
        /// The mistake.
        why: &'static str,
    },
}

/// Why a group cannot have so many members of this name; nothing if it can. A device has room for
/// nine.
pub fn refuse_count(count: usize, nouns: &str) -> Option<String> {
    let why = || format!("{count} {nouns}: a group has 2f + 1 of them, 3, 5, 7 or 9");
    (!matches!(count, 3 | 5 | 7 | 9)).then(why)
}

/// A client of a group, as a file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientEntry {
    number: Spanned<u32>,
    key: Spanned<String>,
}

/// A file and its text, for errors that name a line.
pub struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ConfigError`]
    pub fn read<T: DeserializeOwned>(path: &Path) -> Result<(Self, T), ConfigError> {
        let path = path.to_path_buf();
        let text = fs::read_to_string(&path)
            .map_err(|error| ConfigError::Read { path: path.clone(), error })?;
        let parsed = toml::from_str(&text).map_err(|error| {
            let error = Box::new(error);
            ConfigError::Syntax { path: path.clone(), error }
        })?;
        Ok((Self { path, text }, parsed))
    }

    /// Paths are relative to the file that has them.
    pub fn beside(&self, path: &Path) -> PathBuf {
        self.path.parent().map_or_else(|| path.to_path_buf(), |it| it.join(path))
    }

    /// The files of sessions: authority, certificate and its key.
    pub fn certificates(&self, files: [&Path; 3]) -> Certificates {
        let [authority, certificate, key] = files.map(|it| self.beside(it));
        Certificates { authority, certificate, key }
    }

    /// Addresses and public keys of the members that serve, each with its own. `field` is the name
    /// of the keys.
    ///
    /// # Errors
    /// [`ConfigError`]
    pub fn addresses_and_keys<'a>(
        &self,
        noun: &str,
        field: &'static str,
        members: impl Iterator<Item = (&'a Spanned<String>, &'a Spanned<String>)>,
    ) -> Result<(Vec<String>, Vec<PublicKey>), ConfigError> {
        let (mut addresses, mut keys) = (Vec::new(), Vec::new());
        for (address, key) in members {
            let text = address.get_ref().clone();
            if text.is_empty() || addresses.contains(&text) {
                let why = format!("{text:?} is empty, or that of another {noun}");
                return Err(self.field("address", address.span(), why));
            }
            addresses.push(text);
            let public = self.key(field, key)?;
            if keys.contains(&public) {
                let why = format!("another {noun} has this key");
                return Err(self.field(field, key.span(), why));
            }
            keys.push(public);
        }
        Ok((addresses, keys))
    }

    /// The public keys of clients, by their numbers.
    ///
    /// # Errors
    /// [`ConfigError`]
    pub fn clients(
        &self,
        entries: &[ClientEntry],
    ) -> Result<BTreeMap<u32, PublicKey>, ConfigError> {
        let (mut clients, mut keys) = (BTreeMap::new(), BTreeSet::new());
        for it in entries {
            let key = self.key("key", &it.key)?;
            if !keys.insert(key) {
                let why = "another client has this key".to_owned();
                return Err(self.field("key", it.key.span(), why));
            }
            if clients.insert(*it.number.get_ref(), key).is_some() {
                let why = "another client has this number".to_owned();
                return Err(self.field("number", it.number.span(), why));
            }
        }
        Ok(clients)
    }

    /// The error of a field at a place of the text.
    pub fn field(&self, field: &'static str, span: Range<usize>, why: String) -> ConfigError {
        let before = self.text.get(..span.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        ConfigError::Field { path: self.path.clone(), line, field, why }
    }

    /// The error of a field that is not there.
    pub fn lacks(&self, field: &'static str) -> ConfigError {
        self.field(field, 0..0, "is missing".to_owned())
    }

    /// A public key in hexadecimal.
    ///
    /// # Errors
    /// [`ConfigError`]
    pub fn key(
        &self,
        field: &'static str,
        text: &Spanned<String>,
    ) -> Result<PublicKey, ConfigError> {
        let bytes = HEXLOWER.decode(text.get_ref().as_bytes()).ok();
        let key = bytes.and_then(|it| PublicKey::try_from(it).ok());
        key.filter(is_public_key).ok_or_else(|| {
            let why = "no Ed25519 public key: 64 digits 0 to 9 and a to f".to_owned();
            self.field(field, text.span(), why)
        })
    }

    /// Bytes by which a log grows before it is begun anew.
    ///
    /// # Errors
    /// [`ConfigError`]
    pub fn growth(
        &self,
        field: &'static str,
        value: Option<&Spanned<u32>>,
    ) -> Result<u64, ConfigError> {
        value.map_or(Ok(GROWTH), |it| Ok(self.bounded(field, it, GROWTH_RANGE)?.into()))
    }

    /// A number within bounds.
    ///
    /// # Errors
    /// [`ConfigError`]
    pub fn bounded(
        &self,
        field: &'static str,
        value: &Spanned<u32>,
        bounds: Range<u32>,
    ) -> Result<u32, ConfigError> {
        if bounds.contains(value.get_ref()) {
            return Ok(*value.get_ref());
        }
        let why = format!("{} is not {} to {}", value.get_ref(), bounds.start, bounds.end - 1);
        Err(self.field(field, value.span(), why))
    }
}

/// Reads 32 secret bytes in hexadecimal.
///
/// # Errors
/// [`ConfigError::Read`], [`ConfigError::Secret`]
pub fn read_secret(path: &Path) -> Result<Zeroizing<[u8; 32]>, ConfigError> {
    let read = |error| ConfigError::Read { path: path.to_path_buf(), error };
    let wrong = |why| ConfigError::Secret { path: path.to_path_buf(), why };
    if fs::metadata(path).map_err(read)?.mode() & 0o077 != 0 {
        return Err(wrong("others may read this secret: `chmod 600` it"));
    }
    let text = Zeroizing::new(fs::read(path).map_err(read)?);
    let bytes = HEXLOWER.decode(text.trim_ascii()).map(Zeroizing::new);
    let bytes = bytes.ok().and_then(|it| Some(Zeroizing::new(<[u8; 32]>::try_from(&it[..]).ok()?)));
    bytes.ok_or_else(|| wrong("no 32 bytes in hexadecimal"))
}
