// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The log.

use crate::block::{Block, MAGIC, RECORDS_LEN_MAX};
use crate::disk::Disk;
use crate::error::JournalError;

/// Bytes that are read at once in the search for a block.
const WINDOW: usize = 64 << 10;

/// A log of records. Its first record names the owner.
#[derive(Debug)]
pub struct Journal<D> {
    disk: D,
    /// Bytes of the durable blocks, and how many those are.
    end: u64,
    blocks: u64,
    /// Records that are not written yet.
    collected: Vec<u8>,
    is_stopped: bool,
}

impl<D: Disk> Journal<D> {
    /// Opens the log, hands out its records in order, and cuts off what a crash tore. A new log
    /// begins with `owner`, which an older one must begin with.
    ///
    /// # Errors
    /// [`JournalError::Damaged`], [`JournalError::OtherOwner`], [`JournalError::Disk`].
    pub fn open(disk: D, owner: &[u8], mut each: impl FnMut(&[u8])) -> Result<Self, JournalError> {
        let length = disk.length()?;
        let (end, blocks, collected) = (0, 0, Vec::new());
        let mut journal = Self { disk, end, blocks, collected, is_stopped: false };
        while let Some(block) = journal.next_block(length)? {
            let mut records = block.records();
            if block.number == 0 && records.next() != Some(owner) {
                return Err(JournalError::OtherOwner);
            }
            records.for_each(&mut each);
            journal.end += block.length();
            journal.blocks += 1;
        }
        journal.refuse_damage(length)?;
        if journal.end < length {
            journal.disk.cut(journal.end)?;
        }
        // The last block may be in the cache of the operating system alone.
        journal.disk.sync()?;
        if journal.blocks == 0 {
            journal.append(owner);
            journal.commit()?;
        }
        Ok(journal)
    }

    /// Collects a record, which is durable after [`Journal::commit`].
    pub fn append(&mut self, record: &[u8]) {
        self.collected.extend((record.len() as u32).to_be_bytes());
        self.collected.extend(record);
    }

    /// Whether a record of so many bytes fits before the next commit, and a megabyte of others.
    #[must_use]
    pub fn has_room(&self, bytes: usize) -> bool {
        let others = 1 << 20;
        self.collected.len().saturating_add(bytes) <= RECORDS_LEN_MAX - others
    }

    /// Makes all that was collected durable.
    ///
    /// # Errors
    /// [`JournalError::TooMuch`], before anything is written. [`JournalError::Disk`]; afterwards
    /// [`JournalError::Stopped`].
    pub fn commit(&mut self) -> Result<(), JournalError> {
        if self.is_stopped {
            return Err(JournalError::Stopped);
        }
        if self.collected.is_empty() {
            return Ok(());
        }
        // A longer block would be taken for a torn one when the log is opened.
        if self.collected.len() > RECORDS_LEN_MAX {
            return Err(JournalError::TooMuch);
        }
        let block = Block::encode(self.blocks, &self.collected);
        let written = self.disk.write_at(self.end, &block).and_then(|()| self.disk.sync());
        self.is_stopped = written.is_err();
        written?;
        self.end += block.len() as u64;
        self.blocks += 1;
        self.collected.clear();
        Ok(())
    }

    /// Bytes of the log.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.end
    }

    /// The disk, for tests that make it fail.
    #[cfg(feature = "model")]
    pub fn disk_mut(&mut self) -> &mut D {
        &mut self.disk
    }

    /// Gives the disk back, without what was not committed.
    #[must_use]
    pub fn into_disk(self) -> D {
        self.disk
    }

    fn next_block(&self, length: u64) -> Result<Option<Block>, JournalError> {
        let block = Block::read(&self.disk, self.end, length)?;
        Ok(block.filter(|it| it.number == self.blocks))
    }

    /// Looks for a good block behind the first bad one.
    fn refuse_damage(&self, length: u64) -> Result<(), JournalError> {
        let mut window = vec![0; WINDOW];
        let mut from = self.end + 1;
        while from < length {
            let bytes = &mut window[..(length - from).min(WINDOW as u64) as usize];
            self.disk.read_at(from, bytes)?;
            for (at, four) in (from..).zip(bytes.windows(MAGIC.len())) {
                let block = match four == MAGIC {
                    true => Block::read(&self.disk, at, length)?,
                    false => None,
                };
                if block.is_some_and(|it| it.number > self.blocks) {
                    return Err(JournalError::Damaged(self.end));
                }
            }
            // The next window begins with the places that were too close to the end of this one.
            from += (WINDOW - MAGIC.len() + 1) as u64;
        }
        Ok(())
    }
}
