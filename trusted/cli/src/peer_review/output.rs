// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The file to which a node writes the stream.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use smt_peer_review::Delivery;

/// A file that has the stream. A part that is delivered again, after a restart, is written over
/// itself.
pub(crate) struct OutputFile {
    file: File,
    length: u64,
}

impl OutputFile {
    /// Opens the file, which is made if need be.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(path)?;
        let length = file.metadata()?.len();
        if let Some(directory) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
            File::open(directory)?.sync_all()?;
        }
        Ok(Self { file, length })
    }

    /// Bytes that the file has.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Writes what the application has delivered. A file that lacks what was delivered before is
    /// refused.
    pub(crate) fn write(&mut self, delivered: &[u8]) -> io::Result<()> {
        let Some(Delivery { offset, content }) = Delivery::decode(delivered) else {
            return Ok(());
        };
        if offset > self.length {
            let why = format!("it has {} bytes, and {offset} were delivered", self.length);
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        self.file.write_all_at(&content.bytes, offset)?;
        self.length = self.length.max(offset.saturating_add(content.bytes.len() as u64));
        Ok(())
    }

    /// Has all on the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}
