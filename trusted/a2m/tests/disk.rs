// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Logs on disk: crashes, damage, roll-back.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use smt_a2m::{A2m, A2mError, Disk, Durability, Fault, Identity, LogId};
use smt_attestation::{DeviceId, GroupSecret, SigningKey};

const LOG: LogId = LogId(7);

/// A directory that is removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("smt-a2m-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn open(&self, durability: Durability) -> Result<A2m<Disk>, A2mError> {
        let secret = GroupSecret::new([1; 32]);
        let signing_key = SigningKey::new(&[2; 32]);
        let mut disk = Disk::open(&self.0, durability)?;
        let epoch = disk.next_epoch()?;
        A2m::open(Identity { device: DeviceId(1), secret, signing_key }, epoch, disk)
    }

    fn anchored(&self) -> Result<A2m<Disk>, A2mError> {
        self.open(Durability::Anchored)
    }

    fn log(&self) -> PathBuf {
        self.0.join("log")
    }

    fn anchor(&self) -> PathBuf {
        self.0.join("anchor")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_log_on_disk_goes_on_after_a_restart() {
    let directory = Directory::new();
    let mut memory = directory.anchored().unwrap();
    let entries: Vec<_> = ["a", "b"].map(|it| memory.append(LOG, it.as_bytes()).unwrap()).into();
    memory.commit().unwrap();
    drop(memory);
    let mut memory = directory.anchored().unwrap();
    for entry in entries {
        assert_eq!(memory.verified_lookup(LOG, entry.statement.sequence).unwrap(), entry);
    }
    assert_eq!(memory.append(LOG, b"c").unwrap().statement.sequence, 5);
    memory.truncate(LOG, 3, b"nonce").unwrap();
    drop(memory);
    let memory = directory.anchored().unwrap();
    assert!(matches!(memory.lookup(LOG, 2), Err(A2mError::Forgotten { lowest: 3, .. })));
    assert_eq!(memory.verified_lookup(LOG, 3).unwrap().context, b"b");
}

#[test]
fn one_process_at_a_time_has_the_log() {
    let directory = Directory::new();
    let _memory = directory.anchored().unwrap();
    assert!(matches!(directory.anchored(), Err(A2mError::Locked)));
}

/// A log with two durable entries and two that were never committed, and the durable length.
fn crashed() -> (Directory, usize) {
    let directory = Directory::new();
    let mut memory = directory.anchored().unwrap();
    for text in ["durable", "too"] {
        memory.append(LOG, text.as_bytes()).unwrap();
    }
    memory.commit().unwrap();
    let durable = fs::metadata(directory.log()).unwrap().len() as usize;
    for text in ["not", "committed", "at all"] {
        memory.append(LOG, text.as_bytes()).unwrap();
    }
    (directory, durable)
}

#[test]
fn a_crash_at_any_byte_loses_nothing_that_was_committed() {
    let (directory, durable) = crashed();
    let (log, anchor) = (fs::read(directory.log()).unwrap(), fs::read(directory.anchor()).unwrap());
    for length in durable..log.len() {
        fs::write(directory.log(), &log[..length]).unwrap();
        fs::write(directory.anchor(), &anchor).unwrap();
        let mut memory = directory.anchored().unwrap();
        assert_eq!(memory.verified_lookup(LOG, 3).unwrap().context, b"too", "{length} bytes");
        memory.append(LOG, b"goes on").unwrap();
        memory.commit().unwrap();
        drop(memory);
        directory.anchored().unwrap();
    }
}

/// A disk that writes the sectors of an uncommitted batch in its own order.
#[test]
fn a_batch_that_was_torn_in_its_middle_is_cut_off_there() {
    let (directory, durable) = crashed();
    let (log, anchor) = (fs::read(directory.log()).unwrap(), fs::read(directory.anchor()).unwrap());
    for offset in durable..log.len() {
        let mut torn = log.clone();
        torn[offset] ^= 0x55;
        fs::write(directory.log(), &torn).unwrap();
        fs::write(directory.anchor(), &anchor).unwrap();
        let memory = directory.anchored().unwrap();
        assert_eq!(memory.verified_lookup(LOG, 3).unwrap().context, b"too", "byte {offset}");
        assert!(matches!(memory.lookup(LOG, 6), Err(A2mError::Beyond { .. })), "byte {offset}");
    }
}

/// The torn record is followed by whole ones, and the new log ends exactly before one of them.
#[test]
fn a_record_behind_a_torn_one_does_not_come_back() {
    let (directory, durable) = crashed();
    change(&directory.log(), |log| log[durable + 9] ^= 1);
    let mut memory = directory.anchored().unwrap();
    // With the entry that begins the epoch, as long as the two torn off: 3 + 9 bytes.
    memory.append(LOG, b"twelve bytes").unwrap();
    memory.commit().unwrap();
    drop(memory);
    let memory = directory.anchored().unwrap();
    assert_eq!(memory.logs().collect::<Vec<_>>(), [(LOG, 1, 5)]);
}

#[test]
fn damage_to_what_was_durable_is_told_from_a_crash() {
    let (directory, durable) = crashed();
    let (log, anchor) = (fs::read(directory.log()).unwrap(), fs::read(directory.anchor()).unwrap());
    for offset in 0..durable {
        let mut damaged = log.clone();
        damaged[offset] ^= 0x55;
        fs::write(directory.log(), &damaged).unwrap();
        fs::write(directory.anchor(), &anchor).unwrap();
        let error = directory.anchored().err().unwrap();
        assert_eq!(error.fault(), Fault::Host, "byte {offset}: {error}");
    }
}

#[test]
fn a_damaged_or_missing_anchor_is_refused() {
    let (directory, _) = crashed();
    change(&directory.anchor(), |bytes| bytes[3] ^= 1);
    assert!(matches!(directory.anchored(), Err(A2mError::Anchor)));
    fs::remove_file(directory.anchor()).unwrap();
    assert!(matches!(directory.anchored(), Err(A2mError::Anchor)));
}

mod roll_back {
    use super::*;

    /// The log of an earlier commit, and the memory after a later one.
    fn rolled_back(durability: Durability) -> Result<A2m<Disk>, A2mError> {
        let directory = Directory::new();
        let mut memory = directory.open(durability).unwrap();
        memory.append(LOG, b"kept").unwrap();
        memory.commit().unwrap();
        let older = fs::read(directory.log()).unwrap();
        memory.append(LOG, b"lost").unwrap();
        memory.commit().unwrap();
        drop(memory);
        fs::write(directory.log(), older).unwrap();
        directory.open(durability)
    }

    #[test]
    fn a_log_from_before_an_anchored_commit_is_refused() {
        assert!(matches!(rolled_back(Durability::Anchored), Err(A2mError::RolledBack(_))));
    }

    /// The window that the documents state.
    #[test]
    fn a_log_from_before_a_fast_commit_of_the_same_start_is_taken() {
        assert!(rolled_back(Durability::Fast).is_ok());
    }

    #[test]
    fn a_log_from_before_a_fast_commit_of_an_earlier_start_is_refused() {
        let directory = Directory::new();
        let mut memory = directory.open(Durability::Fast).unwrap();
        memory.append(LOG, b"kept").unwrap();
        memory.commit().unwrap();
        let older = fs::read(directory.log()).unwrap();
        memory.append(LOG, b"lost").unwrap();
        memory.commit().unwrap();
        drop(memory);
        drop(directory.open(Durability::Fast).unwrap());
        fs::write(directory.log(), older).unwrap();
        assert!(matches!(directory.anchored(), Err(A2mError::RolledBack(_))));
    }

    /// The log of another text, in the place of the durable one.
    fn exchanged(text: &str) -> Result<A2m<Disk>, A2mError> {
        let logs = ["one", text].map(|text| {
            let directory = Directory::new();
            let mut memory = directory.anchored().unwrap();
            memory.append(LOG, text.as_bytes()).unwrap();
            memory.append(LOG, text.as_bytes()).unwrap();
            memory.commit().unwrap();
            drop(memory);
            directory
        });
        fs::copy(logs[1].log(), logs[0].log()).unwrap();
        logs[0].anchored()
    }

    #[test]
    fn an_exchanged_log_of_any_length_is_refused() {
        for text in ["", "two", "three and more"] {
            assert!(matches!(exchanged(text), Err(A2mError::RolledBack(_))), "{text}");
        }
    }
}
