// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The device with a record of what its kernel does, where no host can reach.

use std::collections::{BTreeMap, BTreeSet};

use smt_attestation::{
    Attestation, Ballot, DeviceId, Epoch, Group, Header, PUBLIC_KEY_LEN, Position, SIGNATURE_LEN,
    Start, StreamId, verify_signature,
};
use smt_device::Core;
use smt_device_client::{Device, DeviceError, SecretNumber};

use super::Report;

/// The deeds of the device in all its starts.
#[derive(Default)]
pub(crate) struct History {
    epochs: BTreeSet<Epoch>,
    /// The last message that was taken of each peer's epoch in a stream.
    taken: BTreeMap<(StreamId, DeviceId, Epoch), u64>,
}

impl History {
    /// A start of the device, in an epoch that it never had.
    pub(crate) fn begin(&mut self, device: &mut Witness) {
        let epoch = device.own().epoch;
        assert!(self.epochs.insert(epoch), "epoch {} was there before", epoch.0);
        device.taken_before.clone_from(&self.taken);
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
    counts: Report,
}

impl Witness {
    pub(crate) fn new(core: Box<Core>) -> Self {
        let (given, taken, taken_before) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { core, given, taken, taken_before, counts: Report::default() }
    }

    /// Ends this start of the device.
    pub(crate) fn hand_over(&mut self, history: &mut History, report: &mut Report) {
        history.taken.append(&mut self.taken);
        report.attested += self.counts.attested;
        report.accepted += self.counts.accepted;
        report.refused += self.counts.refused;
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

    /// A signature is by the device's key, over what it has attested.
    fn signed(&self, attestation: &Attestation, message: &[u8], signature: &[u8; SIGNATURE_LEN]) {
        let header = attestation.header_bytes();
        assert!(verify_signature(&self.public_key(), &header, message, signature));
    }

    /// An attestation that is issued again was given before.
    fn gave_before(&self, stream: StreamId, again: &Attestation) {
        let given = self.given.get(&stream).copied().unwrap_or_default();
        assert!(again.claim().unwrap().counter <= given, "a counter that was never given");
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
            self.gave(attestation, stream, message);
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
