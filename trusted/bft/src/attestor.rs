// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A replica's device: the kernel in this process, or a device that outlives its host.
//!
//! A kernel in this process is killed with the replica, and gives the same attestations when the
//! log is read again. A device that goes on gives no counter twice: what it has given is in the
//! log, but for the last statements, which it issues again.

use std::cell::RefCell;
use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use smt_attestation::{
    Algorithm, Attestation, Ballot, DeviceId, Epoch, GroupSecret, Header, Kind, Member, SigningKey,
    Start, StreamId, Vote,
};
use smt_device_client::{Device, DeviceError, Library, SecretNumber};

use crate::group::Group;

/// A device for groups of up to nine replicas.
type OwnLibrary = Library<1, 8, 64>;
/// Statements that a device in another process has given, and the log has not, at most: as many
/// again are issued again.
pub(crate) const UNLOGGED_MAX: usize = 32;

/// Where a replica's attestations come from.
pub enum OwnDevice {
    /// The kernel in this process. The number of the epoch comes from a counter that only grows.
    Library {
        /// The group's secret.
        secret: GroupSecret,
        /// The start of the device.
        start: Start,
    },
    /// A device that outlives the replica, and has its keys, epoch and counter itself.
    Process {
        /// The connection.
        device: Box<dyn Device>,
        /// The number under which it has the group's secret.
        secret: SecretNumber,
    },
}

impl OwnDevice {
    /// The device and its start.
    pub(crate) fn start(&self) -> Start {
        match self {
            Self::Library { start, .. } => *start,
            Self::Process { device, .. } => device.own(),
        }
    }
}

/// Why a device gives no attestations.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttestorError {
    /// The device or the way to it.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The device has attested what the log has not.
    #[error(
        "the device has attested statements that are not in the log: the log is older than the \
         device's counter. Restart the device: it begins a new epoch, and the replica an empty log"
    )]
    Ahead,
    /// The log has what the device has not attested.
    #[error("the log has statements that this device has not attested in this epoch")]
    Foreign,
}

/// An attestation in the log: header and MAC.
type Halves = [[u8; 32]; 2];

/// Something that a device has given, for the log.
#[derive(Deserialize, Serialize)]
pub(crate) enum Given {
    /// The attestation of a statement.
    Statement(Halves),
    /// A vote with the epoch that the device has filled in; nothing if it had no vote.
    Vote(Option<(Halves, u64)>),
}

/// The device of a replica, in its group's stream.
pub(crate) struct Attestor {
    device: Box<dyn Device>,
    stream: StreamId,
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
    reissues: u64,
    /// Why the device gave nothing. A question finds it too.
    failure: RefCell<Option<AttestorError>>,
}

impl Attestor {
    /// Opens the group's stream.
    pub(crate) fn open(group: &Group, own: OwnDevice) -> Result<Self, DeviceError> {
        let members = (0..).zip(&group.epochs);
        let members = members.map(|(device, epoch)| (DeviceId(device), Epoch(*epoch)));
        let members: Vec<Member> =
            members.map(|(device, epoch)| Member { device, epoch }).collect();
        let stream = StreamId(group.stream);
        let of_device = smt_attestation::Group {
            stream,
            algorithm: Algorithm::HmacSha256,
            quorum: u32::try_from(group.quorum()).unwrap_or(u32::MAX),
            members: &members,
        };
        let mut attestor = match own {
            OwnDevice::Library { secret, start } => {
                // No replica has a statement signed, so the key signs nothing.
                let mut library = OwnLibrary::start(start, SigningKey::new(&[0; 32]));
                library.add_secret(SecretNumber(0), secret)?;
                library.open(SecretNumber(0), &of_device)?;
                Self::new(Box::new(library), stream, None)
            }
            OwnDevice::Process { mut device, secret } => {
                match device.open(secret, &of_device) {
                    // The replica was killed, and its device was not.
                    Err(DeviceError::Misuse(smt_attestation::Misuse::StreamExists)) => {}
                    opened => opened?,
                }
                Self::new(device, stream, Some(Vec::new()))
            }
        };
        #[cfg(feature = "sim")]
        if let Some(most) = group.unlogged_max {
            attestor.unlogged_max = most;
        }
        attestor.given = attestor.device.sent(stream)?.unwrap_or(0);
        Ok(attestor)
    }

    fn new(device: Box<dyn Device>, stream: StreamId, unlogged: Option<Vec<Given>>) -> Self {
        let (counter, given, replayed) = (0, 0, VecDeque::new());
        let (reissues, failure) = (0, RefCell::default());
        let unlogged_max = UNLOGGED_MAX;
        Self { device, stream, counter, replayed, given, unlogged, unlogged_max, reissues, failure }
    }

    /// Whether the device outlives the replica.
    pub(crate) fn outlives(&self) -> bool {
        self.unlogged.is_some()
    }

    /// Whether a device of the group has attested this.
    pub(crate) fn check(&self, attestation: &Attestation, body: &[u8]) -> Option<Header> {
        match self.device.check(self.stream, attestation, body) {
            Ok(header) => Some(header),
            // No correct replica says anything that long.
            Err(DeviceError::Refused(_) | DeviceError::TooLong(_)) => None,
            Err(error) => self.fail(AttestorError::Device(error)),
        }
    }

    /// Has a statement attested, or gets the attestation that it had before.
    pub(crate) fn attest(&mut self, body: &[u8]) -> Option<Attestation> {
        let logged = self.replayed.pop_front();
        let is_logged = logged.is_some();
        let before = match logged {
            Some(Given::Statement(halves)) => Some(whole(&halves)),
            Some(Given::Vote(_)) => return self.fail(AttestorError::Foreign),
            None => self.reissued()?,
        };
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
        if !is_logged {
            self.note(Given::Statement(halves(&attestation)));
        }
        Some(attestation)
    }

    /// Has the device vote, or gets the vote that it had before.
    pub(crate) fn vote(&mut self, newcomer: Start, about: DeviceId) -> Option<Ballot> {
        let logged = self.replayed.pop_front();
        let is_logged = logged.is_some();
        let ballot = match logged {
            Some(Given::Vote(vote)) => vote.map(|(halves, epoch)| Ballot {
                vote: Vote { newcomer, peer: about, peer_epoch: Epoch(epoch) },
                attestation: whole(&halves),
            }),
            Some(Given::Statement(_)) => return self.fail(AttestorError::Foreign),
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
        ballot
    }

    /// Admits a peer in its new epoch. Too few votes, or an epoch that is admitted, change nothing.
    pub(crate) fn admit(&mut self, newcomer: Start, ballots: &[Ballot]) {
        let admitted = self.device.admit(self.stream, newcomer, ballots);
        self.look(admitted);
    }

    /// Learns where a peer's stream stands. Too few votes change nothing.
    pub(crate) fn synchronize(&mut self, peer: DeviceId, ballots: &[Ballot]) {
        let known = self.device.synchronize(self.stream, peer, ballots);
        self.look(known);
    }

    /// Where the device has a peer's stream.
    #[cfg(feature = "broken")]
    pub(crate) fn position(&self, peer: DeviceId) -> Option<smt_attestation::Position> {
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
    pub(crate) fn take_unlogged(&mut self) -> Vec<Given> {
        self.unlogged.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Whether nothing more may be said before the log has what was given.
    pub(crate) fn is_ahead_of_log(&self) -> bool {
        self.unlogged.as_ref().is_some_and(|it| it.len() >= self.unlogged_max)
    }

    /// How many statements the device has issued again.
    pub(crate) fn reissues(&self) -> u64 {
        self.reissues
    }

    /// Why the device gave nothing, once. The replica must end.
    pub(crate) fn failure(&mut self) -> Option<AttestorError> {
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
        let votes = (1..=newest).rev().take(UNLOGGED_MAX).map(|epoch| Vote {
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
        self.failure.borrow_mut().get_or_insert(error);
        None
    }
}

fn halves(attestation: &Attestation) -> Halves {
    [attestation.header_bytes(), attestation.mac()]
}

fn whole(halves: &Halves) -> Attestation {
    Attestation::new(&halves[0], &halves[1])
}
