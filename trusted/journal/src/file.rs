// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A file of the operating system.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use crate::disk::Disk;
use crate::error::JournalError;

/// A file that one process at a time has open.
#[derive(Debug)]
pub struct FileDisk(File);

impl FileDisk {
    /// Opens the file, which is made if need be. Its name is durable then.
    ///
    /// # Errors
    /// [`JournalError::Locked`], [`JournalError::Disk`].
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            rustix::io::Errno::WOULDBLOCK => JournalError::Locked,
            other => JournalError::Disk(other.into()),
        })?;
        if let Some(directory) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
            File::open(directory)?.sync_all()?;
        }
        Ok(Self(file))
    }
}

impl Disk for FileDisk {
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(out, offset)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }
}
