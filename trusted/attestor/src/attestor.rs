// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A replica's device in its group's stream.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use smt_attestation::{
    Attestation, Ballot, DeviceId, Epoch, Group, Header, Kind, SigningKey, Start, StreamId, Vote,
};
use smt_device_client::{Claimed, Device, DeviceError, Library, SecretNumber};

use crate::attested::Attested;
use crate::changes::Changes;
use crate::error::AttestorError;
use crate::given::{Given, SignatureHalves, halves, whole};
use crate::own_device::OwnDevice;

/// A device for groups of up to nine replicas.
pub(crate) type OwnLibrary = Library<1, 8, REISSUED_MAX>;
/// The last statements of a device that it issues again.
pub const REISSUED_MAX: usize = 64;
/// Statements that a device in another process has given, and the log has not, at most, before the
/// replica stops. The next input's come to these: all have to be among those issued again.
pub const UNLOGGED_MAX: usize = 32;
/// Epochs of a member that a vote may state which is issued again: the newest.
const STATED_EPOCHS_MAX: usize = 32;

/// The device in a snapshot of its replica.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct AttestorSnapshot {
    counter: u64,
    /// Nothing for a device that outlives the replica.
    changes: Changes,
}

/// The device of a replica, in its group's stream.
pub struct Attestor {
    device: Box<dyn Device>,
    stream: StreamId,
    /// Votes that admit a peer.
    quorum: usize,
    /// The counter of the replica's last statement.
    counter: u64,
    /// From the log: given, and not asked for again yet.
    replayed: VecDeque<Given>,
    /// The counter that the device had given when the replica started. 0 for a kernel in this
    /// process, which starts with the replica.
    given: u64,
    /// Given, and not in the log yet. A kernel in this process needs none.
    unlogged: Option<Vec<Given>>,
    unlogged_max: usize,
    /// The things that a kernel in this process was told of its peers.
    changes: Changes,
    reissues: u64,
    /// Why the device gave nothing. A question finds it too.
    failure: RefCell<Option<AttestorError>>,
    /// Nothing more is attested: a check that failed may have changed what the replica says.
    has_failed: Cell<bool>,
}

impl Attestor {
    /// Opens the group's stream.
    ///
    /// # Errors
    /// Those of [`Device::open`].
    pub fn open(group: &Group<'_>, own: OwnDevice) -> Result<Self, DeviceError> {
        let stream = group.stream;
        let mut attestor = match own {
            OwnDevice::Library { secret, start, signing_key } => {
                // Without a key no statement is signed, and the key signs nothing.
                let signing_key = signing_key.map_or_else(|| SigningKey::new(&[0; 32]), |it| *it);
                let mut library = OwnLibrary::start(start, signing_key);
                library.add_secret(SecretNumber(0), secret)?;
                library.open(SecretNumber(0), group)?;
                Self::new(Box::new(library), group, None)
            }
            OwnDevice::Process { mut device, secret } => {
                match device.open(secret, group) {
                    // The replica was killed, and its device was not.
                    Err(DeviceError::Misuse(smt_attestation::Misuse::StreamExists)) => {}
                    opened => opened?,
                }
                Self::new(device, group, Some(Vec::new()))
            }
        };
        attestor.given = attestor.device.sent(stream)?.unwrap_or(0);
        Ok(attestor)
    }

    fn new(device: Box<dyn Device>, group: &Group<'_>, unlogged: Option<Vec<Given>>) -> Self {
        Self {
            device,
            stream: group.stream,
            quorum: group.quorum as usize,
            counter: 0,
            replayed: VecDeque::new(),
            given: 0,
            unlogged,
            unlogged_max: UNLOGGED_MAX,
            changes: Changes::default(),
            reissues: 0,
            failure: RefCell::default(),
            has_failed: Cell::default(),
        }
    }

    /// The same for a replica without a log, which does not come back once it is killed.
    #[must_use]
    pub fn without_log(mut self) -> Self {
        self.unlogged = None;
        self
    }

    /// How far the device may be ahead of the log, if that is not to be as for users.
    #[cfg(feature = "model")]
    pub fn stop_after(&mut self, unlogged_max: usize) {
        self.unlogged_max = unlogged_max;
    }

    /// Whether the log has to have what the device gives: it outlives the replica, which has a log.
    pub fn outlives(&self) -> bool {
        self.unlogged.is_some()
    }

    /// Whether a device of the group has attested this.
    pub fn check(&self, attestation: &Attestation, body: &[u8]) -> Option<Header> {
        self.header_of(self.device.check(self.stream, attestation, body))
    }

    /// The same for each of several messages. A device in another process works on them as a batch.
    pub fn check_all(&self, all: &[&Attested]) -> Vec<Option<Header>> {
        let claims = all.iter();
        let claims = claims.map(|it| Claimed { attestation: it.attestation(), message: &it.body });
        let claims: Vec<_> = claims.collect();
        let checked = match self.device.check_all(self.stream, &claims) {
            Ok(checked) => checked,
            Err(error) => vec![Err(error)],
        };
        let mut headers = checked.into_iter().map(|it| self.header_of(it));
        all.iter().map(|_| headers.next().flatten()).collect()
    }

    fn header_of(&self, checked: Result<Header, DeviceError>) -> Option<Header> {
        match checked {
            Ok(header) => Some(header),
            // No correct replica says anything that long.
            Err(DeviceError::Refused(_) | DeviceError::PeerTooLong(_)) => None,
            Err(error) => self.fail(AttestorError::Device(error)),
        }
    }

    /// Has a statement attested, or gets the attestation that it had before. Nothing if the device
    /// fails, or has failed ([`Attestor::failure`]).
    pub fn attest(&mut self, body: &[u8]) -> Option<Attestation> {
        if self.has_failed.get() {
            return None;
        }
        let logged = self.replayed.pop_front();
        let is_logged = logged.is_some();
        let before = match logged {
            Some(Given::Statement(halves)) => Some(whole(&halves)),
            Some(Given::Vote(_) | Given::Signed(..)) => return self.fail(AttestorError::Foreign),
            None => self.reissued()?,
        };
        let attestation = self.known_or_new(before, body)?;
        if !is_logged {
            self.note(Given::Statement(halves(&attestation)));
        }
        Some(attestation)
    }

    /// Has a statement attested and signed, or gets what it had before. Nothing if the device
    /// fails, or has failed ([`Attestor::failure`]).
    pub fn attest_signed(&mut self, body: &[u8]) -> Option<(Attestation, SignatureHalves)> {
        if self.has_failed.get() {
            return None;
        }
        let (before, signature) = match self.replayed.pop_front() {
            Some(Given::Signed(halves, signature)) => (Some(whole(&halves)), Some(signature)),
            Some(_) => return self.fail(AttestorError::Foreign),
            None => (self.reissued()?, None),
        };
        let attestation = self.known_or_new(before, body)?;
        if let Some(signature) = signature {
            return Some((attestation, signature));
        }
        let counter = attestation.claim().map_or(0, |it| it.counter);
        let signature = match self.device.sign(self.stream, counter, body) {
            Ok(signature) => signature,
            Err(error) => return self.fail(AttestorError::Device(error)),
        };
        let mut two = [[0; 32]; 2];
        two[0].copy_from_slice(&signature[..32]);
        two[1].copy_from_slice(&signature[32..]);
        self.note(Given::Signed(halves(&attestation), two));
        Some((attestation, two))
    }

    /// The attestation that a statement had before, or a new one.
    fn known_or_new(&mut self, before: Option<Attestation>, body: &[u8]) -> Option<Attestation> {
        let attestation = match before {
            Some(attestation) => match self.check(&attestation, body) {
                Some(header) if header.counter == self.counter + 1 && self.has_given() => {
                    attestation
                }
                _ => return self.fail(AttestorError::Foreign),
            },
            None => match self.device.attest(self.stream, body) {
                Ok(attestation) => attestation,
                Err(error) => return self.fail(AttestorError::Device(error)),
            },
        };
        self.counter += 1;
        Some(attestation)
    }

    /// Has the device vote, or gets the vote that it had before. Nothing if it has no vote, fails
    /// or has failed ([`Attestor::failure`]).
    pub fn vote(&mut self, newcomer: Start, about: DeviceId) -> Option<Ballot> {
        if self.has_failed.get() {
            return None;
        }
        let logged = self.replayed.pop_front();
        let is_logged = logged.is_some();
        let ballot = match logged {
            Some(Given::Vote(vote)) => vote.map(|(halves, epoch)| Ballot {
                vote: Vote { newcomer, peer: about, peer_epoch: Epoch(epoch) },
                attestation: whole(&halves),
            }),
            Some(Given::Statement(_) | Given::Signed(..)) => {
                return self.fail(AttestorError::Foreign);
            }
            None => match self.reissued()? {
                Some(attestation) => self.ballot_of(attestation, newcomer, about),
                None => match self.device.vote(self.stream, newcomer, about) {
                    Ok(ballot) => Some(ballot),
                    // It does not know where that peer stands.
                    Err(DeviceError::Misuse(_)) => None,
                    Err(error) => return self.fail(AttestorError::Device(error)),
                },
            },
        };
        if !is_logged {
            let noted = ballot.map(|it| (halves(&it.attestation), it.vote.peer_epoch.0));
            self.note(Given::Vote(noted));
        }
        self.counter += u64::from(ballot.is_some());
        if ballot.is_some() && !self.outlives() {
            self.changes.voted(newcomer);
        }
        ballot
    }

    /// Admits a peer in its new epoch. Too few votes, or an epoch that is admitted, change nothing.
    pub fn admit(&mut self, newcomer: Start, ballots: &[Ballot]) {
        let admitted = self.device.admit(self.stream, newcomer, ballots);
        if admitted.is_ok() && !self.outlives() {
            self.changes.admitted(newcomer, ballots, self.quorum);
        }
        self.look(admitted);
    }

    /// Learns where a peer's stream stands. Too few votes change nothing.
    pub fn synchronize(&mut self, peer: DeviceId, ballots: &[Ballot]) {
        let known = self.device.synchronize(self.stream, peer, ballots);
        if known.is_ok() && !self.outlives() {
            self.changes.synchronized(peer, ballots);
        }
        self.look(known);
    }

    /// The counter of the last statement.
    #[must_use]
    pub fn counter(&self) -> u64 {
        self.counter
    }

    /// All that the next start of the replica must know of its device.
    #[must_use]
    pub fn snapshot(&self) -> AttestorSnapshot {
        AttestorSnapshot { counter: self.counter, changes: self.changes.clone() }
    }

    /// Takes over a snapshot, before anything was attested.
    ///
    /// # Errors
    /// The device has not given as much, or fails.
    pub fn restore(&mut self, snapshot: AttestorSnapshot) -> Result<(), AttestorError> {
        if !self.outlives() {
            snapshot.changes.tell(&mut *self.device, self.stream)?;
            self.changes = snapshot.changes;
            self.counter = self.device.sent(self.stream)?.unwrap_or(0);
        }
        self.begin_at(snapshot.counter)
    }

    /// Begins behind the statements that came before a snapshot.
    ///
    /// # Errors
    /// The device has not given as many, or more, or fails.
    pub fn begin_at(&mut self, counter: u64) -> Result<(), AttestorError> {
        if (self.outlives() && self.given < counter) || self.counter > counter {
            return Err(AttestorError::Foreign);
        }
        // A kernel has no other way to a counter than through all before it.
        let missing = if self.outlives() { 0 } else { counter - self.counter };
        for _ in 0..missing {
            self.device.attest(self.stream, &[])?;
        }
        self.counter = counter;
        Ok(())
    }

    /// Where the device has a peer's stream.
    #[cfg(feature = "model")]
    pub fn position(&self, peer: DeviceId) -> Option<smt_attestation::Position> {
        self.device.position(self.stream, peer).ok().flatten()
    }

    /// Gives what the log has of the device, before the inputs that it follows from are taken.
    pub(crate) fn replay(&mut self, given: Vec<Given>) {
        self.replayed.extend(given);
    }

    /// All inputs of the log were taken: now the device must have given as much as it has.
    pub(crate) fn finish_replay(&mut self) {
        if self.outlives() && (self.counter < self.given || !self.replayed.is_empty()) {
            let _ = self.fail::<()>(AttestorError::Ahead);
        }
    }

    /// Takes all that was given and is not in the log yet.
    pub fn take_unlogged(&mut self) -> Vec<Given> {
        self.unlogged.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Whether something was given that is not in the log yet.
    pub(crate) fn has_unlogged(&self) -> bool {
        self.unlogged.as_ref().is_some_and(|it| !it.is_empty())
    }

    /// The log is not that of this device.
    pub(crate) fn refuse_log(&self) {
        let _ = self.fail::<()>(AttestorError::Foreign);
    }

    /// Whether nothing more may be said before the log has what was given. A vote that the device
    /// did not have took no counter, and need not be issued again.
    pub fn is_ahead_of_log(&self) -> bool {
        let counts = |it: &&Given| !matches!(it, Given::Vote(None));
        self.unlogged
            .as_ref()
            .is_some_and(|it| it.iter().filter(counts).count() >= self.unlogged_max)
    }

    /// How many statements the device has issued again.
    pub fn reissues(&self) -> u64 {
        self.reissues
    }

    /// Why the device gave nothing, once. The replica must end: nothing more is attested.
    pub fn failure(&mut self) -> Option<AttestorError> {
        self.failure.get_mut().take()
    }

    /// The device's next attestation, if it had given one before the replica was killed. The outer
    /// `None` is a failure.
    fn reissued(&mut self) -> Option<Option<Attestation>> {
        if !self.outlives() || !self.has_given() {
            return Some(None);
        }
        match self.device.reissue(self.stream, self.counter + 1) {
            Ok(attestation) => {
                self.reissues += 1;
                Some(Some(attestation))
            }
            Err(DeviceError::Misuse(_)) => self.fail(AttestorError::Ahead),
            Err(error) => self.fail(AttestorError::Device(error)),
        }
    }

    /// The ballot that has this attestation, if it is of this vote. The device has filled in the
    /// epoch of `about`, which is the one that it knows or was so before.
    fn ballot_of(
        &self,
        attestation: Attestation,
        newcomer: Start,
        about: DeviceId,
    ) -> Option<Ballot> {
        let header = attestation.claim().filter(|it| it.kind == Kind::Vote)?;
        let own = self.device.own();
        let newest = match about == own.device {
            true => own.epoch.0,
            false => self.device.position(self.stream, about).ok()??.epoch.0,
        };
        let votes = (1..=newest).rev().take(STATED_EPOCHS_MAX).map(|epoch| Vote {
            newcomer,
            peer: about,
            peer_epoch: Epoch(epoch),
        });
        let mut ballots = votes.map(|vote| Ballot { vote, attestation });
        ballots.find(|it| self.check(&attestation, &it.vote.encode()) == Some(header))
    }

    fn note(&mut self, given: Given) {
        if let Some(unlogged) = &mut self.unlogged {
            unlogged.push(given);
        }
    }

    /// Whether the device had given its next counter before the replica was killed.
    fn has_given(&self) -> bool {
        self.counter < self.given
    }

    fn look(&self, done: Result<(), DeviceError>) {
        match done {
            Ok(()) | Err(DeviceError::Refused(_) | DeviceError::Misuse(_)) => {}
            Err(error) => {
                let _ = self.fail::<()>(AttestorError::Device(error));
            }
        }
    }

    fn fail<T>(&self, error: AttestorError) -> Option<T> {
        // The first one is the cause.
        if !self.has_failed.replace(true) {
            *self.failure.borrow_mut() = Some(error);
        }
        None
    }
}
