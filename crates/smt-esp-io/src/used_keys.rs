// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The keys that this host has used, as hashes in a file.
//!
//! A tunnel that begins anew counts from 1 again. Under the same key it would repeat the nonces of
//! AES-GCM and AES-CCM, which gives plaintexts and the authentication key away (RFC 4106 §2,
//! RFC 4309 §2), and would take packets that were recorded before. A key is therefore taken once.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{SHA256, digest};
use data_encoding::HEXLOWER;
use rustix::fs::{FlockOperation, flock};

use crate::association::AssociationSpec;

/// Why keys are not taken.
#[derive(Debug, thiserror::Error)]
pub enum UsedKeysError {
    /// The file cannot be read or written.
    #[error("environment: cannot keep the hashes of used keys in {path}")]
    File {
        /// The file.
        path: PathBuf,
        /// The answer of the system.
        #[source]
        reason: io::Error,
    },
    /// A key was used before.
    #[error(
        "caller: the key of the association with SPI {spi:#x} was used before, and would give its secrets away: make new keys at both ends"
    )]
    Used {
        /// The association.
        spi: u32,
    },
    /// Two associations have one key.
    #[error("caller: the association with SPI {spi:#x} has another one's key")]
    Shared {
        /// The association.
        spi: u32,
    },
}

/// The file of hashes. Several tunnels may share it.
#[derive(Clone, Debug)]
pub(crate) struct UsedKeys {
    path: PathBuf,
}

impl UsedKeys {
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Takes the keys of associations, all or none of them.
    pub(crate) fn take<'a>(
        &self,
        associations: impl IntoIterator<Item = &'a AssociationSpec>,
    ) -> Result<(), UsedKeysError> {
        let failed = |reason| UsedKeysError::File { path: self.path.clone(), reason };
        let (mut file, text) = self.open().map_err(failed)?;
        let mut lines = String::new();
        if !text.is_empty() && !text.ends_with('\n') {
            // The disk was full in the middle of a line: the next hash begins one of its own.
            lines.push('\n');
        }
        for association in associations {
            let (spi, line) = (association.spi, hash(association));
            if text.lines().any(|used| used == line) {
                return Err(UsedKeysError::Used { spi });
            }
            if lines.lines().any(|taken| taken == line) {
                return Err(UsedKeysError::Shared { spi });
            }
            lines.push_str(&line);
            lines.push('\n');
        }
        let written = file.write_all(lines.as_bytes());
        written.and_then(|()| file.sync_all()).map_err(failed)
    }

    /// The file, locked until it is closed, and its text.
    fn open(&self) -> io::Result<(File, String)> {
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut options = OpenOptions::new();
        let mut file = options.create(true).read(true).append(true).mode(0o600).open(&self.path)?;
        flock(&file, FlockOperation::LockExclusive)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        Ok((file, text))
    }
}

fn hash(association: &AssociationSpec) -> String {
    let label: &[u8] = b"smt-esp used key ";
    let bytes = zeroize::Zeroizing::new([label, association.key.bytes()].concat());
    HEXLOWER.encode(digest(&SHA256, &bytes).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn association(spi: u32, digit: char) -> AssociationSpec {
        let key: String = std::iter::repeat_n(digit, 40).collect();
        let text =
            format!(r#"{{"direction":"out","spi":{spi},"suite":"aes-128-gcm","key":"{key}"}}"#);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_key_behind_a_line_that_was_cut_off_is_taken_once() {
        let path = std::env::temp_dir().join(format!("smt-esp-cut-off-{}", std::process::id()));
        std::fs::write(&path, "0123").unwrap();
        let first = [association(256, '1')];
        UsedKeys::at(&path).take(&first).unwrap();
        let again = UsedKeys::at(&path).take(&first);
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(again, Err(UsedKeysError::Used { spi: 256 })), "{again:?}");
    }

    #[test]
    fn a_key_is_taken_once_for_ever_and_all_or_none() {
        let folder = std::env::temp_dir().join(format!("smt-esp-used-{}", std::process::id()));
        let path = folder.join("deep").join("used-keys");
        let take = |associations: &[AssociationSpec]| UsedKeys::at(&path).take(associations);
        let (first, second, third) =
            (association(256, '1'), association(257, '2'), association(258, '3'));
        take(&[first.clone(), second.clone()]).unwrap();
        let again = take(&[third.clone(), second]);
        assert!(matches!(again, Err(UsedKeysError::Used { spi: 257 })), "{again:?}");
        let twice = take(&[third.clone(), association(259, '3')]);
        assert!(matches!(twice, Err(UsedKeysError::Shared { spi: 259 })), "{twice:?}");
        take(&[third]).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 3);
        assert!(!text.contains("1111"), "keys are not told");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
