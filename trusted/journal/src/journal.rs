// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The log.

use crate::block::{Block, HEADER_LEN, MAGIC, OLDER_MAGIC, RECORDS_LEN_MAX};
use crate::disk::Disk;
use crate::error::JournalError;

/// Bytes that are read at once in the search for a block.
const WINDOW: usize = 64 << 10;
/// Bytes of a record that has a part of a snapshot.
pub const SNAPSHOT_PART: usize = 16 << 20;
/// Bytes of a log's salt.
const SALT_LEN: usize = 16;

/// A log of records. Its first record names the owner.
#[derive(Debug)]
pub struct Journal<D> {
    disk: D,
    /// With which the checksums of all blocks but the first begin.
    salt: Vec<u8>,
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
    /// [`JournalError::Damaged`], [`JournalError::OtherOwner`], [`JournalError::OlderFormat`],
    /// [`JournalError::Random`], [`JournalError::Disk`].
    pub fn open(disk: D, owner: &[u8], mut each: impl FnMut(&[u8])) -> Result<Self, JournalError> {
        let length = disk.length()?;
        refuse_unsalted(&disk, length)?;
        let (salt, end, blocks, collected) = (Vec::new(), 0, 0, Vec::new());
        let mut journal = Self { disk, salt, end, blocks, collected, is_stopped: false };
        let mut last = None;
        while let Some(block) = journal.next_block(length)? {
            let mut records = block.records();
            if block.number == 0 {
                if records.next() != Some(owner) {
                    return Err(JournalError::OtherOwner);
                }
                journal.salt = records.next().ok_or(JournalError::Damaged(0))?.to_vec();
            }
            records.for_each(&mut each);
            let at = journal.end;
            journal.end += block.length();
            journal.blocks += 1;
            last = Some((at, block));
        }
        journal.refuse_damage(length, owner)?;
        if journal.end < length {
            journal.disk.cut(journal.end)?;
        }
        // The last block may be in the cache of the operating system alone. A sync that has failed
        // may have left it there as if it were on the disk: only what is written again is synced.
        if let Some((at, block)) = last {
            let bytes = block.encoded(journal.salt_of(block.number));
            journal.disk.write_at(at, &bytes)?;
        }
        journal.disk.sync()?;
        if journal.blocks == 0 {
            let mut salt = [0; SALT_LEN];
            getrandom::fill(&mut salt).map_err(JournalError::Random)?;
            journal.append(owner);
            journal.append(&salt);
            journal.salt = salt.to_vec();
            journal.commit()?;
        }
        Ok(journal)
    }

    /// Begins a log on an empty disk with a snapshot, for it to take the place of another log. All
    /// records are durable then, one by one.
    ///
    /// # Errors
    /// [`JournalError::OtherOwner`] if there is a log on the disk, those of [`Journal::commit`].
    pub fn begin(
        disk: D,
        owner: &[u8],
        snapshot: impl IntoIterator<Item = Vec<u8>>,
    ) -> Result<Self, JournalError> {
        let mut is_empty = true;
        let mut journal = Self::open(disk, owner, |_| is_empty = false)?;
        if !is_empty {
            return Err(JournalError::OtherOwner);
        }
        for record in snapshot {
            journal.append(&record);
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
        let block = Block::encode(self.blocks, &self.collected, self.salt_of(self.blocks));
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

    /// Refuses a log that an older version has written: its owner begins with one of these.
    /// [`Journal::open`] could not tell it from a log of another owner.
    ///
    /// # Errors
    /// [`JournalError::OlderFormat`], [`JournalError::Disk`].
    pub fn refuse_older(
        disk: &D,
        mut beginnings: impl Iterator<Item = Vec<u8>>,
    ) -> Result<(), JournalError> {
        let first = Block::read(disk, (0, disk.length()?), &[])?;
        let owner = first.as_ref().and_then(|it| it.records().next());
        let is_older = owner.is_some_and(|owner| beginnings.any(|it| owner.starts_with(&it)));
        match is_older {
            true => Err(JournalError::OlderFormat),
            false => Ok(()),
        }
    }

    fn next_block(&self, length: u64) -> Result<Option<Block>, JournalError> {
        let salt = self.salt_of(self.blocks);
        let block = Block::read(&self.disk, (self.end, length), salt)?;
        Ok(block.filter(|it| it.number == self.blocks))
    }

    /// The salt of a block's checksum. Block 0 has that of the others, and none of its own.
    fn salt_of(&self, number: u64) -> &[u8] {
        if number == 0 { &[] } else { &self.salt }
    }

    /// Looks for a good block behind the first bad one.
    fn refuse_damage(&self, length: u64, owner: &[u8]) -> Result<(), JournalError> {
        if self.blocks == 0 {
            // Later blocks are not known without the salt. A crash that tears block 0 leaves none.
            let first = HEADER_LEN + 4 + owner.len() + 4 + SALT_LEN;
            return match length > first as u64 {
                true => Err(JournalError::Damaged(0)),
                false => Ok(()),
            };
        }
        let mut window = vec![0; WINDOW];
        let mut from = self.end + 1;
        while from < length {
            let bytes = &mut window[..(length - from).min(WINDOW as u64) as usize];
            self.disk.read_at(from, bytes)?;
            for (at, four) in (from..).zip(bytes.windows(MAGIC.len())) {
                let block = match four == MAGIC {
                    true => Block::read(&self.disk, (at, length), &self.salt)?,
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

/// A log without salt would look like a torn one, and be cut off.
fn refuse_unsalted(disk: &impl Disk, length: u64) -> Result<(), JournalError> {
    let mut first = [0; OLDER_MAGIC.len()];
    if length >= first.len() as u64 {
        disk.read_at(0, &mut first)?;
    }
    match first == *OLDER_MAGIC {
        true => Err(JournalError::OlderFormat),
        false => Ok(()),
    }
}
