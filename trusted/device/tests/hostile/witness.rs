// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The device with a record of what its kernel does, where no host can reach.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use smt_attestation::{
    Attestation, Ballot, DeviceId, Epoch, Group, Header, PUBLIC_KEY_LEN, Position, SIGNATURE_LEN,
    Start, StreamId, verify_signature,
};
use smt_device::Core;
use smt_device_client::{
    AppendOnly, Device, DeviceError, End, LogId, SecretNumber, Statement, is_of_log,
};

use super::Report;

/// The deeds of the device in all its starts.
#[derive(Default)]
pub(crate) struct History {
    epochs: BTreeSet<Epoch>,
    /// The last message that was taken of each peer's epoch in a stream.
    taken: BTreeMap<(StreamId, DeviceId, Epoch), u64>,
    /// Each entry that was sealed, of all starts.
    sealed: BTreeMap<(LogId, u64), Statement>,
}

impl History {
    /// A start of the device, in an epoch that it never had.
    pub(crate) fn begin(&mut self, device: &mut Witness) {
        let epoch = device.own().epoch;
        assert!(self.epochs.insert(epoch), "epoch {} was there before", epoch.0);
        device.taken_before.clone_from(&self.taken);
        device.sealed.clone_from(&self.sealed);
        device.judge_ends();
    }
}

pub(crate) struct Witness {
    core: Box<Core>,
    /// The last counter that each stream has given.
    given: BTreeMap<StreamId, u64>,
    /// The last message that each stream has taken of each peer's epoch, in this start and in
    /// those before.
    taken: BTreeMap<(StreamId, DeviceId, Epoch), u64>,
    taken_before: BTreeMap<(StreamId, DeviceId, Epoch), u64>,
    /// Each entry that was sealed, in this start and in those before.
    sealed: BTreeMap<(LogId, u64), Statement>,
    /// The entries that were appended since the last sealing of their log.
    appended: BTreeMap<LogId, Vec<Statement>>,
    counts: Report,
    signed_ends: Cell<u64>,
}

impl Witness {
    pub(crate) fn new(core: Box<Core>) -> Self {
        let (given, taken, taken_before) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (sealed, appended, counts) = (BTreeMap::new(), BTreeMap::new(), Report::default());
        Self {
            core,
            given,
            taken,
            taken_before,
            sealed,
            appended,
            counts,
            signed_ends: Cell::new(0),
        }
    }

    /// Ends this start of the device.
    pub(crate) fn hand_over(&mut self, history: &mut History, report: &mut Report) {
        history.taken.append(&mut self.taken);
        history.sealed.append(&mut self.sealed);
        report.attested += self.counts.attested;
        report.accepted += self.counts.accepted;
        report.refused += self.counts.refused;
        report.sealed += self.counts.sealed;
        report.signed_ends += self.signed_ends.take();
        self.counts = Report::default();
    }

    /// A message is the next one of its sender's stream, and was not taken in an earlier start.
    fn took(&mut self, stream: StreamId, header: &Header) {
        let place = (stream, header.device, header.epoch);
        let before = self.taken_before.get(&place).copied().unwrap_or_default();
        assert!(header.counter > before, "a message was taken twice over a restart");
        if let Some(last) = self.taken.insert(place, header.counter) {
            assert_eq!(header.counter, last + 1, "a message was taken out of order");
        }
        self.counts.accepted += 1;
    }

    /// A counter comes right after the one before, so none comes twice.
    fn gave(&mut self, attestation: &Attestation, stream: StreamId, message: &[u8]) {
        let header = attestation.claim().unwrap();
        let last = self.given.entry(stream).or_insert(0);
        assert_eq!(header.counter, *last + 1, "a counter was given twice, or left out");
        assert_eq!((header.stream, header.epoch), (stream, self.core.own().epoch));
        *last = header.counter;
        // The attested bytes are those that this call had in private memory.
        assert_eq!(self.core.check(stream, attestation, message).unwrap(), header);
        self.counts.attested += 1;
    }

    /// A message of the host is attested on no stream of a log.
    fn gave_message(&mut self, attestation: &Attestation, stream: StreamId, message: &[u8]) {
        assert!(!is_of_log(stream), "a message was attested on the stream of a log");
        self.gave(attestation, stream, message);
    }

    /// A signature is by the device's key, over what it has attested.
    fn signed(&self, attestation: &Attestation, message: &[u8], signature: &[u8; SIGNATURE_LEN]) {
        let stream = attestation.claim().unwrap().stream;
        assert!(!is_of_log(stream), "an entry was signed as a message");
        let header = attestation.header_bytes();
        assert!(verify_signature(&self.public_key(), &header, message, signature));
    }

    /// An attestation that is issued again was given before.
    fn gave_before(&self, stream: StreamId, again: &Attestation) {
        let given = self.given.get(&stream).copied().unwrap_or_default();
        assert!(again.claim().unwrap().counter <= given, "a counter that was never given");
    }

    /// The last entry of a log that was sealed.
    pub(crate) fn sealed_end(&self, log: LogId) -> End {
        let all = self.sealed.range((log, 0)..=(log, u64::MAX));
        all.last().map_or_else(End::default, |(_, entry)| entry.end())
    }

    /// The device has started with the ends that were sealed last.
    fn judge_ends(&self) {
        let mut ends: BTreeMap<LogId, End> = BTreeMap::new();
        for (log, _) in self.sealed.keys() {
            ends.insert(*log, self.sealed_end(*log));
        }
        let known = (0..).map_while(|place| self.core.log_at(place).unwrap()).collect();
        assert_eq!(ends, known, "a sealed log was rolled back");
    }

    /// An entry is over the last one of its log.
    fn appends(&mut self, attestation: &Attestation, log: LogId, entry: &Statement) {
        self.gave(attestation, log.stream().unwrap(), &entry.encode());
        let sealed = self.sealed_end(log);
        let all = self.appended.entry(log).or_default();
        let last = all.last().map_or(sealed, Statement::end);
        assert_eq!(entry.sequence, last.sequence + 1, "an entry is not the next one");
        assert_eq!(entry.previous, last.digest, "an entry is not the next one");
        all.push(*entry);
    }

    /// A signature is over the sealed end of a log.
    fn signed_end(&self, log: LogId, signature: &[u8; SIGNATURE_LEN]) {
        let sealed = self.sealed.range((log, 0)..=(log, u64::MAX)).last();
        let stream = log.stream().unwrap();
        let counter = self.core.sent(stream).unwrap().unwrap();
        let header = self.core.reissue(stream, counter).unwrap().header_bytes();
        let is_sealed = sealed.is_some_and(|(_, entry)| {
            verify_signature(&self.public_key(), &header, &entry.encode(), signature)
        });
        assert!(is_sealed, "an entry was signed that is not the sealed end of its log");
        self.signed_ends.set(self.signed_ends.get() + 1);
    }

    /// All entries up to an end are sealed, and none of them has a place that was given before.
    fn seals(&mut self, log: LogId, end: End) {
        let entries = self.appended.remove(&log).unwrap_or_default();
        let mut last = self.sealed_end(log);
        for entry in entries {
            assert_eq!(entry.previous, last.digest, "a sealed log does not continue itself");
            let before = self.sealed.insert((log, entry.sequence), entry);
            assert_eq!(before, None, "a sequence number was sealed twice");
            last = entry.end();
        }
        assert_eq!(last, end, "another end was sealed than the last entry");
        self.counts.sealed += 1;
    }

    fn count<T>(&mut self, result: Result<T, DeviceError>) -> Result<T, DeviceError> {
        self.counts.refused += u64::from(result.is_err());
        result
    }
}

impl Device for Witness {
    fn own(&self) -> Start {
        self.core.own()
    }

    fn public_key(&self) -> [u8; PUBLIC_KEY_LEN] {
        self.core.public_key()
    }

    fn open(&mut self, secret: SecretNumber, group: &Group<'_>) -> Result<(), DeviceError> {
        let opened = self.core.open(secret, group);
        self.count(opened)
    }

    fn attest(&mut self, stream: StreamId, message: &[u8]) -> Result<Attestation, DeviceError> {
        let attested = self.core.attest(stream, message);
        if let Ok(attestation) = &attested {
            self.gave_message(attestation, stream, message);
        }
        self.count(attested)
    }

    fn accept(
        &mut self,
        stream: StreamId,
        attestation: &Attestation,
        message: &[u8],
    ) -> Result<Header, DeviceError> {
        let accepted = self.core.accept(stream, attestation, message);
        if let Ok(header) = &accepted {
            self.took(stream, header);
        }
        self.count(accepted)
    }

    fn check(
        &self,
        stream: StreamId,
        attestation: &Attestation,
        message: &[u8],
    ) -> Result<Header, DeviceError> {
        self.core.check(stream, attestation, message)
    }

    fn sign(
        &self,
        stream: StreamId,
        counter: u64,
        message: &[u8],
    ) -> Result<[u8; SIGNATURE_LEN], DeviceError> {
        let signature = self.core.sign(stream, counter, message)?;
        let attestation = self.core.reissue(stream, counter)?;
        self.signed(&attestation, message, &signature);
        Ok(signature)
    }

    fn reissue(&self, stream: StreamId, counter: u64) -> Result<Attestation, DeviceError> {
        let again = self.core.reissue(stream, counter)?;
        self.gave_before(stream, &again);
        Ok(again)
    }

    fn sent(&self, stream: StreamId) -> Result<Option<u64>, DeviceError> {
        self.core.sent(stream)
    }

    fn position(
        &self,
        stream: StreamId,
        device: DeviceId,
    ) -> Result<Option<Position>, DeviceError> {
        self.core.position(stream, device)
    }

    fn vote(
        &mut self,
        stream: StreamId,
        newcomer: Start,
        about: DeviceId,
    ) -> Result<Ballot, DeviceError> {
        let voted = self.core.vote(stream, newcomer, about);
        if let Ok(ballot) = &voted {
            self.gave(&ballot.attestation, stream, &ballot.vote.encode());
        }
        self.count(voted)
    }

    fn admit(
        &mut self,
        stream: StreamId,
        newcomer: Start,
        ballots: &[Ballot],
    ) -> Result<(), DeviceError> {
        let admitted = self.core.admit(stream, newcomer, ballots);
        self.count(admitted)
    }

    fn synchronize(
        &mut self,
        stream: StreamId,
        peer: DeviceId,
        ballots: &[Ballot],
    ) -> Result<(), DeviceError> {
        let learned = self.core.synchronize(stream, peer, ballots);
        self.count(learned)
    }
}

impl AppendOnly for Witness {
    fn log_at(&self, place: u32) -> Result<Option<(LogId, End)>, DeviceError> {
        self.core.log_at(place)
    }

    fn open_log(&mut self, log: LogId) -> Result<(), DeviceError> {
        self.core.open_log(log)
    }

    fn append(&mut self, log: LogId, entry: &Statement) -> Result<Attestation, DeviceError> {
        let appended = self.core.append(log, entry);
        if let Ok(attestation) = &appended {
            self.appends(attestation, log, entry);
        }
        self.count(appended)
    }

    fn discard(&mut self) -> Result<(), DeviceError> {
        let discarded = self.core.discard();
        if discarded.is_ok() {
            self.appended.clear();
        }
        self.count(discarded)
    }

    fn seal(&mut self, ends: &[(LogId, End)]) -> Result<(), DeviceError> {
        let sealed = self.core.seal(ends);
        if sealed.is_ok() {
            let named: BTreeMap<_, _> = ends.iter().copied().collect();
            named.into_iter().for_each(|(log, end)| self.seals(log, end));
        }
        self.count(sealed)
    }

    fn sign_end(&self, log: LogId) -> Result<[u8; SIGNATURE_LEN], DeviceError> {
        let signature = self.core.sign_end(log)?;
        self.signed_end(log, &signature);
        Ok(signature)
    }
}
