// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A disk in memory that loses and tears what was not synced.

use std::io;

use crate::disk::Disk;

/// Bytes that a disk writes at once.
const SECTOR: usize = 512;

/// A file on a disk of which a crash keeps what was synced, and of the rest any sectors.
#[derive(Clone, Debug, Default)]
pub struct ModelDisk {
    durable: Vec<u8>,
    current: Vec<u8>,
    /// From where on the two may differ.
    dirty_from: usize,
    /// After so many syncs one fails, and a crash may lose what it should have synced.
    pub fails_after: Option<u32>,
    /// Whether nothing is synced, though each sync says that it is: what a program does that leaves
    /// its syncs out.
    pub loses_syncs: bool,
}

impl ModelDisk {
    /// The state after a crash: for each sector that was not synced, `keeps` says whether it is as
    /// it was written last, or as it was before.
    #[must_use]
    pub fn crashed(&self, mut keeps: impl FnMut() -> bool) -> Self {
        let longest = self.durable.len().max(self.current.len());
        let same = self.dirty_from.min(self.durable.len()).min(self.current.len());
        let first = same / SECTOR * SECTOR;
        let mut after = self.durable[..first].to_vec();
        for sector in (first..longest).step_by(SECTOR) {
            let from = if keeps() { &self.current } else { &self.durable };
            if let Some(bytes) = from.get(sector..(sector + SECTOR).min(from.len())) {
                // A sector before it that was never written reads as zeros.
                after.resize(sector, 0);
                after.extend(bytes);
            }
        }
        let (durable, dirty_from) = (after.clone(), after.len());
        Self { durable, dirty_from, current: after, ..Self::default() }
    }

    /// The bytes, for tests that damage them.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        self.dirty_from = 0;
        &mut self.current
    }
}

impl Disk for ModelDisk {
    fn length(&self) -> io::Result<u64> {
        Ok(self.current.len() as u64)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let from = offset as usize;
        let bytes = self.current.get(from..from + out.len());
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let (from, to) = (offset as usize, offset as usize + bytes.len());
        self.dirty_from = self.dirty_from.min(from);
        self.current.resize(self.current.len().max(to), 0);
        self.current[from..to].copy_from_slice(bytes);
        Ok(())
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.dirty_from = self.dirty_from.min(length as usize);
        self.current.truncate(length as usize);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.fails_after == Some(0) {
            self.fails_after = None;
            return Err(io::Error::other("the disk has failed"));
        }
        self.fails_after = self.fails_after.map(|left| left - 1);
        if self.loses_syncs {
            return Ok(());
        }
        let from = self.dirty_from.min(self.durable.len());
        self.durable.truncate(from);
        self.durable.extend(self.current.iter().skip(from));
        self.dirty_from = self.current.len();
        Ok(())
    }
}
