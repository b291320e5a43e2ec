// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Crashes of a memory on disk, at each place where its files can be caught: `CRASHES` of them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod sealed;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use smt_a2m::{A2m, Disk, Durability, Entry, Identity, LogId};
use smt_attestation::{DeviceId, GroupSecret, SigningKey};
use smt_simulation::Random;

use sealed::{ENDLESS, Sealed};

/// Bytes that a disk writes at once.
const SECTOR: usize = 512;

struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A directory that is removed at the end.
fn new_directory(name: &str) -> Directory {
    let name = format!("smt-a2m-crashes-{}-{name}", std::process::id());
    let directory = Directory(std::env::temp_dir().join(name));
    fs::create_dir_all(&directory.0).unwrap();
    directory
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|it| it.parse().ok())
}

fn open(directory: &Path) -> A2m<Disk> {
    let mut disk = Disk::open(directory, Durability::Anchored).unwrap();
    let epoch = disk.next_epoch().unwrap();
    let (secret, signing_key) = (GroupSecret::new([1; 32]), SigningKey::new(&[2; 32]));
    A2m::open(Identity { device: DeviceId(1), secret, signing_key }, epoch, disk).unwrap()
}

/// Entries that were told to others: all of them must be there after each crash.
#[derive(Default)]
struct Told {
    durable: Vec<Entry>,
    /// The statement of each attestation that left the host.
    counters: BTreeMap<(u32, u64, u64), [u8; 73]>,
}

impl Told {
    fn tell(&mut self, entries: Vec<Entry>) {
        for entry in &entries {
            let claim = entry.attestation.claim().unwrap();
            let place = (claim.stream.0, claim.epoch.0, claim.counter);
            let before = self.counters.insert(place, entry.statement.encode());
            assert_eq!(before, None, "a counter was given twice: {place:?}");
        }
        self.durable.extend(entries);
    }

    fn is_there(&self, memory: &A2m<Disk>) {
        for entry in &self.durable {
            let found = memory.verified_lookup(entry.log, entry.statement.sequence);
            assert_eq!(found.as_ref().ok(), Some(entry), "an acknowledged entry is lost");
        }
    }
}

/// The files as a crash leaves them: the log with any sectors of what was not synced, the anchor of
/// before or of afterwards, and a new anchor that has not its name yet. A new anchor is only there
/// when all of the log is.
fn crash(directory: &Path, synced: &[Vec<u8>; 2], random: &mut Random) -> bool {
    let [log, anchor] = ["log", "anchor"].map(|name| directory.join(name));
    let (written, new_anchor) = (fs::read(&log).unwrap(), fs::read(&anchor).unwrap());
    if random.chance(25) {
        fs::write(directory.join("anchor.new"), &new_anchor[..random.below(52) as usize]).unwrap();
    }
    // The log is synced before the anchor changes.
    if random.chance(30) {
        if random.chance(50) {
            fs::write(&anchor, &synced[1]).unwrap();
        }
        return false;
    }
    let durable = synced[0].len();
    let length = durable + random.below((written.len() - durable) as u64 + 1) as usize;
    let mut left = written[..length].to_vec();
    for sector in (durable / SECTOR * SECTOR..length).step_by(SECTOR) {
        let range = sector.max(durable)..(sector + SECTOR).min(length);
        if random.chance(40) {
            left[range].fill(0);
        }
    }
    fs::write(&log, &left).unwrap();
    fs::write(&anchor, &synced[1]).unwrap();
    left != written
}

#[test]
fn a_crash_takes_back_no_entry_that_was_told_and_no_counter_is_given_twice() {
    let (crashes, seed) = (number("CRASHES").unwrap_or(60), number("SMT_SEED").unwrap_or(1));
    println!("SMT_SEED={seed}");
    let mut random = Random::new(seed);
    let directory = new_directory("own");
    let (mut told, mut torn) = (Told::default(), 0);
    for number in 0..crashes {
        // A log does not grow without end, so that each crash is as quick as the first.
        if number.is_multiple_of(50) {
            let _ = fs::remove_dir_all(&directory.0);
            fs::create_dir_all(&directory.0).unwrap();
            told = Told::default();
        }
        let mut memory = open(&directory.0);
        told.is_there(&memory);
        for _ in 0..random.below(3) {
            let entries = append(&mut memory, &mut random);
            memory.commit().unwrap();
            told.tell(entries);
        }
        let synced = ["log", "anchor"].map(|name| fs::read(directory.0.join(name)).unwrap());
        append(&mut memory, &mut random);
        // The commit is interrupted: nobody was told that it ended.
        if random.chance(50) {
            memory.commit().unwrap();
        }
        drop(memory);
        torn += u64::from(crash(&directory.0, &synced, &mut random));
    }
    told.is_there(&open(&directory.0));
    println!("{crashes} crashes, {torn} of them tore the log");
    assert!(torn > crashes / 4, "{torn} of {crashes}");
}

/// Over a device that remembers: it dies with its host, and in a sealing, which comes when the log
/// is on the disk.
#[test]
fn a_crash_takes_back_no_entry_that_a_device_remembers() {
    let (crashes, seed) = (number("CRASHES").unwrap_or(60), number("SMT_SEED").unwrap_or(2));
    println!("SMT_SEED={seed}");
    let mut random = Random::new(seed);
    let (directory, sealed) = (new_directory("device"), Sealed::default());
    let open = || {
        let disk = Disk::open(&directory.0, Durability::Anchored).unwrap();
        A2m::open_with(sealed.start(ENDLESS, true), disk).unwrap()
    };
    let (mut told, mut torn, mut died) = (Told::default(), 0, 0);
    for _ in 0..crashes {
        let mut memory = open();
        told.is_there(&memory);
        for _ in 0..random.below(3) {
            let entries = append(&mut memory, &mut random);
            memory.commit().unwrap();
            told.tell(entries);
        }
        let files = || ["log", "anchor"].map(|name| fs::read(directory.0.join(name)));
        let synced = files();
        append(&mut memory, &mut random);
        if random.chance(50) {
            sealed.dies_next(random.chance(50));
            assert!(memory.commit().is_err());
            died += 1;
        } else if let [Ok(log), Ok(anchor)] = synced {
            torn += u64::from(crash(&directory.0, &[log, anchor], &mut random));
        }
    }
    told.is_there(&open());
    println!("{crashes} crashes, {torn} of them tore the log, {died} came in a sealing");
    assert!(torn > crashes / 6 && died > crashes / 4, "{torn}, {died} of {crashes}");
}

fn append(memory: &mut A2m<Disk>, random: &mut Random) -> Vec<Entry> {
    let count = 1 + random.below(4);
    let append = |_| {
        let log = LogId(1 + random.below(3) as u32);
        let context = vec![random.below(256) as u8; random.below(900) as usize];
        memory.append(log, &context).unwrap()
    };
    (0..count).map(append).collect()
}
