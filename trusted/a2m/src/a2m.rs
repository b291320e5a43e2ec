// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The memory: its logs, its device and its storage.

use std::collections::BTreeMap;

use smt_attestation::{
    Algorithm, DeviceId, Epoch, Group, GroupSecret, Member, Misuse, PUBLIC_KEY_LEN, SIGNATURE_LEN,
    SigningKey, Start, StreamId, verify_signature,
};

use crate::audit::{Chain, Device, LogStream};
use crate::entry::{CONTEXT_LEN_MAX, Entry, EntryKind, LogId, MANIFEST, Statement, hash};
use crate::error::A2mError;
use crate::storage::Storage;

/// The device of a memory: its number and its keys.
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

/// Attested append-only memory over some storage.
pub struct A2m<S> {
    identity: Identity,
    epoch: Epoch,
    device: Device,
    chains: BTreeMap<LogId, Chain>,
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
        let mut device = Device::start(Start { device: identity.device, epoch, nonce: [0; 16] });
        // The manifest has its stream also when all others are taken.
        stream_of(&mut device, &identity, MANIFEST)?;
        let mut chains = BTreeMap::new();
        let mut logs = Logs { identity: &identity, device, chains: &mut chains };
        storage.replay(&mut |entry| logs.push(&entry))?;
        let device = logs.device;
        let latest = chains.values().filter_map(|chain| chain.epochs.keys().next_back()).max();
        if latest.is_some_and(|latest| *latest >= epoch) {
            return Err(A2mError::RolledBack("the device's epoch was used before"));
        }
        Ok(Self { identity, epoch, device, chains, storage, stopped: false })
    }

    /// Audits all that `storage` has, to look entries up only. Needs no epoch of the device.
    ///
    /// # Errors
    /// Those of [`A2m::open`]; [`A2mError::Stopped`] for whatever would be attested.
    pub fn open_to_read(identity: Identity, storage: S) -> Result<Self, A2mError> {
        let memory = Self::open(identity, Epoch(u64::MAX), storage)?;
        Ok(Self { stopped: true, ..memory })
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
        let stream = self.device.stream(StreamId(log.0)).ok_or(A2mError::UnknownLog(log.0))?;
        self.chain(log)?.verify(stream, &entry)?;
        Ok(entry)
    }

    /// The logs, each with its lowest and highest sequence number.
    pub fn logs(&self) -> impl Iterator<Item = (LogId, u64, u64)> {
        self.chains.iter().map(|(log, chain)| (*log, chain.lowest, chain.highest))
    }

    /// The device's public key, by which clients verify tails.
    #[must_use]
    pub fn public_key(&self) -> [u8; PUBLIC_KEY_LEN] {
        self.identity.signing_key.public_key()
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
        let begun = self.chains.get(&log).is_some_and(|it| it.epochs.contains_key(&self.epoch));
        if !begun && kind != EntryKind::Begin {
            self.push(log, EntryKind::Begin, &[])?;
        }
        if self.stopped {
            return Err(A2mError::Stopped);
        }
        let pushed = self.write(log, kind, context);
        self.stopped |= matches!(pushed, Err(A2mError::Storage(_)));
        pushed
    }

    fn write(&mut self, log: LogId, kind: EntryKind, context: &[u8]) -> Result<Entry, A2mError> {
        let stream = stream_of(&mut self.device, &self.identity, log)?;
        let chain = self.chains.entry(log).or_default();
        let (sequence, previous) = (chain.highest + 1, chain.digest);
        let statement = Statement { kind, sequence, context_hash: hash(context), previous };
        let attestation = stream.attest(&statement.encode()).map_err(A2mError::Device)?;
        let entry = Entry { log, statement, attestation, context: context.to_vec() };
        self.storage.append(&entry)?;
        chain.push(stream, &entry)?;
        Ok(entry)
    }

    fn signed(&self, entry: Entry) -> Result<Tail, A2mError> {
        let log = entry.log.0;
        let stream = self.device.stream(StreamId(log)).ok_or(A2mError::UnknownLog(log))?;
        let statement = entry.statement.encode();
        let signature = self.identity.signing_key.sign(stream, stream.sent(), &statement);
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
        let chain = self.chains.get(&log).filter(|chain| chain.highest > 0);
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

/// The logs while they are audited.
struct Logs<'a> {
    identity: &'a Identity,
    device: Device,
    chains: &'a mut BTreeMap<LogId, Chain>,
}

impl Logs<'_> {
    fn push(&mut self, entry: &Entry) -> Result<(), A2mError> {
        let stream = stream_of(&mut self.device, self.identity, entry.log)?;
        self.chains.entry(entry.log).or_default().push(stream, entry)?;
        if let Some((log, head)) = entry.truncation() {
            self.chains.entry(log).or_default().lowest = head;
        }
        Ok(())
    }
}

/// The stream of a log, which is opened when the log is first seen in this epoch.
fn stream_of<'a>(
    device: &'a mut Device,
    identity: &Identity,
    log: LogId,
) -> Result<&'a mut LogStream, A2mError> {
    let stream = StreamId(log.0);
    if device.stream(stream).is_none() {
        // The group is the device alone, and formed in epoch 1 whatever the epoch is now: entries
        // of all epochs have one key.
        let members = [Member { device: identity.device, epoch: Epoch(1) }];
        let group =
            Group { stream, algorithm: Algorithm::HmacSha256, quorum: 1, members: &members };
        device.open(&identity.secret, &group).map_err(A2mError::Device)?;
    }
    device.stream_mut(stream).ok_or(A2mError::Device(Misuse::Full))
}
