// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kernel with its keys, in the caller's process.

use smt_attestation::{
    Attestation, Ballot, DeviceId, Group, GroupSecret, Header, Kernel, Misuse, PUBLIC_KEY_LEN,
    Position, SIGNATURE_LEN, SigningKey, Start, Stream, StreamId,
};

use crate::device::{Device, SecretNumber};
use crate::error::DeviceError;

/// How many secrets a device has at most.
const SECRETS: usize = 64;

/// The attestation kernel with the keys that it needs. All of it is one value without pointers, so
/// the device process can have it in memory of its choice.
pub struct Library<const STREAMS: usize, const PEERS: usize, const RECENT: usize> {
    own: Start,
    kernel: Kernel<STREAMS, PEERS, RECENT>,
    signing_key: SigningKey,
    secrets: [Option<(SecretNumber, GroupSecret)>; SECRETS],
}

impl<const STREAMS: usize, const PEERS: usize, const RECENT: usize>
    Library<STREAMS, PEERS, RECENT>
{
    /// Starts the kernel, whose epoch was never used before ([`Kernel::start`]).
    #[must_use]
    pub fn start(own: Start, signing_key: SigningKey) -> Self {
        let kernel = Kernel::start(own);
        Self { own, kernel, signing_key, secrets: [const { None }; SECRETS] }
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

    fn secret(&self, number: SecretNumber) -> Option<&GroupSecret> {
        self.secrets.iter().flatten().find(|it| it.0 == number).map(|it| &it.1)
    }

    fn stream(&self, id: StreamId) -> Result<&Stream<PEERS, RECENT>, DeviceError> {
        self.kernel.stream(id).ok_or(DeviceError::UnknownStream(id))
    }

    fn stream_mut(&mut self, id: StreamId) -> Result<&mut Stream<PEERS, RECENT>, DeviceError> {
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
        Ok(self.signing_key.sign(self.stream(stream)?, counter, message)?)
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
