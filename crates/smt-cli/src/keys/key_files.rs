// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A certificate and its private key as two files.
//!
//! 1. Before anything is made, both names must be free (or --force given).
//! 2. Each is written beside its place and renamed, so that no reader ever sees half of it, and an
//!    old key file's permissions never cover a new key.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};

use crate::failure::{Doing, Failure};

/// Where a certificate and its key go.
#[derive(Debug)]
pub(super) struct KeyFiles {
    directory: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
    is_forced: bool,
}

impl KeyFiles {
    /// `DIRECTORY/NAME.pem` and `DIRECTORY/NAME.key`.
    pub(super) fn plan(directory: &Path, name: &str, is_forced: bool) -> Result<Self, Failure> {
        if name.is_empty() {
            return Err(Failure::new("the name is empty, so there is no file name"));
        }
        let files = Self {
            directory: directory.to_owned(),
            certificate: directory.join(format!("{name}.pem")),
            key: directory.join(format!("{name}.key")),
            is_forced,
        };
        let existing = [&files.certificate, &files.key]
            .into_iter()
            .find(|path| path.symlink_metadata().is_ok());
        match existing {
            Some(path) if !is_forced => Err(Failure::new(format!(
                "{} is there already; --force overwrites it",
                path.display()
            ))),
            _ => Ok(files),
        }
    }

    /// Writes both, and gives their paths. The directory is made if it is missing.
    pub(super) fn write(self, certificate: &str, key: &str) -> Result<[PathBuf; 2], Failure> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(&self.directory)
            .doing(format!("making {}", self.directory.display()))?;
        // The key first: a certificate without its key is of no use.
        self.write_one(&self.key, key.as_bytes(), 0o600)?;
        self.write_one(&self.certificate, certificate.as_bytes(), 0o644)?;
        Ok([self.certificate, self.key])
    }

    fn write_one(&self, path: &Path, bytes: &[u8], mode: u32) -> Result<(), Failure> {
        let beside = beside(path);
        let written = write_new(&beside, bytes, mode).and_then(|()| {
            if self.is_forced {
                return fs::rename(&beside, path);
            }
            // Unlike renaming, linking fails if another process was faster.
            fs::hard_link(&beside, path)?;
            fs::remove_file(&beside)
        });
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        written.doing(format!("writing {}", path.display()))
    }
}

/// Writes a file whole, in the place of one that is there, whose readers may read it as before: it
/// keeps its mode, and owner and group as far as this process may give them. A new file has this
/// mode.
pub(super) fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Failure> {
    let beside = beside(path);
    let before = fs::metadata(path).ok();
    let written = write_new(&beside, bytes, mode).and_then(|()| {
        if let Some(before) = before {
            let _ = chown(&beside, Some(before.uid()), Some(before.gid()));
            fs::set_permissions(&beside, before.permissions())?;
        }
        fs::rename(&beside, path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written.doing(format!("writing {}", path.display()))
}

/// Where a file is written before it is renamed.
fn beside(path: &Path) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".new-{}", std::process::id()));
    PathBuf::from(beside)
}

fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
