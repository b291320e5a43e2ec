// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where replies go: standard output, or a file that keeps what it has until there is room for a
//! whole reply.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};

use crate::failure::{Doing, Failure};

/// Where replies go.
pub(super) enum Output {
    File(ReplyFile),
    Standard,
}

/// A file for replies. One that exists keeps what it has until there is a reply; one that does not
/// is there only if there was one.
pub(super) struct ReplyFile {
    path: PathBuf,
    file: File,
    is_new: bool,
    /// Bytes of replies.
    written: u64,
    is_begun: bool,
}

impl Output {
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        if super::is_standard(path) {
            return Ok(Self::Standard);
        }
        let is_new = !path.exists();
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).open(path);
        Ok(Self::File(ReplyFile {
            path: path.to_owned(),
            file: file.doing(format!("writing {}", path.display()))?,
            is_new,
            written: 0,
            is_begun: false,
        }))
    }

    /// The file that was not there before.
    pub(super) fn new_file(&self) -> Option<PathBuf> {
        match self {
            Self::File(file) if file.is_new => Some(file.path.clone()),
            _ => None,
        }
    }

    pub(super) fn write(&mut self, reply: &[u8]) -> Result<(), Failure> {
        let (written, shown) = match self {
            Self::File(file) => (file.write(reply), file.path.display().to_string()),
            Self::Standard => (write_standard(reply), "standard output".to_owned()),
        };
        match written {
            // The reader has closed the pipe on purpose, and needs no message.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(error.into()),
            written => written.doing(format!(
                "the request has run, but writing its reply to {shown} failed"
            )),
        }
    }
}

fn write_standard(reply: &[u8]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(reply)?;
    output.flush()
}

impl ReplyFile {
    fn write(&mut self, reply: &[u8]) -> io::Result<()> {
        // A pipe or device has no length to set.
        let facts = self.file.metadata()?;
        if facts.is_file() {
            self.make_room(facts.len(), reply.len() as u64)?;
        }
        self.is_begun = true;
        self.file.write_all(reply)?;
        self.written += reply.len() as u64;
        if facts.is_file() {
            // The earlier contents of the file may have been longer.
            self.file.set_len(self.written)?;
        }
        Ok(())
    }

    /// A part of a reply looks like a reply, and would stand over what was there: without room for
    /// the whole the file stays as it was.
    fn make_room(&self, length: u64, more: u64) -> io::Result<()> {
        if more == 0 {
            return Ok(());
        }
        match fallocate(&self.file, FallocateFlags::empty(), self.written, more) {
            Ok(()) => Ok(()),
            // Not every file system can tell.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
            Err(error) => {
                // A part of the bytes may have been added at the end.
                let _ = self.file.set_len(length);
                Err(error.into())
            }
        }
    }
}

impl Drop for ReplyFile {
    fn drop(&mut self) {
        if self.is_new && !self.is_begun {
            remove_if_empty(&self.path);
        }
    }
}

/// Empty, it would look like an empty reply. The file may be another process's meanwhile: then it
/// has contents, and stays.
pub(super) fn remove_if_empty(path: &Path) {
    let is_empty = path
        .metadata()
        .is_ok_and(|facts| facts.is_file() && facts.len() == 0);
    let _ = is_empty.then(|| std::fs::remove_file(path));
}
