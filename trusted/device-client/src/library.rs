// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kernel with its keys, in the caller's process.

use smt_attestation::{
    Algorithm, Attestation, Ballot, DeviceId, Epoch, Group, GroupSecret, Header, Kernel, Member,
    Misuse, PUBLIC_KEY_LEN, Position, SIGNATURE_LEN, SigningKey, Start, Stream, StreamId,
};

use crate::device::{AppendOnly, Device, SecretNumber};
use crate::error::{DeviceError, LogMisuse};
use crate::logs::Logs;
use crate::statement::{End, LogId, Statement, is_of_log};

/// How many secrets a device has at most.
const SECRETS: usize = 64;

/// The attestation kernel with the keys that it needs, and the ends of logs. All keys are in one
/// value without pointers, so the device process can have it in memory of its choice.
pub struct Library<const STREAMS: usize, const PEERS: usize, const RECENT: usize> {
    own: Start,
    kernel: Kernel<STREAMS, PEERS, RECENT>,
    signing_key: SigningKey,
    secrets: [Option<(SecretNumber, GroupSecret)>; SECRETS],
    logs: Option<Logs>,
}

impl<const STREAMS: usize, const PEERS: usize, const RECENT: usize>
    Library<STREAMS, PEERS, RECENT>
{
    /// Starts the kernel, whose epoch was never used before ([`Kernel::start`]).
    #[must_use]
    pub fn start(own: Start, signing_key: SigningKey) -> Self {
        let kernel = Kernel::start(own);
        Self { own, kernel, signing_key, secrets: [const { None }; SECRETS], logs: None }
    }

    /// Gives the device a secret, under a number that it does not have yet.
    ///
    /// # Errors
    /// [`Misuse::Full`] for the 65th secret, and for a number that is taken.
    pub fn add_secret(&mut self, number: SecretNumber, secret: GroupSecret) -> Result<(), Misuse> {
        if self.secret(number).is_some() {
            return Err(Misuse::Full);
        }
        let free = self.secrets.iter_mut().find(|slot| slot.is_none()).ok_or(Misuse::Full)?;
        *free = Some((number, secret));
        Ok(())
    }

    /// Has the device remember logs, from the ends on that these have.
    pub fn remember(&mut self, logs: Logs) {
        self.logs = Some(logs);
    }

    /// Takes `end` for the sealed end of a log: a device in its user's process has no memory of its
    /// own, and believes that user.
    ///
    /// # Errors
    /// [`DeviceError::Log`], [`DeviceError::Misuse`].
    pub fn restore_log(&mut self, log: LogId, end: End) -> Result<(), DeviceError> {
        Ok(self.logs_mut()?.restore(log, end)?)
    }

    fn logs(&self) -> Result<&Logs, LogMisuse> {
        self.logs.as_ref().ok_or(LogMisuse::NoMemory)
    }

    fn logs_mut(&mut self) -> Result<&mut Logs, LogMisuse> {
        self.logs.as_mut().ok_or(LogMisuse::NoMemory)
    }

    fn secret(&self, number: SecretNumber) -> Option<&GroupSecret> {
        self.secrets.iter().flatten().find(|it| it.0 == number).map(|it| &it.1)
    }

    fn stream(&self, id: StreamId) -> Result<&Stream<PEERS, RECENT>, DeviceError> {
        self.kernel.stream(id).ok_or(DeviceError::UnknownStream(id))
    }

    /// An open stream on which the host has messages attested and signed. Those of logs are none.
    fn stream_of_messages(&self, id: StreamId) -> Result<&Stream<PEERS, RECENT>, DeviceError> {
        if is_of_log(id) { Err(DeviceError::UnknownStream(id)) } else { self.stream(id) }
    }

    fn stream_mut(&mut self, id: StreamId) -> Result<&mut Stream<PEERS, RECENT>, DeviceError> {
        if is_of_log(id) {
            return Err(DeviceError::UnknownStream(id));
        }
        self.kernel.stream_mut(id).ok_or(DeviceError::UnknownStream(id))
    }
}

impl<const STREAMS: usize, const PEERS: usize, const RECENT: usize> Device
    for Library<STREAMS, PEERS, RECENT>
{
    fn own(&self) -> Start {
        self.own
    }

    fn public_key(&self) -> [u8; PUBLIC_KEY_LEN] {
        self.signing_key.public_key()
    }

    fn open(&mut self, number: SecretNumber, group: &Group<'_>) -> Result<(), DeviceError> {
        if is_of_log(group.stream) {
            return Err(Misuse::Group.into());
        }
        // Not by `secret`: the kernel changes while the secret is read.
        let found = self.secrets.iter().flatten().find(|it| it.0 == number);
        let (_, secret) = found.ok_or(DeviceError::UnknownSecret(number))?;
        Ok(self.kernel.open(secret, group)?)
    }

    fn attest(&mut self, stream: StreamId, message: &[u8]) -> Result<Attestation, DeviceError> {
        Ok(self.stream_mut(stream)?.attest(message)?)
    }

    fn accept(
        &mut self,
        stream: StreamId,
        attestation: &Attestation,
        message: &[u8],
    ) -> Result<Header, DeviceError> {
        Ok(self.stream_mut(stream)?.accept(attestation, message)?)
    }

    fn check(
        &self,
        stream: StreamId,
        attestation: &Attestation,
        message: &[u8],
    ) -> Result<Header, DeviceError> {
        Ok(self.stream(stream)?.check(attestation, message)?)
    }

    fn sign(
        &self,
        stream: StreamId,
        counter: u64,
        message: &[u8],
    ) -> Result<[u8; SIGNATURE_LEN], DeviceError> {
        Ok(self.signing_key.sign(self.stream_of_messages(stream)?, counter, message)?)
    }

    fn reissue(&self, stream: StreamId, counter: u64) -> Result<Attestation, DeviceError> {
        Ok(self.stream(stream)?.reissue(counter)?)
    }

    fn sent(&self, stream: StreamId) -> Result<Option<u64>, DeviceError> {
        Ok(self.kernel.stream(stream).map(Stream::sent))
    }

    fn position(
        &self,
        stream: StreamId,
        device: DeviceId,
    ) -> Result<Option<Position>, DeviceError> {
        Ok(self.stream(stream)?.position(device))
    }

    fn vote(
        &mut self,
        stream: StreamId,
        newcomer: Start,
        about: DeviceId,
    ) -> Result<Ballot, DeviceError> {
        Ok(self.stream_mut(stream)?.vote(newcomer, about)?)
    }

    fn admit(
        &mut self,
        stream: StreamId,
        newcomer: Start,
        ballots: &[Ballot],
    ) -> Result<(), DeviceError> {
        Ok(self.stream_mut(stream)?.admit(newcomer, ballots)?)
    }

    fn synchronize(
        &mut self,
        stream: StreamId,
        peer: DeviceId,
        ballots: &[Ballot],
    ) -> Result<(), DeviceError> {
        Ok(self.stream_mut(stream)?.synchronize(peer, ballots)?)
    }
}

impl<const STREAMS: usize, const PEERS: usize, const RECENT: usize> AppendOnly
    for Library<STREAMS, PEERS, RECENT>
{
    fn log_at(&self, place: u32) -> Result<Option<(LogId, End)>, DeviceError> {
        Ok(self.logs()?.at(place))
    }

    fn open_log(&mut self, log: LogId) -> Result<(), DeviceError> {
        self.logs()?;
        let stream = stream_of(log)?;
        if self.kernel.stream(stream).is_some() {
            return Ok(());
        }
        let found = self.secrets.iter().flatten().find(|it| it.0 == OWN_SECRET);
        let (_, secret) = found.ok_or(DeviceError::UnknownSecret(OWN_SECRET))?;
        let members = [Member { device: self.own.device, epoch: Epoch(1) }];
        let algorithm = Algorithm::HmacSha256;
        Ok(self.kernel.open(secret, &Group { stream, algorithm, quorum: 1, members: &members })?)
    }

    fn append(&mut self, log: LogId, entry: &Statement) -> Result<Attestation, DeviceError> {
        self.logs_mut()?.judge(log, entry)?;
        let id = stream_of(log)?;
        let stream = self.kernel.stream_mut(id).ok_or(DeviceError::UnknownStream(id))?;
        let attestation = stream.attest(&entry.encode())?;
        self.logs_mut()?.push(log, entry)?;
        Ok(attestation)
    }

    fn discard(&mut self) -> Result<(), DeviceError> {
        self.logs_mut()?.discard()
    }

    fn seal(&mut self, ends: &[(LogId, End)]) -> Result<(), DeviceError> {
        self.logs_mut()?.seal(ends)
    }

    fn sign_end(&self, log: LogId) -> Result<[u8; SIGNATURE_LEN], DeviceError> {
        let entry = self.logs()?.sealed(log)?;
        let stream = self.stream(stream_of(log)?)?;
        Ok(self.signing_key.sign(stream, stream.sent(), &entry.encode())?)
    }
}

fn stream_of(log: LogId) -> Result<StreamId, Misuse> {
    log.stream().ok_or(Misuse::Group)
}

/// The secret that no other device has.
const OWN_SECRET: SecretNumber = SecretNumber(0);
