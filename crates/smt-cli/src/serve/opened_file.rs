// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An open file of the directory: all of it, or a range.

use std::fs::{File, Metadata as FileFacts};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use bytes::Bytes;

use super::handler::Dropped;
use crate::failure::{Doing, Failure};
use crate::file_range::{self, CHANGED, HEADER_LEN, Part, TOO_LARGE};

/// A file, and what the system said of it when it was opened.
pub(super) struct OpenedFile {
    pub(super) file: File,
    pub(super) facts: FileFacts,
    /// Its name, as messages quote it.
    pub(super) shown: String,
}

impl OpenedFile {
    /// All of its bytes, which are refused if a message has no room for them.
    pub(super) fn read_whole(self, limit: u32) -> Result<Bytes, Dropped> {
        let size = self.facts.len();
        if size > u64::from(limit) {
            return Err(Dropped::until_ranges(TOO_LARGE, self.too_large(size, limit)));
        }
        let mut bytes = Vec::with_capacity(size as usize);
        // A file may grow while it is read.
        let most = u64::from(limit) + 1;
        let length = (&self.file).take(most).read_to_end(&mut bytes);
        let length = length.doing(&self.shown).map_err(Dropped::before_it_ran)?;
        if length as u64 == most {
            return Err(Dropped::until_ranges(TOO_LARGE, self.too_large(most, limit)));
        }
        Ok(bytes.into())
    }

    /// A range, or as much of it as there is and a message has room for. If there is a tag, the
    /// file must still be the one of that tag.
    pub(super) fn read_range(
        self,
        (first, length): (u64, u64),
        tag: Option<&[u8]>,
        limit: u32,
    ) -> Result<Part, Dropped> {
        let present = file_range::tag(&self.facts);
        if tag.is_some_and(|tag| *tag != present) {
            return Err(self.changed());
        }
        let room = (limit as usize).saturating_sub(HEADER_LEN) as u64;
        if room == 0 {
            return Err(Dropped::refused(TOO_LARGE, self.too_large(self.facts.len(), limit)));
        }
        let length = length.min(room).min(self.facts.len().saturating_sub(first));
        let read = self.read_at(first, length as usize);
        let (bytes, facts) = read.doing(&self.shown).map_err(Dropped::before_it_ran)?;
        if file_range::tag(&facts) != present || bytes.len() as u64 != length {
            return Err(self.changed());
        }
        Ok(Part { size: self.facts.len(), tag: present, bytes: bytes.into() })
    }

    /// The bytes, and the facts after they were read.
    fn read_at(&self, first: u64, length: usize) -> io::Result<(Vec<u8>, FileFacts)> {
        let mut bytes = vec![0; length];
        let mut filled = 0;
        while filled < length {
            match self.file.read_at(&mut bytes[filled..], first + filled as u64) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok((bytes, self.file.metadata()?))
    }

    fn too_large(&self, size: u64, limit: u32) -> Failure {
        let shown = &self.shown;
        Failure::new(format!(
            "{shown}: the file has {size} bytes, and a message of this server to this caller at most {limit} (--message-limit of both): ask for ranges"
        ))
    }

    fn changed(&self) -> Dropped {
        let text = format!("{}: the file has changed since its first range", self.shown);
        Dropped::refused(CHANGED, Failure::new(text))
    }
}
