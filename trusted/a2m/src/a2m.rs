// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The memory: its logs, its device and its storage.

use std::collections::{BTreeMap, BTreeSet};

use smt_attestation::{
    Attestation, DeviceId, Epoch, GroupSecret, PUBLIC_KEY_LEN, SigningKey, Start,
};
use smt_device_client::{
    AppendOnly, Device, End, EntryKind, Library, LogId, Logs, SecretNumber, Statement,
};

use crate::audit::Chain;
use crate::entry::{CONTEXT_LEN_MAX, Entry, MANIFEST, hash};
use crate::error::A2mError;
use crate::storage::Storage;
use crate::tail::Tail;

/// The device of a memory in this process: its number and its keys.
pub struct Identity {
    /// The device.
    pub device: DeviceId,
    /// The secret of the device's logs.
    pub secret: GroupSecret,
    /// The key that signs tails.
    pub signing_key: SigningKey,
}

/// A device in this process: a stream for each log, and the manifest's.
pub type OwnDevice = Library<64, 1, 4>;

/// Attested append-only memory over some storage, by a device in this process or another one.
pub struct A2m<S, D = OwnDevice> {
    epoch: Epoch,
    device: D,
    /// The logs whose streams are open.
    opened: BTreeSet<LogId>,
    chains: BTreeMap<LogId, Chain>,
    /// The logs that have entries since the last commit.
    appended: BTreeSet<LogId>,
    storage: S,
    /// An entry may be missing in the storage, while its counter is spent.
    stopped: bool,
}

impl<S: Storage> A2m<S> {
    /// Audits all that `storage` has, in `epoch`, in which the device was never started before. The
    /// device is this process, and remembers nothing: the storage is taken for the newest.
    ///
    /// # Errors
    /// The fault of the host if an entry was altered, moved or left out, or is of this epoch or a
    /// later one; those of the storage.
    pub fn open(identity: Identity, epoch: Epoch, storage: S) -> Result<Self, A2mError> {
        // The nonce is for votes, and a memory has no peers.
        let own = Start { device: identity.device, epoch, nonce: [0; 16] };
        let mut device = OwnDevice::start(own, identity.signing_key);
        device.add_secret(OWN_SECRET, identity.secret).map_err(|it| A2mError::Device(it.into()))?;
        Self::open_own(device, storage)
    }

    /// Audits all that `storage` has, by a device of this process that was started just now.
    ///
    /// # Errors
    /// Those of [`A2m::open`].
    pub fn open_own(mut device: OwnDevice, storage: S) -> Result<Self, A2mError> {
        device.remember(Logs::default());
        let epoch = device.own().epoch;
        let mut memory = Self::new(device, storage);
        memory.audit(None)?;
        if memory.chains.values().filter_map(Chain::epoch).any(|it| it >= epoch) {
            return Err(A2mError::RolledBack("the device is in an epoch that the log has already"));
        }
        for (log, chain) in &memory.chains {
            memory.device.restore_log(*log, chain.end).map_err(A2mError::Device)?;
        }
        // The manifest has its stream also when all others are taken.
        memory.open_stream(MANIFEST)?;
        Ok(memory)
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

impl<S: Storage, D: AppendOnly> A2m<S, D> {
    /// Audits all that `storage` has against what the device has sealed, in any of its epochs. The
    /// storage must have all that was sealed. Entries behind it were never committed: they are
    /// removed, and the device forgets that it has appended them.
    ///
    /// # Errors
    /// [`A2mError::NotSealed`] for a storage that was rolled back, those of [`A2m::open`], and
    /// [`A2mError::Device`].
    pub fn open_with(device: D, storage: S) -> Result<Self, A2mError> {
        let mut memory = Self::new(device, storage);
        memory.device.discard().map_err(A2mError::Device)?;
        let mut sealed = BTreeMap::new();
        for place in 0.. {
            let found = memory.device.log_at(place).map_err(A2mError::Device)?;
            let Some((log, end)) = found else {
                break;
            };
            sealed.insert(log, end);
        }
        let is_longer = memory.audit(Some(&sealed))?;
        for (log, end) in &sealed {
            let stored = memory.chains.get(log).map_or_else(End::default, |chain| chain.end);
            if stored != *end {
                let (log, sealed, stored) = (log.0, end.sequence, stored.sequence);
                return Err(A2mError::NotSealed { log, sealed, stored });
            }
        }
        if is_longer {
            memory.storage.cut(&sealed.iter().map(|(log, end)| (*log, end.sequence)).collect())?;
        }
        memory.open_stream(MANIFEST)?;
        Ok(memory)
    }

    fn new(device: D, storage: S) -> Self {
        let epoch = device.own().epoch;
        let (opened, chains, appended) = (BTreeSet::new(), BTreeMap::new(), BTreeSet::new());
        Self { epoch, device, opened, chains, appended, storage, stopped: false }
    }

    /// Audits the storage up to the ends that are given, and says whether it has more.
    fn audit(&mut self, ends: Option<&BTreeMap<LogId, End>>) -> Result<bool, A2mError> {
        let Self { device, opened, chains, storage, .. } = self;
        let mut is_longer = false;
        storage.replay(&mut |entry| {
            let end = ends.map(|all| all.get(&entry.log).map_or(0, |end| end.sequence));
            if end.is_some_and(|end| entry.statement.sequence > end) {
                is_longer = true;
                return Ok(());
            }
            if opened.insert(entry.log) {
                device.open_log(entry.log).map_err(A2mError::Device)?;
            }
            chains.entry(entry.log).or_default().push(device, &entry, ends.is_some())?;
            if let Some((log, head)) = entry.truncation() {
                chains.entry(log).or_default().lowest = head;
            }
            Ok(())
        })?;
        Ok(is_longer)
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

    /// Makes all that was appended durable, and has the device seal it: one commit for any number
    /// of entries.
    ///
    /// # Errors
    /// Those of the storage, [`A2mError::Device`]. The memory takes no more entries then.
    pub fn commit(&mut self) -> Result<(), A2mError> {
        if self.stopped {
            return Err(A2mError::Stopped);
        }
        let committed = self.storage.commit().and_then(|()| self.seal());
        // A second sync would not bring back what a failed one has lost.
        self.stopped = committed.is_err();
        committed
    }

    /// Has the device seal what the storage has.
    fn seal(&mut self) -> Result<(), A2mError> {
        let ends = self.appended.iter();
        let ends: Vec<_> = ends.filter_map(|log| Some((*log, self.chains.get(log)?.end))).collect();
        if !ends.is_empty() {
            self.device.seal(&ends).map_err(A2mError::Device)?;
        }
        self.appended.clear();
        Ok(())
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
        self.chains.entry(log).or_default().lowest = head;
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
        self.chain(log)?.verify(&self.device, &entry)?;
        Ok(entry)
    }

    /// The logs, each with its lowest and highest sequence number.
    pub fn logs(&self) -> impl Iterator<Item = (LogId, u64, u64)> {
        self.chains.iter().map(|(log, chain)| (*log, chain.lowest, chain.end.sequence))
    }

    /// The device's public key, by which clients verify tails.
    #[must_use]
    pub fn public_key(&self) -> [u8; PUBLIC_KEY_LEN] {
        self.device.public_key()
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
        let begun = self.chains.get(&log).and_then(Chain::epoch) == Some(self.epoch);
        if !begun && kind != EntryKind::Begin {
            self.push(log, EntryKind::Begin, &[])?;
        }
        if self.stopped {
            return Err(A2mError::Stopped);
        }
        self.write(log, kind, context)
    }

    fn write(&mut self, log: LogId, kind: EntryKind, context: &[u8]) -> Result<Entry, A2mError> {
        self.open_stream(log)?;
        let End { sequence, digest } = self.chains.entry(log).or_default().end;
        let sequence = sequence + 1;
        let statement = Statement { kind, sequence, context_hash: hash(context), previous: digest };
        let attestation = self.device.append(log, &statement).map_err(A2mError::Device)?;
        self.keep(Entry { log, statement, attestation, context: context.to_vec() })
    }

    fn write_all(
        &mut self,
        log: LogId,
        contexts: &[&[u8]],
        statements: &[Statement],
    ) -> Result<Vec<Entry>, A2mError> {
        let appended = self.device.append_all(log, statements);
        let attestations: Vec<Attestation> = appended.map_err(A2mError::Device)?;
        let parts = contexts.iter().zip(statements).zip(attestations);
        parts
            .map(|((context, statement), attestation)| {
                let (context, statement) = (context.to_vec(), *statement);
                self.keep(Entry { log, statement, attestation, context })
            })
            .collect()
    }

    /// Stores an entry that the device has attested just now. Its place is spent until the memory
    /// is opened again, so the memory stops after any failure.
    fn keep(&mut self, entry: Entry) -> Result<Entry, A2mError> {
        let stored = self.store(&entry);
        self.stopped |= stored.is_err();
        stored.map(|()| entry)
    }

    fn store(&mut self, entry: &Entry) -> Result<(), A2mError> {
        let (log, sequence) = (entry.log.0, entry.statement.sequence);
        let header = entry.attestation.claim().ok_or(A2mError::Misplaced { log, sequence })?;
        let chain = self.chains.entry(entry.log).or_default();
        chain.follows(entry, header)?;
        self.storage.append(entry)?;
        chain.take(entry, header);
        self.appended.insert(entry.log);
        Ok(())
    }

    fn signed(&self, entry: Entry) -> Result<Tail, A2mError> {
        let signature = self.device.sign_end(entry.log).map_err(A2mError::Device)?;
        Ok(Tail { entry, signature })
    }

    /// Opens the stream of a log, unless it is open.
    fn open_stream(&mut self, log: LogId) -> Result<(), A2mError> {
        if !self.opened.contains(&log) {
            self.device.open_log(log).map_err(A2mError::Device)?;
            self.opened.insert(log);
        }
        Ok(())
    }

    /// Whether a log has an entry of that number that is not forgotten.
    fn place(&self, log: LogId, sequence: u64) -> Result<(), A2mError> {
        let Chain { lowest, end: End { sequence: highest, .. }, .. } = *self.chain(log)?;
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
        let chain = self.chains.get(&log).filter(|chain| chain.end.sequence > 0);
        chain.ok_or(A2mError::UnknownLog(log.0))
    }
}

/// The secret that no other device has.
const OWN_SECRET: SecretNumber = SecretNumber(0);
