// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hosts that restore files of a memory, over a device that remembers across its starts.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod sealed;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use smt_a2m::{A2m, A2mError, Disk, Durability, End, LogId, Memory, OwnDevice, Tail, verify_tail};
use smt_attestation::{Algorithm, DeviceId, Epoch, Group, Member, SigningKey, Start, StreamId};
use smt_device_client::{
    AppendOnly, Device, DeviceError, EntryKind, LogMisuse, SecretNumber, Statement,
};
use smt_simulation::Random;

use sealed::{ENDLESS, Sealed};

const LOG: LogId = LogId(1);
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Directory {
    fn new(name: &str) -> Self {
        let name = format!("smt-a2m-rollback-{}-{name}", std::process::id());
        let root = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("now")).unwrap();
        Self(root)
    }

    fn now(&self) -> PathBuf {
        self.0.join("now")
    }

    fn save(&self, name: &str) {
        copy(&self.now(), &self.0.join(name), &["log", "anchor"]);
    }

    fn restore(&self, name: &str, files: &[&str]) {
        copy(&self.0.join(name), &self.now(), files);
    }

    fn open(&self, device: OwnDevice) -> Result<A2m<Disk>, A2mError> {
        A2m::open_with(device, Disk::open(&self.now(), Durability::Anchored)?)
    }
}

fn copy(from: &Path, to: &Path, files: &[&str]) {
    fs::create_dir_all(to).unwrap();
    for file in files.iter().filter(|file| from.join(file).exists()) {
        fs::copy(from.join(file), to.join(file)).unwrap();
    }
}

/// A client with the device's public key, who never asks with one nonce twice.
struct Client {
    key: [u8; 32],
    known: BTreeMap<LogId, End>,
}

impl Client {
    /// Verifies a tail against what the client knows, and remembers it.
    fn accepts(&mut self, log: LogId, nonce: &[u8], tail: &Tail) {
        let known = self.known.get(&log).copied();
        let end = verify_tail(&self.key, log, nonce, tail, known).unwrap();
        self.known.insert(log, end);
    }
}

/// The log ends at 100 when the host keeps a copy, and Bob is paid afterwards. With the copy and a
/// device in its next epoch the host wants to pay Eve instead.
#[test]
fn a_host_that_restarts_the_device_cannot_roll_the_memory_back() {
    let (directory, sealed) = (Directory::new("probe"), Sealed::default());
    let mut memory = directory.open(sealed.start(ENDLESS, true)).unwrap();
    memory.append(LOG, b"balance 100").unwrap();
    memory.commit().unwrap();
    directory.save("old");
    memory.append(LOG, b"paid 100 to Bob").unwrap();
    memory.commit().unwrap();
    let tail = memory.tail(LOG, b"nonce-1").unwrap();
    assert!(verify_tail(&memory.public_key(), LOG, b"nonce-1", &tail, None).is_ok());
    directory.save("new");
    drop(memory);
    directory.restore("old", &["log", "anchor"]);
    let refused = directory.open(sealed.start(ENDLESS, true)).err().unwrap();
    assert!(matches!(refused, A2mError::NotSealed { log: 1, sealed: 4, stored: 2 }), "{refused}");
    // The log alone, and the anchor alone.
    directory.restore("new", &["anchor"]);
    assert!(directory.open(sealed.start(ENDLESS, true)).is_err());
    directory.restore("new", &["log"]);
    directory.restore("old", &["anchor"]);
    directory.open(sealed.start(ENDLESS, true)).unwrap();
    // Nothing at all: the device knows its logs without any file of the host.
    fs::remove_file(directory.now().join("log")).unwrap();
    fs::remove_file(directory.now().join("anchor")).unwrap();
    let refused = directory.open(sealed.start(ENDLESS, true)).err().unwrap();
    assert!(matches!(refused, A2mError::NotSealed { sealed: 4, stored: 0, .. }), "{refused}");
    // The newest files are taken, in any later epoch.
    directory.restore("new", &["log", "anchor"]);
    let mut memory = directory.open(sealed.start(ENDLESS, true)).unwrap();
    let later = memory.tail(LOG, b"nonce-2").unwrap();
    let known = tail.entry.statement.end();
    assert!(verify_tail(&memory.public_key(), LOG, b"nonce-2", &later, Some(known)).is_ok());
}

/// The process of the memory is killed, and the device runs on: its host restores files meanwhile.
#[test]
fn a_device_that_runs_on_is_asked_for_what_it_has_sealed() {
    let (directory, sealed) = (Directory::new("runs-on"), Sealed::default());
    let mut memory = directory.open(sealed.start(ENDLESS, true)).unwrap();
    memory.append(LOG, b"committed").unwrap();
    memory.commit().unwrap();
    directory.save("old");
    memory.append(LOG, b"not committed").unwrap();
    drop(memory);
    // The entry that was never committed is removed, and its place is given to another one.
    let mut memory = directory.open(sealed.start(ENDLESS, true)).unwrap();
    assert_eq!(memory.logs().collect::<Vec<_>>(), [(LOG, 1, 2)]);
    let entry = memory.append(LOG, b"instead").unwrap();
    memory.commit().unwrap();
    assert_eq!(memory.verified_lookup(LOG, 4).unwrap(), entry);
}

/// The memory is killed before its first commit, and there was no file before.
#[test]
fn a_memory_that_was_killed_before_its_first_commit_opens() {
    let (directory, sealed) = (Directory::new("first"), Sealed::default());
    let mut memory = directory.open(sealed.start(ENDLESS, true)).unwrap();
    memory.append(LOG, b"not committed").unwrap();
    drop(memory);
    let mut memory = directory.open(sealed.start(ENDLESS, true)).unwrap();
    assert_eq!(memory.logs().count(), 0);
    assert_eq!(memory.append(LOG, b"again").unwrap().statement.sequence, 2);
}

/// Both entries are genuine, and have one sequence number.
#[test]
fn an_entry_that_was_discarded_does_not_verify_in_the_place_of_another() {
    let sealed = Sealed::default();
    let mut memory = A2m::open_with(sealed.start(ENDLESS, true), Memory::default()).unwrap();
    memory.append(LOG, b"committed").unwrap();
    memory.commit().unwrap();
    let discarded = memory.append(LOG, b"discarded").unwrap();
    let storage = std::mem::take(memory.storage_mut());
    let mut memory = A2m::open_with(sealed.start(ENDLESS, true), storage).unwrap();
    memory.append(LOG, b"").unwrap();
    memory.commit().unwrap();
    let sequence = discarded.statement.sequence;
    assert!(memory.verified_lookup(LOG, sequence).is_ok());
    *memory.storage_mut().entry_mut(LOG, sequence).unwrap() = discarded;
    let looked_up = memory.verified_lookup(LOG, sequence);
    assert!(matches!(looked_up, Err(A2mError::Misplaced { .. })));
}

/// The host drives the device itself, with requests in any order.
mod a_host_of_its_own_requests {
    use super::*;

    fn entry(end: End, kind: EntryKind, text: u8) -> Statement {
        let (context_hash, previous) = ([text; 32], end.digest);
        Statement { kind, sequence: end.sequence + 1, context_hash, previous }
    }

    fn misuse<T>(result: Result<T, DeviceError>) -> Option<LogMisuse> {
        match result {
            Err(DeviceError::Log(misuse)) => Some(misuse),
            _ => None,
        }
    }

    #[test]
    fn gets_no_signature_over_an_entry_that_can_be_discarded() {
        let sealed = Sealed::default();
        let mut device = sealed.start(ENDLESS, true);
        device.open_log(LOG).unwrap();
        let first = entry(End::default(), EntryKind::Tail, 1);
        device.append(LOG, &first).unwrap();
        assert_eq!(misuse(device.sign_end(LOG)), Some(LogMisuse::NotSealed));
        // Another log that is sealed does not help.
        device.open_log(LogId(2)).unwrap();
        device.append(LogId(2), &first).unwrap();
        device.seal(&[(LogId(2), first.end())]).unwrap();
        assert_eq!(misuse(device.sign_end(LOG)), Some(LogMisuse::NotSealed));
        device.seal(&[(LOG, first.end())]).unwrap();
        device.sign_end(LOG).unwrap();
    }

    #[test]
    fn gets_no_entry_attested_on_the_stream_of_a_log() {
        let mut device = Sealed::default().start(ENDLESS, true);
        let stream = LOG.stream().unwrap();
        let members = [Member { device: DeviceId(1), epoch: Epoch(1) }];
        let algorithm = Algorithm::HmacSha256;
        let group = Group { stream, algorithm, quorum: 1, members: &members };
        assert!(device.open(SecretNumber(0), &group).is_err());
        device.open_log(LOG).unwrap();
        let forged = entry(End::default(), EntryKind::Tail, 1);
        assert!(device.attest(stream, &forged.encode()).is_err());
        let newcomer = Start { device: DeviceId(2), epoch: Epoch(2), nonce: [0; 16] };
        assert!(device.vote(stream, newcomer, DeviceId(1)).is_err());
        device.append(LOG, &forged).unwrap();
        // The kernel would sign it. The device asks whether it is sealed.
        assert!(device.sign(stream, 1, &forged.encode()).is_err());
    }

    /// A stream of messages with a group of the host's choice, and the same statement.
    #[test]
    fn gets_no_message_accepted_as_a_tail() {
        let mut device = Sealed::default().start(ENDLESS, true);
        let members = [Member { device: DeviceId(1), epoch: Epoch(1) }];
        let (stream, algorithm) = (StreamId(LOG.0), Algorithm::HmacSha256);
        let group = Group { stream, algorithm, quorum: 1, members: &members };
        device.open(SecretNumber(0), &group).unwrap();
        let mut memory =
            A2m::open_with(Sealed::default().start(ENDLESS, true), Memory::default()).unwrap();
        memory.append(LOG, b"a").unwrap();
        let mut forged = memory.tail(LOG, b"nonce").unwrap();
        let statement = forged.entry.statement.encode();
        forged.entry.attestation = device.attest(stream, &statement).unwrap();
        forged.signature = device.sign(stream, 1, &statement).unwrap();
        assert!(verify_tail(&device.public_key(), LOG, b"nonce", &forged, None).is_err());
    }
}

/// Deaths of the device in any sealing, of the memory at any moment, and files of any earlier
/// moment in any mixture. A memory that opens has all that was acknowledged, and clients accept
/// tails of one chain alone.
#[test]
fn no_two_accepted_tails_contradict_each_other_whatever_is_restored_and_killed() {
    let number = |name| std::env::var(name).ok().and_then(|it| it.parse::<u64>().ok());
    let (rounds, seed) = (number("CRASHES").unwrap_or(60) * 4, number("SMT_SEED").unwrap_or(1));
    println!("SMT_SEED={seed}");
    let mut random = Random::new(seed);
    let directory = Directory::new("any");
    let sealed = Sealed::default();
    let mut client = Client { key: SigningKey::new(&[9; 32]).public_key(), known: BTreeMap::new() };
    let mut acknowledged: BTreeMap<(LogId, u64), Vec<u8>> = BTreeMap::new();
    let (mut saved, mut refused, mut died) = (0_u64, 0, 0);
    directory.save("0");
    for round in 0..rounds {
        directory.save("newest");
        let is_restored = random.chance(50);
        if is_restored {
            let files: &[&[&str]] = &[&["log", "anchor"], &["log"], &["anchor"]];
            let older = random.below(saved + 1).to_string();
            directory.restore(&older, files[random.below(3) as usize]);
        }
        let device = sealed.start(random.below(6), random.chance(50));
        let mut memory = match directory.open(device) {
            Ok(memory) => memory,
            Err(why) => {
                assert!(is_restored, "round {round}: the newest files are refused: {why}");
                refused += 1;
                directory.restore("newest", &["log", "anchor"]);
                directory.open(sealed.start(random.below(6), random.chance(50))).unwrap()
            }
        };
        for ((log, sequence), context) in &acknowledged {
            let found = memory.verified_lookup(*log, *sequence).unwrap();
            assert_eq!(found.context, *context, "round {round}: an acknowledged entry is another");
        }
        for step in 0..random.below(8) {
            let log = LogId(1 + random.below(3) as u32);
            let nonce = format!("{round} {step}").into_bytes();
            if random.chance(30) && acknowledged.keys().any(|(it, _)| *it == log) {
                let Ok(tail) = memory.tail(log, &nonce) else {
                    died += 1;
                    break;
                };
                client.accepts(log, &nonce, &tail);
            } else {
                let entries: Vec<_> =
                    (0..=random.below(3)).map_while(|_| memory.append(log, &nonce).ok()).collect();
                // Some are left uncommitted: the memory may be killed now.
                if random.chance(30) {
                    continue;
                }
                if memory.commit().is_err() {
                    died += 1;
                    break;
                }
                for entry in entries {
                    acknowledged.insert((log, entry.statement.sequence), entry.context);
                }
            }
        }
        drop(memory);
        if random.chance(30) {
            saved += 1;
            directory.save(&saved.to_string());
        }
    }
    println!("{rounds} rounds: {refused} storages refused, {died} deaths in a sealing");
    assert!(refused > rounds / 20 && died > rounds / 20, "{refused}, {died} of {rounds}");
}
