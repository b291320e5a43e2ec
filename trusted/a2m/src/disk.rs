// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Storage in a directory: a file of checksummed records, and an anchor.
//!
//! The file `log` has one record for each entry, of all logs, in the order of their appends:
//! length of the entry (4 bytes, big-endian), its CRC-32 (4 bytes), the entry. The index of places
//! is kept in memory, and made anew when the file is opened.
//!
//! The file `anchor` says up to where the log is durable, and in which epoch the device is. It is
//! replaced as a whole, after the log is on the disk. A record behind that place that does not fit
//! its checksum was torn by a crash, and the log ends before it; a record before that place that
//! does not fit was damaged, and a log that is shorter was rolled back.
//!
//! Checksums find accidents, not attackers: those are found by attestations, and by the ends that
//! the device has sealed. With a device in this process the anchor is all that says how long the
//! log was: whoever restores both files rolls the log back.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use sha2::{Digest, Sha256};
use smt_attestation::Epoch;
use smt_device_client::LogId;

use crate::entry::{CONTEXT_LEN_MAX, Entry, FIXED_LEN};
use crate::error::A2mError;
use crate::storage::Storage;

/// The state that a commit waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Durability {
    /// The log is on the disk, and the anchor says so: a log from before the commit is refused.
    Anchored,
    /// The log is on the disk. A log that was rolled back to a place after the last start, or after
    /// the last commit that was anchored, is taken.
    Fast,
}

/// Storage in a directory. One process at a time has it open.
#[derive(Debug)]
pub struct Disk {
    directory: PathBuf,
    log: File,
    anchor: Anchor,
    durability: Durability,
    /// Bytes of the log, and the digest of all its records.
    end: End,
    /// The place of each record, in the order of appends.
    records: Vec<u64>,
    /// The place of each entry that is not forgotten.
    entries: BTreeMap<(LogId, u64), u64>,
}

/// A place in the log file between two records.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct End {
    length: u64,
    digest: [u8; 32],
}

impl End {
    fn after(self, record: &[u8]) -> Self {
        let digest = Sha256::new().chain_update(self.digest).chain_update(record).finalize().into();
        Self { length: self.length + record.len() as u64, digest }
    }
}

/// The epoch, and the part of the log that is durable.
#[derive(Clone, Copy, Debug, Default)]
struct Anchor {
    epoch: u64,
    end: End,
}

impl Disk {
    /// Opens the log in `directory`, which is made if need be, and cuts off what a crash tore.
    ///
    /// # Errors
    /// [`A2mError::Locked`], [`A2mError::Anchor`], [`A2mError::Damaged`], [`A2mError::RolledBack`],
    /// [`A2mError::Storage`].
    pub fn open(directory: &Path, durability: Durability) -> Result<Self, A2mError> {
        fs::create_dir_all(directory)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let log = options.open(directory.join("log"))?;
        flock(&log, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            rustix::io::Errno::WOULDBLOCK => A2mError::Locked,
            other => A2mError::Storage(other.into()),
        })?;
        let length = log.metadata()?.len();
        let (anchor, is_new) = match fs::read(directory.join("anchor")) {
            Ok(bytes) => (Anchor::decode(&bytes).ok_or(A2mError::Anchor)?, false),
            // Without an anchor nothing was ever appended.
            Err(error) if error.kind() == io::ErrorKind::NotFound && length == 0 => {
                (Anchor::default(), true)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(A2mError::Anchor),
            Err(error) => return Err(error.into()),
        };
        let (end, records, entries) = (End::default(), Vec::new(), BTreeMap::new());
        let directory = directory.to_path_buf();
        let mut disk = Self { directory, log, anchor, durability, end, records, entries };
        disk.recover(length)?;
        if is_new {
            disk.save_anchor()?;
        }
        Ok(disk)
    }

    /// Begins the next epoch, which is on the disk before it is handed out.
    ///
    /// # Errors
    /// [`A2mError::Storage`].
    pub fn next_epoch(&mut self) -> Result<Epoch, A2mError> {
        self.anchor = Anchor { epoch: self.anchor.epoch + 1, end: self.end };
        self.save_anchor()?;
        Ok(Epoch(self.anchor.epoch))
    }

    /// Walks over all records up to the first that does not fit.
    fn recover(&mut self, length: u64) -> Result<(), A2mError> {
        let durable = self.anchor.end;
        let mut has_durable = self.end == durable;
        while self.end.length < length {
            let Some((record, entry)) = self.record(self.end.length, length)? else {
                break;
            };
            self.note(&entry, &record);
            has_durable |= self.end == durable;
        }
        if !has_durable {
            let is_damaged = self.end.length < durable.length && durable.length <= length;
            return Err(if is_damaged {
                A2mError::Damaged(self.end.length)
            } else {
                A2mError::RolledBack("the log is not the one that was durable")
            });
        }
        if self.end.length < length {
            self.log.set_len(self.end.length)?;
            self.log.sync_all()?;
        }
        Ok(())
    }

    /// The record at `place` with its entry, or nothing if it does not fit its checksum.
    fn record(&self, place: u64, end: u64) -> Result<Option<(Vec<u8>, Entry)>, A2mError> {
        let mut header = [0; HEADER_LEN];
        if end - place < HEADER_LEN as u64 {
            return Ok(None);
        }
        self.log.read_exact_at(&mut header, place)?;
        let [a, b, c, d, checksum @ ..] = header;
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        let fits = (FIXED_LEN..=FIXED_LEN + CONTEXT_LEN_MAX).contains(&length);
        if !fits || end - place - (HEADER_LEN as u64) < length as u64 {
            return Ok(None);
        }
        let mut record = header.to_vec();
        record.resize(HEADER_LEN + length, 0);
        self.log.read_exact_at(&mut record[HEADER_LEN..], place + HEADER_LEN as u64)?;
        let payload = &record[HEADER_LEN..];
        if crc32fast::hash(payload) != u32::from_be_bytes(checksum) {
            return Ok(None);
        }
        let entry = Entry::decode(payload);
        Ok(entry.map(|entry| (record, entry)))
    }

    fn note(&mut self, entry: &Entry, record: &[u8]) {
        self.records.push(self.end.length);
        self.entries.insert((entry.log, entry.statement.sequence), self.end.length);
        self.end = self.end.after(record);
    }

    fn read_at(&self, place: u64) -> Result<Entry, A2mError> {
        let found = self.record(place, self.end.length)?;
        found.map(|(_, entry)| entry).ok_or(A2mError::Damaged(place))
    }

    /// Replaces the anchor: the new one is on the disk before it has the name.
    fn save_anchor(&self) -> Result<(), A2mError> {
        let new = self.directory.join("anchor.new");
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all_at(&self.anchor.encode(), 0)?;
        file.sync_all()?;
        fs::rename(&new, self.directory.join("anchor"))?;
        File::open(&self.directory)?.sync_all()?;
        Ok(())
    }
}

impl Storage for Disk {
    fn replay(&self, each: &mut dyn FnMut(Entry) -> Result<(), A2mError>) -> Result<(), A2mError> {
        self.records.iter().try_for_each(|place| each(self.read_at(*place)?))
    }

    fn append(&mut self, entry: &Entry) -> Result<(), A2mError> {
        let payload = entry.encode();
        let mut record = Vec::with_capacity(HEADER_LEN + payload.len());
        record.extend((payload.len() as u32).to_be_bytes());
        record.extend(crc32fast::hash(&payload).to_be_bytes());
        record.extend(payload);
        self.log.write_all_at(&record, self.end.length)?;
        self.note(entry, &record);
        Ok(())
    }

    fn cut(&mut self, ends: &BTreeMap<LogId, u64>) -> Result<(), A2mError> {
        let (mut end, mut kept) = (End::default(), 0);
        let mut cut = None;
        for place in &self.records {
            let found = self.record(*place, self.end.length)?;
            let (record, entry) = found.ok_or(A2mError::Damaged(*place))?;
            let (log, sequence) = (entry.log, entry.statement.sequence);
            let stays = sequence <= ends.get(&log).copied().unwrap_or_default();
            match (stays, &cut) {
                (true, None) => (end, kept) = (end.after(&record), kept + 1),
                (true, Some(_)) => return Err(A2mError::Misplaced { log: log.0, sequence }),
                (false, _) => {
                    cut = cut.or(Some(*place));
                }
            }
        }
        let Some(length) = cut else {
            return Ok(());
        };
        // The anchor first: it must never say more than the log has.
        self.records.truncate(kept);
        self.entries.retain(|_, place| *place < length);
        self.end = end;
        if self.anchor.end.length > length {
            self.anchor.end = end;
            self.save_anchor()?;
        }
        self.log.set_len(length)?;
        Ok(self.log.sync_all()?)
    }

    fn commit(&mut self) -> Result<(), A2mError> {
        self.log.sync_data()?;
        if self.durability == Durability::Anchored && self.anchor.end != self.end {
            self.anchor.end = self.end;
            self.save_anchor()?;
        }
        Ok(())
    }

    fn read(&self, log: LogId, sequence: u64) -> Result<Option<Entry>, A2mError> {
        self.entries.get(&(log, sequence)).map(|place| self.read_at(*place)).transpose()
    }

    fn forget(&mut self, log: LogId, head: u64) {
        self.entries.retain(|(of, sequence), _| *of != log || *sequence >= head);
    }
}

impl Anchor {
    /// Epoch (8 bytes), length (8), digest (32), CRC-32 of these (4), big-endian.
    fn encode(&self) -> Vec<u8> {
        let mut bytes = self.epoch.to_be_bytes().to_vec();
        bytes.extend(self.end.length.to_be_bytes());
        bytes.extend(self.end.digest);
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (fields, checksum) = bytes.split_last_chunk::<4>()?;
        if crc32fast::hash(fields) != u32::from_be_bytes(*checksum) {
            return None;
        }
        let (epoch, rest) = fields.split_first_chunk::<8>()?;
        let (length, digest) = rest.split_first_chunk::<8>()?;
        let end = End { length: u64::from_be_bytes(*length), digest: digest.try_into().ok()? };
        Some(Self { epoch: u64::from_be_bytes(*epoch), end })
    }
}

/// Bytes of a record before its entry.
const HEADER_LEN: usize = 8;
