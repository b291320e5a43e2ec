// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The log keeps what was committed, whatever a crash does to the rest.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io;

use smt_journal::{Disk, FileDisk, Journal, JournalError, ModelDisk};
use smt_simulation::Random;

const OWNER: &[u8] = b"owner";

fn open(disk: ModelDisk) -> Result<(Journal<ModelDisk>, Vec<Vec<u8>>), JournalError> {
    let mut records = Vec::new();
    let journal = Journal::open(disk, OWNER, |record| records.push(record.to_vec()))?;
    Ok((journal, records))
}

#[test]
fn a_crash_loses_nothing_that_was_committed() {
    let (mut lost, mut torn) = (0, 0);
    for seed in 0..500 {
        let mut random = Random::new(seed);
        let (mut disk, mut expected) = (ModelDisk::default(), Vec::<Vec<u8>>::new());
        for _ in 0..6 {
            let (mut journal, records) = open(disk).unwrap();
            assert_eq!(records, expected, "seed {seed}");
            for _ in 0..random.below(4) {
                for _ in 0..1 + random.below(3) {
                    let record = vec![random.below(256) as u8; random.below(2000) as usize];
                    journal.append(&record);
                    expected.push(record);
                }
                journal.commit().unwrap();
            }
            // The process dies between the write of the next block and its sync.
            let before = journal.into_disk();
            let mut unsynced = before.clone();
            let unfinished = vec![random.below(256) as u8; random.below(3000) as usize];
            let (mut journal, _) = open(before).unwrap();
            journal.append(&unfinished);
            journal.commit().unwrap();
            *unsynced.bytes_mut() = journal.into_disk().bytes_mut().clone();
            disk = unsynced.crashed(|| random.chance(67));
            let length = disk.bytes_mut().len();
            let (journal, records) = open(disk).unwrap();
            match records.len() == expected.len() + 1 {
                true => expected.push(unfinished),
                false => lost += 1,
            }
            disk = journal.into_disk();
            torn += usize::from(disk.bytes_mut().len() < length);
        }
    }
    // Both happened: the tests above are no empty loops.
    assert!(lost > 100 && torn > 100, "{lost} lost, {torn} torn");
}

#[test]
fn damage_before_the_last_block_is_refused_and_not_taken_for_a_torn_end() {
    let (mut journal, _) = open(ModelDisk::default()).unwrap();
    let mut ends = vec![journal.length()];
    for number in 0..3_u8 {
        journal.append(&[number; 40]);
        journal.commit().unwrap();
        ends.push(journal.length());
    }
    let disk = journal.into_disk();
    for place in 0..ends[2] {
        let mut damaged = disk.clone();
        damaged.bytes_mut()[place as usize] ^= 1;
        let refused = open(damaged).err();
        assert!(matches!(refused, Some(JournalError::Damaged(_))), "byte {place}: {refused:?}");
    }
}

#[test]
fn damage_is_found_though_the_next_good_block_is_far_behind_it() {
    for length in [70_000, 65_500, 65_513, 131_000] {
        let (mut journal, _) = open(ModelDisk::default()).unwrap();
        let place = journal.length();
        for record in [vec![1; length], vec![2]] {
            journal.append(&record);
            journal.commit().unwrap();
        }
        let mut disk = journal.into_disk();
        disk.bytes_mut()[place as usize + 30] ^= 1;
        let refused = open(disk).err();
        assert!(matches!(refused, Some(JournalError::Damaged(at)) if at == place), "{refused:?}");
    }
}

/// A block whose checksum has no salt.
fn forged(number: u64) -> Vec<u8> {
    let mut fields = number.to_be_bytes().to_vec();
    fields.extend(4_u32.to_be_bytes());
    let checksum = crc32fast::hash(&[&fields[..], b"junk"].concat());
    [&b"SMJ2"[..], &fields[..], &checksum.to_be_bytes()[..], &b"junk"[..]].concat()
}

#[test]
fn a_torn_block_with_a_record_that_looks_like_a_later_block_is_cut_off() {
    // A block of another log, with the same owner, and one that anybody can make.
    let (mut other, _) = open(ModelDisk::default()).unwrap();
    let mut from = 0;
    for _ in 0..5 {
        from = other.length() as usize;
        other.append(b"other");
        other.commit().unwrap();
    }
    let of_other = other.into_disk().bytes_mut()[from..].to_vec();
    for looks_so in [forged(9), of_other] {
        let (mut journal, _) = open(ModelDisk::default()).unwrap();
        journal.append(b"one");
        journal.commit().unwrap();
        let place = journal.length() as usize;
        journal.append(&[vec![7; 600], looks_so, vec![7; 600]].concat());
        journal.commit().unwrap();
        let mut disk = journal.into_disk();
        disk.bytes_mut()[place + 30] ^= 1;
        let (_, records) = open(disk).unwrap();
        assert_eq!(records, [b"one".to_vec()]);
    }
}

#[test]
fn a_log_of_the_format_without_salt_is_refused_and_not_cut_off() {
    let mut disk = ModelDisk::default();
    disk.bytes_mut().extend([&b"SMTJ"[..], &[0; 60][..]].concat());
    assert!(matches!(open(disk).err(), Some(JournalError::OlderFormat)));
}

#[test]
fn a_log_whose_owner_is_that_of_an_older_version_is_refused_as_such() {
    let (mut journal, _) = open(ModelDisk::default()).unwrap();
    journal.append(b"one");
    journal.commit().unwrap();
    let disk = journal.into_disk();
    let refuse = |disk: &ModelDisk, beginnings: &[&[u8]]| {
        let beginnings = beginnings.iter().map(|it| it.to_vec());
        Journal::refuse_older(disk, beginnings)
    };
    let older = refuse(&disk, &[b"another", &OWNER[..2]]);
    assert!(matches!(older, Err(JournalError::OlderFormat)));
    refuse(&disk, &[b"another"]).unwrap();
    refuse(&ModelDisk::default(), &[&OWNER[..2]]).unwrap();
    open(disk).unwrap();
}

/// A disk that notes where it is written.
struct Noted(ModelDisk, Vec<u64>);

impl Disk for Noted {
    fn length(&self) -> io::Result<u64> {
        self.0.length()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, out)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.1.push(offset);
        self.0.write_at(offset, bytes)
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.0.cut(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync()
    }
}

#[test]
fn the_last_block_is_written_again_when_a_log_is_opened() {
    let (mut journal, _) = open(ModelDisk::default()).unwrap();
    let mut last = 0;
    for record in [b"one", b"two"] {
        last = journal.length();
        journal.append(record);
        journal.commit().unwrap();
    }
    let mut disk = journal.into_disk();
    let before = disk.bytes_mut().clone();
    let Noted(mut disk, written) =
        Journal::open(Noted(disk, Vec::new()), OWNER, |_| ()).unwrap().into_disk();
    assert_eq!(written, [last]);
    assert_eq!(*disk.bytes_mut(), before);
}

#[test]
fn more_than_a_block_takes_is_refused_and_not_lost() {
    let (mut journal, _) = open(ModelDisk::default()).unwrap();
    journal.append(&vec![7; 128 << 20]);
    assert!(matches!(journal.commit(), Err(JournalError::TooMuch)));
    let (_, records) = open(journal.into_disk()).unwrap();
    assert_eq!(records, Vec::<Vec<u8>>::new());
}

#[test]
fn a_log_of_another_owner_is_refused() {
    let (journal, _) = open(ModelDisk::default()).unwrap();
    let other = Journal::open(journal.into_disk(), b"another", |_| ());
    assert!(matches!(other, Err(JournalError::OtherOwner)));
}

#[test]
fn a_log_takes_nothing_more_after_a_sync_has_failed() {
    let (mut journal, _) = open(ModelDisk::default()).unwrap();
    journal.append(b"one");
    journal.commit().unwrap();
    let mut disk = journal.into_disk();
    // The first sync is that of `open`.
    disk.fails_after = Some(1);
    let (mut journal, _) = open(disk).unwrap();
    journal.append(b"two");
    assert!(matches!(journal.commit(), Err(JournalError::Disk(_))));
    assert!(matches!(journal.commit(), Err(JournalError::Stopped)));
    let (_, records) = open(journal.into_disk().crashed(|| false)).unwrap();
    assert_eq!(records, [b"one".to_vec()]);
}

#[test]
fn a_file_is_open_once_and_keeps_its_records() {
    let name = format!("smt-journal-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let mut journal = Journal::open(FileDisk::open(&path).unwrap(), OWNER, |_| ()).unwrap();
    journal.append(b"kept");
    journal.commit().unwrap();
    assert!(matches!(FileDisk::open(&path), Err(JournalError::Locked)));
    journal.append(b"not committed");
    drop(journal);
    let mut records = Vec::new();
    let disk = FileDisk::open(&path).unwrap();
    Journal::open(disk, OWNER, |it| records.push(it.to_vec())).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(records, [b"kept".to_vec()]);
}
