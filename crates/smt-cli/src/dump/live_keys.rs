// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The key log of a capture that is still being made: sessions that begin later add to it.
//!
//! Each time a packet has no key the file is looked at, and read from where the last reading ended
//! if it has grown. One that is shorter now, or another file of the name, is read from its begin.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use smt_dump::{KeyLogError, Keys};
use zeroize::Zeroizing;

use crate::failure::{Doing, Failure};
use crate::standard_error;

/// The file, and how far it was read.
pub(super) struct LiveKeys {
    path: PathBuf,
    /// Device and number of the file that was read.
    file: Option<(u64, u64)>,
    /// Its bytes when it was looked at.
    seen: u64,
    read: u64,
    /// A reason why it was not read is told once.
    told: Option<String>,
}

impl LiveKeys {
    /// Before the first reading.
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), file: None, seen: 0, read: 0, told: None }
    }

    /// Reads what is there. A file that is missing is told, and waited for.
    ///
    /// # Errors
    /// It is there and cannot be read, or is no key log.
    pub(super) fn begin(&mut self, keys: &mut Keys) -> Result<(), Failure> {
        match self.lines() {
            Ok(lines) => self.add(keys, &lines).doing(self.path.display()),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let path = self.path.display();
                let told = format!("{path} is not there yet; its keys are read when it is");
                standard_error::tell(&told);
                Ok(())
            }
            Err(error) => Err(error).doing(format!("reading {}", self.path.display())),
        }
    }

    /// Reads what was added, if anything was.
    pub(super) fn read_on(&mut self, keys: &mut Keys) {
        let read = match self.lines() {
            Ok(lines) => self.add(keys, &lines).map_err(|error| error.to_string()),
            Err(error) if error.kind() == ErrorKind::NotFound => return,
            Err(error) => Err(error.to_string()),
        };
        let Err(reason) = read else {
            return;
        };
        if self.told.as_ref() != Some(&reason) {
            tracing::warn!("{}: {reason}", self.path.display());
            self.told = Some(reason);
        }
    }

    /// The bytes behind those that were read; none if there are as many as before.
    fn lines(&mut self) -> io::Result<Zeroizing<Vec<u8>>> {
        let mut lines = Zeroizing::new(Vec::new());
        let facts = self.path.metadata()?;
        if self.has_begun_anew(&facts) {
            (self.file, self.seen, self.read) = (Some((facts.dev(), facts.ino())), 0, 0);
        }
        if facts.len() == self.seen {
            return Ok(lines);
        }
        self.seen = facts.len();
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.read))?;
        // Lines of secrets that a vector has outgrown would stay in memory.
        let length = self.seen - self.read;
        lines.reserve_exact(length as usize);
        file.take(length).read_to_end(&mut lines)?;
        Ok(lines)
    }

    fn has_begun_anew(&self, facts: &Metadata) -> bool {
        self.file != Some((facts.dev(), facts.ino())) || facts.len() < self.seen
    }

    fn add(&mut self, keys: &mut Keys, lines: &[u8]) -> Result<(), KeyLogError> {
        let read = keys.read_on(lines);
        // Wrong lines are not read again.
        self.read += *read.as_ref().unwrap_or(&lines.len()) as u64;
        read.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use std::fs;

    fn secret(index: u32) -> String {
        format!("SMT_SECRET {index} client data 0 1301 {}\n", "ab".repeat(32))
    }

    #[test]
    fn a_log_is_read_on_from_where_it_was_read_and_anew_if_it_is_another() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path().join("log");
        let (mut log, mut keys) = (LiveKeys::new(&path), Keys::default());
        log.begin(&mut keys).unwrap();
        log.read_on(&mut keys);
        assert_eq!((log.read, log.seen), (0, 0));
        let (one, two) = (secret(1), secret(2));
        let begun = format!("{one}{}", &two[..30]);
        fs::write(&path, &begun).unwrap();
        log.read_on(&mut keys);
        assert_eq!((log.read, log.seen), (one.len() as u64, begun.len() as u64));
        fs::write(&path, format!("{one}{two}")).unwrap();
        log.read_on(&mut keys);
        assert_eq!(log.read, 2 * one.len() as u64);
        assert!(log.lines().unwrap().is_empty(), "it has not grown");
        fs::write(&path, &one).unwrap();
        log.read_on(&mut keys);
        assert_eq!(log.read, one.len() as u64);
        assert_eq!(log.told, None);
        fs::write(&path, format!("{one}SMT_SECRET 3\n")).unwrap();
        log.read_on(&mut keys);
        assert!(log.told.is_some());
        assert_eq!(log.lines().unwrap().len(), 0, "it is not read again");
    }
}
