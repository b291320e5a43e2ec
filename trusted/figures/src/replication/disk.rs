// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A disk that costs nothing: a log's work is measured, and the machine's disk is not.

use std::io;

use smt_journal::Disk;

/// A file in memory. Nothing of it survives the process.
#[derive(Default)]
pub(crate) struct MemoryDisk(Vec<u8>);

impl Disk for MemoryDisk {
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let begin = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = self.0.get(begin..).and_then(|it| it.get(..out.len()));
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let begin = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = begin.checked_add(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        if self.0.len() < end {
            self.0.resize(end, 0);
        }
        self.0[begin..end].copy_from_slice(bytes);
        Ok(())
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.0.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}
