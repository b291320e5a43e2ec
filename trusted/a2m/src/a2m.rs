// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The memory: its logs, its device and its storage.

use std::collections::{BTreeMap, BTreeSet};

use smt_attestation::{
    Algorithm, Attestation, DeviceId, Epoch, Group, GroupSecret, Member, PUBLIC_KEY_LEN,
    SIGNATURE_LEN, SigningKey, Start, StreamId, verify_signature,
};
use smt_device_client::{Device, Library, SecretNumber};

use crate::audit::Chain;
use crate::entry::{CONTEXT_LEN_MAX, Entry, EntryKind, LogId, MANIFEST, Statement, hash};
use crate::error::A2mError;
use crate::storage::Storage;

/// The device of a memory in this process: its number and its keys.
pub struct Identity {
    /// The device.
    pub device: DeviceId,
    /// The secret of the device's logs.
    pub secret: GroupSecret,
    /// The key that signs tails.
    pub signing_key: SigningKey,
}

/// Proof that a log ended with `entry` when the nonce was chosen, for clients without a key.
#[derive(Clone, Debug)]
pub struct Tail {
    /// The entry with the nonce. Its statement has the cumulative digest of all before.
    pub entry: Entry,
    /// The device's signature.
    pub signature: [u8; SIGNATURE_LEN],
}

/// A device in this process: a stream for each log, and the manifest's.
pub type OwnDevice = Library<64, 1, 4>;

/// Attested append-only memory over some storage, by a device in this process or another one.
pub struct A2m<S, D = OwnDevice> {
    epoch: Epoch,
    logs: Logs<D>,
    storage: S,
    /// An entry may be missing in the storage, while its counter is spent.
    stopped: bool,
}

impl<S: Storage> A2m<S> {
    /// Audits all that `storage` has, in `epoch`, in which the device was never started before.
    ///
    /// # Errors
    /// The fault of the host if an entry was altered, moved or left out, or is of this epoch or a
    /// later one; those of the storage.
    pub fn open(identity: Identity, epoch: Epoch, storage: S) -> Result<Self, A2mError> {
        // The nonce is for votes, and a memory has no peers.
        let own = Start { device: identity.device, epoch, nonce: [0; 16] };
        let mut device = OwnDevice::start(own, identity.signing_key);
        device.add_secret(OWN_SECRET, identity.secret).map_err(|it| A2mError::Device(it.into()))?;
        Self::open_with(device, storage)
    }

    /// Audits all that `storage` has, to look entries up only. Needs no epoch of the device.
    ///
    /// # Errors
    /// Those of [`A2m::open`]; [`A2mError::Stopped`] for whatever would be attested.
    pub fn open_to_read(identity: Identity, storage: S) -> Result<Self, A2mError> {
        let memory = Self::open(identity, Epoch(u64::MAX), storage)?;
        Ok(Self { stopped: true, ..memory })
    }
}

impl<S: Storage, D: Device> A2m<S, D> {
    /// Audits all that `storage` has, by a device that may have been running before. The storage
    /// must have all that this device has attested since its start: an entry that is missing, by a
    /// crash or by a host that rolls back, is noticed, and only a new epoch goes on without it.
    ///
    /// # Errors
    /// Those of [`A2m::open`], and [`A2mError::Device`].
    pub fn open_with(device: D, storage: S) -> Result<Self, A2mError> {
        let epoch = device.own().epoch;
        let mut logs = Logs { device, opened: BTreeSet::new(), chains: BTreeMap::new() };
        storage.replay(&mut |entry| logs.push(&entry))?;
        let latest = logs.chains.values().filter_map(|chain| chain.epochs.keys().next_back()).max();
        if latest.is_some_and(|latest| *latest > epoch) {
            return Err(A2mError::RolledBack("the device is in an epoch before that of the log"));
        }
        // The manifest has its stream also when all others are taken.
        logs.open(MANIFEST)?;
        for log in logs.opened.clone() {
            logs.compare(log, epoch)?;
        }
        Ok(Self { epoch, logs, storage, stopped: false })
    }

    /// Appends `context` to a log, which begins with its first entry. Durable after
    /// [`A2m::commit`]; before, the entry must not leave the host.
    ///
    /// # Errors
    /// [`A2mError::Manifest`], [`A2mError::TooLong`], [`A2mError::Device`], those of the storage.
    pub fn append(&mut self, log: LogId, context: &[u8]) -> Result<Entry, A2mError> {
        if log == MANIFEST {
            return Err(A2mError::Manifest);
        }
        self.push(log, EntryKind::Data, context)
    }

    /// Appends contexts in their order, as one batch for a device in another process.
    ///
    /// # Errors
    /// Those of [`A2m::append`]. The memory takes no more entries then: counters are spent.
    pub fn append_all(&mut self, log: LogId, contexts: &[&[u8]]) -> Result<Vec<Entry>, A2mError> {
        let Some((first, rest)) = contexts.split_first() else {
            return Ok(Vec::new());
        };
        if let Some(long) = rest.iter().find(|it| it.len() > CONTEXT_LEN_MAX) {
            return Err(A2mError::TooLong(long.len()));
        }
        // The first one begins the epoch if need be.
        let first = self.append(log, first)?;
        let (mut sequence, mut previous) = (first.statement.sequence, first.statement.digest());
        let next = |context: &&[u8]| {
            sequence += 1;
            let context_hash = hash(context);
            let statement = Statement { kind: EntryKind::Data, sequence, context_hash, previous };
            previous = statement.digest();
            statement
        };
        let statements: Vec<Statement> = rest.iter().map(next).collect();
        let pushed = self.write_all(log, rest, &statements);
        self.stopped |= pushed.is_err();
        let mut entries = pushed?;
        entries.insert(0, first);
        Ok(entries)
    }

    /// Makes all that was appended durable: one commit for any number of entries.
    ///
    /// # Errors
    /// Those of the storage.
    pub fn commit(&mut self) -> Result<(), A2mError> {
        if self.stopped {
            return Err(A2mError::Stopped);
        }
        let committed = self.storage.commit();
        // A second sync would not bring back what a failed one has lost.
        self.stopped = committed.is_err();
        committed
    }

    /// Proves where a log ends, to a client that chose `nonce` just now. The proof takes a place in
    /// the log, and is durable before it is handed out. For [`MANIFEST`] it proves what is
    /// truncated: an older manifest has no entry with that nonce.
    ///
    /// # Errors
    /// [`A2mError::UnknownLog`], [`A2mError::Device`], those of the storage.
    pub fn tail(&mut self, log: LogId, nonce: &[u8]) -> Result<Tail, A2mError> {
        if log != MANIFEST {
            self.chain(log)?;
        }
        let entry = self.push(log, EntryKind::Tail, nonce)?;
        self.commit()?;
        self.signed(entry)
    }

    /// Forgets all entries of a log before `head`. The manifest gets the log's tail with the
    /// client's nonce; the proof is the manifest's entry.
    ///
    /// # Errors
    /// [`A2mError::UnknownLog`], [`A2mError::Manifest`], [`A2mError::Beyond`],
    /// [`A2mError::Forgotten`], [`A2mError::Device`], those of the storage.
    pub fn truncate(&mut self, log: LogId, head: u64, nonce: &[u8]) -> Result<Tail, A2mError> {
        if log == MANIFEST {
            return Err(A2mError::Manifest);
        }
        self.place(log, head)?;
        let tail = self.push(log, EntryKind::Tail, nonce)?;
        let mut context = log.0.to_be_bytes().to_vec();
        context.extend(head.to_be_bytes());
        context.extend(tail.attestation.0);
        let entry = self.push(MANIFEST, EntryKind::Truncate, &context)?;
        self.commit()?;
        self.logs.chains.entry(log).or_default().lowest = head;
        self.storage.forget(log, head);
        self.signed(entry)
    }

    /// The entry that the storage has under a number, unverified.
    ///
    /// # Errors
    /// [`A2mError::UnknownLog`], [`A2mError::Beyond`], [`A2mError::Forgotten`], those of the
    /// storage.
    pub fn lookup(&self, log: LogId, sequence: u64) -> Result<Entry, A2mError> {
        self.place(log, sequence)?;
        let found = self.storage.read(log, sequence)?;
        found.ok_or(A2mError::Misplaced { log: log.0, sequence })
    }

    /// The entry under a number, if it is what the device attested there.
    ///
    /// # Errors
    /// Those of [`A2m::lookup`], [`A2mError::Altered`], [`A2mError::Misplaced`].
    pub fn verified_lookup(&self, log: LogId, sequence: u64) -> Result<Entry, A2mError> {
        let entry = self.lookup(log, sequence)?;
        if entry.log != log || entry.statement.sequence != sequence {
            return Err(A2mError::Misplaced { log: log.0, sequence });
        }
        self.chain(log)?.verify(&self.logs.device, &entry)?;
        Ok(entry)
    }

    /// The logs, each with its lowest and highest sequence number.
    pub fn logs(&self) -> impl Iterator<Item = (LogId, u64, u64)> {
        self.logs.chains.iter().map(|(log, chain)| (*log, chain.lowest, chain.highest))
    }

    /// The device's public key, by which clients verify tails.
    #[must_use]
    pub fn public_key(&self) -> [u8; PUBLIC_KEY_LEN] {
        self.logs.device.public_key()
    }

    /// The storage, for tests of a host that changes it.
    pub fn storage_mut(&mut self) -> &mut S {
        &mut self.storage
    }

    /// Attests and stores an entry; the first of this epoch comes after one that begins it.
    fn push(&mut self, log: LogId, kind: EntryKind, context: &[u8]) -> Result<Entry, A2mError> {
        if context.len() > CONTEXT_LEN_MAX {
            return Err(A2mError::TooLong(context.len()));
        }
        let begun =
            self.logs.chains.get(&log).is_some_and(|it| it.epochs.contains_key(&self.epoch));
        if !begun && kind != EntryKind::Begin {
            self.push(log, EntryKind::Begin, &[])?;
        }
        if self.stopped {
            return Err(A2mError::Stopped);
        }
        self.write(log, kind, context)
    }

    fn write(&mut self, log: LogId, kind: EntryKind, context: &[u8]) -> Result<Entry, A2mError> {
        self.logs.open_new(log)?;
        let chain = self.logs.chains.entry(log).or_default();
        let (sequence, previous) = (chain.highest + 1, chain.digest);
        let statement = Statement { kind, sequence, context_hash: hash(context), previous };
        let attested = self.logs.device.attest(StreamId(log.0), &statement.encode());
        let attestation = attested.map_err(A2mError::Device)?;
        self.keep(Entry { log, statement, attestation, context: context.to_vec() })
    }

    fn write_all(
        &mut self,
        log: LogId,
        contexts: &[&[u8]],
        statements: &[Statement],
    ) -> Result<Vec<Entry>, A2mError> {
        let messages: Vec<_> = statements.iter().map(Statement::encode).collect();
        let messages: Vec<&[u8]> = messages.iter().map(|it| &it[..]).collect();
        let attested = self.logs.device.attest_all(StreamId(log.0), &messages);
        let attestations: Vec<Attestation> = attested.map_err(A2mError::Device)?;
        let parts = contexts.iter().zip(statements).zip(attestations);
        parts
            .map(|((context, statement), attestation)| {
                let (context, statement) = (context.to_vec(), *statement);
                self.keep(Entry { log, statement, attestation, context })
            })
            .collect()
    }

    /// Stores an entry that the device has attested just now, if it is the next one: another
    /// process may have had the device attest meanwhile. The counter is spent, so the memory stops
    /// after any failure.
    fn keep(&mut self, entry: Entry) -> Result<Entry, A2mError> {
        let stored = self.store(&entry);
        self.stopped |= stored.is_err();
        stored.map(|()| entry)
    }

    fn store(&mut self, entry: &Entry) -> Result<(), A2mError> {
        let (log, sequence) = (entry.log.0, entry.statement.sequence);
        let header = entry.attestation.claim().ok_or(A2mError::Misplaced { log, sequence })?;
        let chain = self.logs.chains.entry(entry.log).or_default();
        chain.follows(entry, header)?;
        self.storage.append(entry)?;
        chain.take(entry, header);
        Ok(())
    }

    fn signed(&self, entry: Entry) -> Result<Tail, A2mError> {
        let stream = StreamId(entry.log.0);
        let counter = entry.attestation.claim().map_or(0, |header| header.counter);
        let signature = self.logs.device.sign(stream, counter, &entry.statement.encode());
        Ok(Tail { entry, signature: signature.map_err(A2mError::Device)? })
    }

    /// Whether a log has an entry of that number that is not forgotten.
    fn place(&self, log: LogId, sequence: u64) -> Result<(), A2mError> {
        let Chain { lowest, highest, .. } = *self.chain(log)?;
        let log = log.0;
        if sequence > highest {
            return Err(A2mError::Beyond { log, sequence, highest });
        }
        if sequence < lowest {
            return Err(A2mError::Forgotten { log, sequence, lowest });
        }
        Ok(())
    }

    fn chain(&self, log: LogId) -> Result<&Chain, A2mError> {
        let chain = self.logs.chains.get(&log).filter(|chain| chain.highest > 0);
        chain.ok_or(A2mError::UnknownLog(log.0))
    }
}

/// Whether `tail` proves, by the device's public key, where `log` ended after `nonce` was chosen.
/// The client compares the statement's sequence number and digest with what it has seen before.
#[must_use]
pub fn verify_tail(
    public_key: &[u8; PUBLIC_KEY_LEN],
    log: LogId,
    nonce: &[u8],
    tail: &Tail,
) -> bool {
    let Tail { entry, signature } = tail;
    let header = entry.attestation.header_bytes();
    let is_of_log = entry.attestation.claim().is_some_and(|it| it.stream == StreamId(log.0));
    let statement = &entry.statement;
    is_of_log
        && statement.kind == EntryKind::Tail
        && statement.context_hash == hash(nonce)
        && verify_signature(public_key, &header, &statement.encode(), signature)
}

/// The logs with the device that attests them.
struct Logs<D> {
    device: D,
    /// The logs whose streams are open.
    opened: BTreeSet<LogId>,
    chains: BTreeMap<LogId, Chain>,
}

impl<D: Device> Logs<D> {
    /// Audits an entry.
    fn push(&mut self, entry: &Entry) -> Result<(), A2mError> {
        self.open(entry.log)?;
        self.chains.entry(entry.log).or_default().push(&self.device, entry)?;
        if let Some((log, head)) = entry.truncation() {
            self.chains.entry(log).or_default().lowest = head;
        }
        Ok(())
    }

    /// Opens the stream of a log that the storage does not have.
    fn open_new(&mut self, log: LogId) -> Result<(), A2mError> {
        if self.opened.contains(&log) {
            return Ok(());
        }
        self.open(log)?;
        self.compare(log, self.device.own().epoch)
    }

    /// Whether the storage has as much of a log as the device has attested in its epoch.
    fn compare(&self, log: LogId, epoch: Epoch) -> Result<(), A2mError> {
        let sent = self.device.sent(StreamId(log.0)).map_err(A2mError::Device)?;
        let stored = self.chains.get(&log).map_or(0, |chain| chain.counter_in(epoch));
        if sent == Some(stored) {
            return Ok(());
        }
        Err(A2mError::RolledBack("the log is not what the device has attested since its start"))
    }

    /// Opens the stream of a log, unless it is open. Another process may have opened it before.
    fn open(&mut self, log: LogId) -> Result<(), A2mError> {
        if self.opened.contains(&log) {
            return Ok(());
        }
        let stream = StreamId(log.0);
        if self.device.sent(stream).map_err(A2mError::Device)?.is_none() {
            // The group is the device alone, and formed in epoch 1 whatever the epoch is now:
            // entries of all epochs have one key.
            let members = [Member { device: self.device.own().device, epoch: Epoch(1) }];
            let algorithm = Algorithm::HmacSha256;
            let group = Group { stream, algorithm, quorum: 1, members: &members };
            self.device.open(OWN_SECRET, &group).map_err(A2mError::Device)?;
        }
        self.opened.insert(log);
        Ok(())
    }
}

/// The secret that no other device has.
const OWN_SECRET: SecretNumber = SecretNumber(0);
