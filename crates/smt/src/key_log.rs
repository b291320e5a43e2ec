// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The key log as a file (SPEC §13). A reader of the file can read the sessions: use it to debug,
//! and delete it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use smt_record::{KeyLog, KeyLogEntry};

/// Appends secrets to a file that only its owner may read.
#[derive(Debug)]
pub struct KeyLogFile(Mutex<File>);

impl KeyLogFile {
    /// Opens the file for appending, and makes it if it is not there. Others lose the right to read
    /// it.
    ///
    /// # Errors
    /// The operating system's.
    pub fn append(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path)?;
        #[cfg(unix)]
        if file.metadata()?.is_file() {
            let owner_only = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            file.set_permissions(owner_only)?;
        }
        Ok(Self(Mutex::new(file)))
    }
}

impl KeyLog for KeyLogFile {
    fn log(&self, line: &KeyLogEntry<'_>) {
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = writeln!(file, "{line}") {
            tracing::warn!(%error, "a key log line could not be written");
        }
    }
}
