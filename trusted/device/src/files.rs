// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The files of a device: a folder, or in tests a disk that loses and tears what was not synced.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use zeroize::{Zeroize, Zeroizing};

use crate::store_error::StoreError;

/// The longest file that is read.
const LEN_MAX: usize = 8192;

/// Small files, each with a name. A crash may take back whatever was not synced.
pub trait Files {
    /// The place, for people.
    fn place(&self) -> String;

    /// Whether there is a file of that name.
    fn exists(&self, name: &str) -> bool;

    /// All bytes of a file, in memory that is wiped.
    ///
    /// # Errors
    /// There is none, or it is too long; those of the disk.
    fn read(&self, name: &str) -> io::Result<Zeroizing<Vec<u8>>>;

    /// Writes a file, which is made or cut off first.
    ///
    /// # Errors
    /// Those of the disk.
    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Makes the bytes of a file durable. Its name may be lost still.
    ///
    /// # Errors
    /// Those of the disk.
    fn sync(&self, name: &str) -> io::Result<()>;

    /// Gives a file another name, which replaces the file that had it.
    ///
    /// # Errors
    /// Those of the disk.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Makes all names durable.
    ///
    /// # Errors
    /// Those of the disk.
    fn sync_names(&self) -> io::Result<()>;

    /// A file that stays open, and is made if need be.
    ///
    /// # Errors
    /// Those of the disk.
    fn slot(&self, name: &str) -> io::Result<Box<dyn Slot + Send>>;
}

/// A file of a length that never changes, which is written without being opened.
pub trait Slot {
    /// Writes all bytes of the file.
    ///
    /// # Errors
    /// Those of the disk.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes the bytes durable.
    ///
    /// # Errors
    /// Those of the disk.
    fn sync(&mut self) -> io::Result<()>;

    /// The descriptor, if the file has one.
    fn descriptor(&self) -> Option<RawFd>;
}

/// A folder that one process at a time has open.
pub(crate) struct Folder {
    path: PathBuf,
    /// Another process gets it when this one ends.
    _lock: File,
}

impl Folder {
    /// Makes a folder if need be.
    pub(crate) fn create(path: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(path)?;
        Self::locked(path)
    }

    /// Opens the folder of a device.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        if !path.join("keys").exists() {
            return Err(StoreError::Missing(path.display().to_string()));
        }
        Self::locked(path)
    }

    fn locked(path: &Path) -> Result<Self, StoreError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(path.join("lock"))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { path: path.to_path_buf(), _lock: file }),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                Err(StoreError::Locked(path.display().to_string()))
            }
            Err(error) => Err(io::Error::from(error).into()),
        }
    }
}

impl Files for Folder {
    fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn exists(&self, name: &str) -> bool {
        self.path.join(name).exists()
    }

    /// Without copies that grow.
    fn read(&self, name: &str) -> io::Result<Zeroizing<Vec<u8>>> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(LEN_MAX));
        let mut file = File::open(self.path.join(name))?;
        let mut piece = Zeroizing::new([0; LEN_MAX]);
        loop {
            let length = file.read(&mut *piece)?;
            if bytes.len() + length > LEN_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
            bytes.extend_from_slice(&piece[..length]);
            if length == 0 {
                piece.zeroize();
                return Ok(bytes);
            }
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        options.open(self.path.join(name))?.write_all(bytes)
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        File::open(self.path.join(name))?.sync_all()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn sync_names(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    fn slot(&self, name: &str) -> io::Result<Box<dyn Slot + Send>> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        Ok(Box::new(options.open(self.path.join(name))?))
    }
}

impl Slot for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, 0)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn descriptor(&self) -> Option<RawFd> {
        Some(self.as_raw_fd())
    }
}
