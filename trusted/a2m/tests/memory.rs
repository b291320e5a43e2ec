// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The operations of attested append-only memory, and hosts that alter its entries.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::io;

use smt_a2m::{
    A2m, A2mError, End, Entry, EntryKind, Fault, Identity, LogId, MANIFEST, Memory, Storage,
    TailError, verify_tail,
};
use smt_attestation::{DeviceId, Epoch, GroupSecret, SigningKey};

const LOG: LogId = LogId(7);

fn identity() -> Identity {
    let secret = GroupSecret::new([1; 32]);
    Identity { device: DeviceId(1), secret, signing_key: SigningKey::new(&[2; 32]) }
}

fn memory() -> A2m<Memory> {
    A2m::open(identity(), Epoch(1), Memory::default()).unwrap()
}

/// The memory after a restart, with what its storage has.
fn again(memory: &mut A2m<Memory>, epoch: u64) -> Result<A2m<Memory>, A2mError> {
    let storage = std::mem::take(memory.storage_mut());
    A2m::open(identity(), Epoch(epoch), storage)
}

#[test]
fn an_appended_entry_is_found_under_its_number() {
    let mut memory = memory();
    for text in ["a", "b", "c"] {
        let entry = memory.append(LOG, text.as_bytes()).unwrap();
        let sequence = entry.statement.sequence;
        assert_eq!(memory.verified_lookup(LOG, sequence).unwrap(), entry);
        assert_eq!(memory.lookup(LOG, sequence).unwrap().context, text.as_bytes());
    }
    // The first place is that of the entry which begins the epoch.
    assert_eq!(memory.lookup(LOG, 1).unwrap().statement.kind, EntryKind::Begin);
    assert_eq!(memory.logs().collect::<Vec<_>>(), [(LOG, 1, 4)]);
}

#[test]
fn each_log_has_its_own_numbers() {
    let mut memory = memory();
    assert_eq!(memory.append(LogId(1), b"one").unwrap().statement.sequence, 2);
    assert_eq!(memory.append(LogId(2), b"two").unwrap().statement.sequence, 2);
    assert_eq!(memory.append(LogId(1), b"one").unwrap().statement.sequence, 3);
}

#[test]
fn each_digest_covers_all_entries_before() {
    let mut memory = memory();
    let first = memory.append(LOG, b"a").unwrap();
    let second = memory.append(LOG, b"b").unwrap();
    assert_eq!(second.statement.previous, first.statement.digest());
    assert_ne!(second.statement.digest(), first.statement.digest());
}

#[test]
fn misuse_is_the_callers_fault() {
    let mut memory = memory();
    assert!(matches!(memory.lookup(LOG, 1), Err(A2mError::UnknownLog(7))));
    memory.append(LOG, b"a").unwrap();
    assert!(matches!(memory.lookup(LOG, 3), Err(A2mError::Beyond { highest: 2, .. })));
    assert!(matches!(memory.append(MANIFEST, b"a"), Err(A2mError::Manifest)));
    let long = vec![0; (1 << 24) + 1];
    let error = memory.append(LOG, &long).unwrap_err();
    assert!(matches!(error, A2mError::TooLong(_)));
    assert_eq!(error.fault(), Fault::Caller);
}

/// Storage that loses an entry and says so.
#[derive(Default)]
struct Failing {
    memory: Memory,
    fails: bool,
}

impl Storage for Failing {
    fn replay(&self, each: &mut dyn FnMut(Entry) -> Result<(), A2mError>) -> Result<(), A2mError> {
        self.memory.replay(each)
    }

    fn append(&mut self, entry: &Entry) -> Result<(), A2mError> {
        if self.fails { Err(io::Error::other("full").into()) } else { self.memory.append(entry) }
    }

    fn commit(&mut self) -> Result<(), A2mError> {
        Ok(())
    }

    fn cut(&mut self, ends: &BTreeMap<LogId, u64>) -> Result<(), A2mError> {
        self.memory.cut(ends)
    }

    fn read(&self, log: LogId, sequence: u64) -> Result<Option<Entry>, A2mError> {
        self.memory.read(log, sequence)
    }

    fn forget(&mut self, log: LogId, head: u64) {
        self.memory.forget(log, head);
    }
}

/// The counter of the lost entry is spent: an entry after it would not follow what is stored.
#[test]
fn a_memory_whose_storage_has_failed_takes_no_more_until_it_is_opened_again() {
    let mut memory = A2m::open(identity(), Epoch(1), Failing::default()).unwrap();
    memory.append(LOG, b"a").unwrap();
    memory.storage_mut().fails = true;
    assert!(matches!(memory.append(LOG, b"lost"), Err(A2mError::Storage(_))));
    memory.storage_mut().fails = false;
    assert!(matches!(memory.append(LOG, b"b"), Err(A2mError::Stopped)));
    assert!(matches!(memory.commit(), Err(A2mError::Stopped)));
    let storage = std::mem::take(memory.storage_mut());
    let mut memory = A2m::open(identity(), Epoch(2), storage).unwrap();
    assert_eq!(memory.append(LOG, b"b").unwrap().statement.sequence, 4);
}

#[test]
fn a_memory_that_was_opened_to_read_attests_nothing() {
    let mut memory = memory();
    memory.append(LOG, b"a").unwrap();
    let storage = std::mem::take(memory.storage_mut());
    let mut memory = A2m::open_to_read(identity(), storage).unwrap();
    assert_eq!(memory.verified_lookup(LOG, 2).unwrap().context, b"a");
    assert!(matches!(memory.append(LOG, b"b"), Err(A2mError::Stopped)));
    assert!(matches!(memory.tail(LOG, b"nonce"), Err(A2mError::Stopped)));
}

#[test]
fn the_number_of_logs_is_the_devices_limit() {
    let mut memory = memory();
    for log in 1..=63 {
        memory.append(LogId(log), b"a").unwrap();
    }
    let error = memory.append(LogId(64), b"a").unwrap_err();
    assert_eq!(error.fault(), Fault::Limit);
    assert!(matches!(memory.lookup(LogId(64), 1), Err(A2mError::UnknownLog(64))));
    // The others go on, and the manifest has its place.
    memory.append(LogId(63), b"b").unwrap();
    memory.truncate(LogId(63), 2, b"nonce").unwrap();
}

mod a_host_that_alters {
    use super::*;

    type Change = fn(&mut Memory);

    fn caught(change: Change) -> (A2mError, A2mError) {
        let mut memory = memory();
        for text in ["a", "b", "c"] {
            memory.append(LOG, text.as_bytes()).unwrap();
        }
        change(memory.storage_mut());
        let looked_up = memory.verified_lookup(LOG, 3).unwrap_err();
        let opened = again(&mut memory, 2).err().unwrap();
        (looked_up, opened)
    }

    #[test]
    fn a_context_is_caught() {
        let (looked_up, opened) =
            caught(|memory| memory.entry_mut(LOG, 3).unwrap().context = b"B".to_vec());
        assert!(matches!(looked_up, A2mError::Altered { sequence: 3, .. }));
        assert!(matches!(opened, A2mError::Altered { sequence: 3, .. }));
        assert_eq!(opened.fault(), Fault::Host);
    }

    #[test]
    fn a_number_is_caught() {
        let (looked_up, opened) = caught(|memory| {
            let other = memory.entry_mut(LOG, 4).unwrap().clone();
            *memory.entry_mut(LOG, 3).unwrap() = other;
        });
        assert!(matches!(looked_up, A2mError::Misplaced { sequence: 3, .. }));
        assert!(matches!(opened, A2mError::Misplaced { sequence: 4, .. }));
    }

    #[test]
    fn a_statement_is_caught() {
        let (looked_up, _) =
            caught(|memory| memory.entry_mut(LOG, 3).unwrap().statement.previous = [0; 32]);
        assert!(matches!(looked_up, A2mError::Altered { sequence: 3, .. }));
    }

    #[test]
    fn a_log_by_omitting_an_entry_is_caught() {
        let (looked_up, opened) = caught(|memory| {
            let kept = memory.entry_mut(LOG, 4).unwrap().clone();
            memory.forget(LOG, 3);
            memory.forget(LOG, 4);
            memory.append(&kept).unwrap();
        });
        assert!(matches!(looked_up, A2mError::Misplaced { sequence: 3, .. }));
        assert!(matches!(opened, A2mError::Misplaced { sequence: 4, .. }));
    }
}

/// A host that has the device attest statements as it likes: the kernel gives each one counter, and
/// that tells which place is an entry's own.
mod a_host_that_lies {
    use smt_a2m::Statement;
    use smt_attestation::{Algorithm, Group, Kernel, Member, Start};

    use super::*;

    struct Liar(Kernel<1, 1, 4>);

    impl Liar {
        fn start(epoch: u64) -> Self {
            let start = Start { device: DeviceId(1), epoch: Epoch(epoch), nonce: [0; 16] };
            let mut kernel = Kernel::start(start);
            let members = [Member { device: DeviceId(1), epoch: Epoch(1) }];
            let (stream, algorithm) = (LOG.stream().unwrap(), Algorithm::HmacSha256);
            let group = Group { stream, algorithm, quorum: 1, members: &members };
            kernel.open(&identity().secret, &group).unwrap();
            Self(kernel)
        }

        fn entry(&mut self, kind: EntryKind, sequence: u64, before: Option<&Entry>) -> Entry {
            let previous = before.map_or([0; 32], |it| it.statement.digest());
            // The hash of an empty context, from an honest entry without one.
            let context_hash = begin_hash();
            let statement = Statement { kind, sequence, context_hash, previous };
            let stream = self.0.stream_mut(LOG.stream().unwrap()).unwrap();
            let attestation = stream.attest(&statement.encode()).unwrap();
            Entry { log: LOG, statement, attestation, context: Vec::new() }
        }
    }

    fn begin_hash() -> [u8; 32] {
        let mut memory = memory();
        memory.append(LOG, b"").unwrap();
        memory.lookup(LOG, 1).unwrap().statement.context_hash
    }

    /// Opens a storage that gives these entries, in this order.
    fn opened(entries: &[&Entry]) -> Result<A2m<Listed>, A2mError> {
        let entries = entries.iter().map(|entry| (*entry).clone()).collect();
        A2m::open(identity(), Epoch(9), Listed(entries))
    }

    struct Listed(Vec<Entry>);

    impl Storage for Listed {
        fn replay(
            &self,
            each: &mut dyn FnMut(Entry) -> Result<(), A2mError>,
        ) -> Result<(), A2mError> {
            self.0.iter().cloned().try_for_each(each)
        }

        fn append(&mut self, _: &Entry) -> Result<(), A2mError> {
            Ok(())
        }

        fn commit(&mut self) -> Result<(), A2mError> {
            Ok(())
        }

        fn cut(&mut self, _: &BTreeMap<LogId, u64>) -> Result<(), A2mError> {
            Ok(())
        }

        fn read(&self, _: LogId, sequence: u64) -> Result<Option<Entry>, A2mError> {
            Ok(self.0.get(sequence as usize - 1).cloned())
        }

        fn forget(&mut self, _: LogId, _: u64) {}
    }

    #[test]
    fn gets_no_second_entry_into_one_place() {
        let mut liar = Liar::start(1);
        let begin = liar.entry(EntryKind::Begin, 1, None);
        let first = liar.entry(EntryKind::Data, 2, Some(&begin));
        let second = liar.entry(EntryKind::Data, 2, Some(&begin));
        assert!(matches!(opened(&[&begin, &second]), Err(A2mError::Misplaced { .. })));
        let mut memory = opened(&[&begin, &first]).unwrap();
        assert!(memory.verified_lookup(LOG, 2).is_ok());
        memory.storage_mut().0[1] = second;
        let looked_up = memory.verified_lookup(LOG, 2);
        assert!(matches!(looked_up, Err(A2mError::Misplaced { .. })));
    }

    #[test]
    fn cannot_skip_a_number_or_break_the_chain() {
        let mut liar = Liar::start(1);
        let late = liar.entry(EntryKind::Begin, 5, None);
        assert!(matches!(opened(&[&late]), Err(A2mError::Misplaced { .. })));
        let mut liar = Liar::start(2);
        let begin = liar.entry(EntryKind::Begin, 1, None);
        let unchained = liar.entry(EntryKind::Data, 2, None);
        assert!(matches!(opened(&[&begin, &unchained]), Err(A2mError::Misplaced { .. })));
    }

    #[test]
    fn goes_not_back_to_an_older_epoch() {
        let newer = Liar::start(2).entry(EntryKind::Begin, 1, None);
        let older = Liar::start(1).entry(EntryKind::Begin, 2, Some(&newer));
        assert!(opened(&[&newer]).is_ok());
        assert!(matches!(opened(&[&newer, &older]), Err(A2mError::Misplaced { .. })));
    }
}

mod restarts {
    use super::*;

    #[test]
    fn a_log_goes_on_in_the_next_epoch() {
        let mut memory = memory();
        memory.append(LOG, b"before").unwrap();
        let mut memory = again(&mut memory, 2).unwrap();
        let entry = memory.append(LOG, b"after").unwrap();
        assert_eq!(entry.statement.sequence, 4);
        let claim = entry.attestation.claim().unwrap();
        assert_eq!((claim.epoch, claim.counter), (Epoch(2), 2));
        for sequence in 1..=4 {
            memory.verified_lookup(LOG, sequence).unwrap();
        }
        again(&mut memory, 3).unwrap();
    }

    #[test]
    fn an_epoch_that_was_used_is_refused() {
        let mut memory = memory();
        memory.append(LOG, b"a").unwrap();
        assert!(matches!(again(&mut memory, 1), Err(A2mError::RolledBack(_))));
    }

    /// The storage is restored to an older state, and the device goes on from there in a later
    /// epoch: a client that knows the lost entry's digest sees that the fresh tail has not got it.
    #[test]
    fn a_rolled_back_log_has_another_digest_than_its_clients_know() {
        let mut memory = memory();
        memory.append(LOG, b"kept").unwrap();
        let known = memory.append(LOG, b"lost").unwrap();
        let mut older = Memory::default();
        for sequence in 1..=2 {
            older.append(&memory.lookup(LOG, sequence).unwrap()).unwrap();
        }
        let mut memory = A2m::open(identity(), Epoch(2), older).unwrap();
        let tail = memory.tail(LOG, b"nonce").unwrap();
        assert!(tail.entry.statement.sequence > known.statement.sequence);
        let there = memory.verified_lookup(LOG, known.statement.sequence).unwrap();
        assert_ne!(there.statement.digest(), known.statement.digest());
    }
}

mod tails {
    use super::*;

    #[test]
    fn a_fresh_tail_verifies_with_its_nonce_alone() {
        let mut memory = memory();
        let last = memory.append(LOG, b"a").unwrap();
        let tail = memory.tail(LOG, b"nonce").unwrap();
        let key = memory.public_key();
        let end = tail.entry.statement.end();
        assert_eq!(verify_tail(&key, LOG, b"nonce", &tail, None), Ok(end));
        assert_eq!(tail.entry.statement.previous, last.statement.digest());
        assert_eq!(verify_tail(&key, LOG, b"other", &tail, None), Err(TailError::OtherNonce));
        assert_eq!(verify_tail(&key, LogId(8), b"nonce", &tail, None), Err(TailError::OtherLog));
        let mut altered = tail.clone();
        altered.entry.statement.previous = [0; 32];
        let verified = verify_tail(&key, LOG, b"nonce", &altered, None);
        assert_eq!(verified, Err(TailError::Signature));
        // Another kind of entry, whose context is the nonce, is no tail.
        altered = tail.clone();
        altered.entry.statement.kind = EntryKind::Data;
        let verified = verify_tail(&key, LOG, b"nonce", &altered, None);
        assert_eq!(verified, Err(TailError::OtherNonce));
    }

    #[test]
    fn the_proof_of_a_truncation_is_no_tail_of_the_manifest() {
        let mut memory = memory();
        memory.append(LOG, b"a").unwrap();
        let proof = memory.truncate(LOG, 2, b"nonce").unwrap();
        let context = &proof.entry.context;
        let verified = verify_tail(&memory.public_key(), MANIFEST, context, &proof, None);
        assert_eq!(verified, Err(TailError::OtherNonce));
    }

    #[test]
    fn the_manifest_proves_what_is_truncated() {
        let mut memory = memory();
        let tail = memory.tail(MANIFEST, b"nonce").unwrap();
        assert!(verify_tail(&memory.public_key(), MANIFEST, b"nonce", &tail, None).is_ok());
    }

    #[test]
    fn a_tail_is_held_against_the_end_that_its_client_knows() {
        let mut memory = memory();
        memory.append(LOG, b"a").unwrap();
        let key = memory.public_key();
        let first = memory.tail(LOG, b"first").unwrap();
        let known = verify_tail(&key, LOG, b"first", &first, None).unwrap();
        let next = memory.tail(LOG, b"next").unwrap();
        assert!(verify_tail(&key, LOG, b"next", &next, Some(known)).is_ok());
        let forked = End { digest: [9; 32], ..known };
        let verified = verify_tail(&key, LOG, b"next", &next, Some(forked));
        assert_eq!(verified, Err(TailError::Forked(3)));
        let later = next.entry.statement.end();
        let verified = verify_tail(&key, LOG, b"next", &next, Some(later));
        assert_eq!(verified, Err(TailError::RolledBack { tail: 4, known: 4 }));
        // A tail of a later epoch goes on from there.
        let mut memory = again(&mut memory, 2).unwrap();
        let tail = memory.tail(LOG, b"later").unwrap();
        assert!(verify_tail(&key, LOG, b"later", &tail, Some(later)).is_ok());
    }
}

mod truncation {
    use super::*;

    #[test]
    fn entries_before_the_head_are_forgotten() {
        let mut memory = memory();
        for text in ["a", "b", "c"] {
            memory.append(LOG, text.as_bytes()).unwrap();
        }
        let proof = memory.truncate(LOG, 3, b"nonce").unwrap();
        assert_eq!(proof.entry.log, MANIFEST);
        let forgotten = memory.verified_lookup(LOG, 2);
        assert!(matches!(forgotten, Err(A2mError::Forgotten { lowest: 3, .. })));
        assert_eq!(memory.verified_lookup(LOG, 3).unwrap().context, b"b");
        // The log's tail has the nonce of who truncated, and the manifest has its attestation.
        let tail = memory.verified_lookup(LOG, 5).unwrap();
        assert_eq!((tail.statement.kind, &tail.context[..]), (EntryKind::Tail, &b"nonce"[..]));
        assert!(proof.entry.context.ends_with(&tail.attestation.0));
    }

    #[test]
    fn a_head_outside_the_log_is_refused() {
        let mut memory = memory();
        memory.append(LOG, b"a").unwrap();
        assert!(matches!(memory.truncate(LOG, 3, b""), Err(A2mError::Beyond { .. })));
        memory.truncate(LOG, 2, b"").unwrap();
        assert!(matches!(memory.truncate(LOG, 1, b""), Err(A2mError::Forgotten { .. })));
        assert!(matches!(memory.truncate(MANIFEST, 1, b""), Err(A2mError::Manifest)));
    }
}
