// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A device that does not answer for a while.

use smt_attestation::{
    Attestation, Ballot, DeviceId, Group, Header, PUBLIC_KEY_LEN, Position, SIGNATURE_LEN, Start,
    StreamId,
};
use smt_device_client::{Device, DeviceError, SecretNumber};

/// A device whose `accept` fails on the calls that are named.
pub(crate) struct Faulty<D> {
    pub(crate) device: D,
    /// Calls of `accept` from now on that are answered before one is not.
    pub(crate) fails_after: Option<u32>,
}

impl<D: Device> Faulty<D> {
    fn fails(&mut self) -> bool {
        let fails = self.fails_after == Some(0);
        self.fails_after = self.fails_after.and_then(|left| left.checked_sub(1));
        fails
    }
}

impl<D: Device> Device for Faulty<D> {
    fn own(&self) -> Start {
        self.device.own()
    }

    fn public_key(&self) -> [u8; PUBLIC_KEY_LEN] {
        self.device.public_key()
    }

    fn open(&mut self, secret: SecretNumber, group: &Group<'_>) -> Result<(), DeviceError> {
        self.device.open(secret, group)
    }

    fn attest(&mut self, stream: StreamId, message: &[u8]) -> Result<Attestation, DeviceError> {
        self.device.attest(stream, message)
    }

    fn accept(
        &mut self,
        stream: StreamId,
        attestation: &Attestation,
        message: &[u8],
    ) -> Result<Header, DeviceError> {
        if self.fails() {
            return Err(DeviceError::UnknownStream(stream));
        }
        self.device.accept(stream, attestation, message)
    }

    fn check(
        &self,
        stream: StreamId,
        attestation: &Attestation,
        message: &[u8],
    ) -> Result<Header, DeviceError> {
        self.device.check(stream, attestation, message)
    }

    fn sign(
        &self,
        stream: StreamId,
        counter: u64,
        message: &[u8],
    ) -> Result<[u8; SIGNATURE_LEN], DeviceError> {
        self.device.sign(stream, counter, message)
    }

    fn reissue(&self, stream: StreamId, counter: u64) -> Result<Attestation, DeviceError> {
        self.device.reissue(stream, counter)
    }

    fn sent(&self, stream: StreamId) -> Result<Option<u64>, DeviceError> {
        self.device.sent(stream)
    }

    fn position(
        &self,
        stream: StreamId,
        device: DeviceId,
    ) -> Result<Option<Position>, DeviceError> {
        self.device.position(stream, device)
    }

    fn vote(
        &mut self,
        stream: StreamId,
        newcomer: Start,
        about: DeviceId,
    ) -> Result<Ballot, DeviceError> {
        self.device.vote(stream, newcomer, about)
    }

    fn admit(
        &mut self,
        stream: StreamId,
        newcomer: Start,
        ballots: &[Ballot],
    ) -> Result<(), DeviceError> {
        self.device.admit(stream, newcomer, ballots)
    }

    fn synchronize(
        &mut self,
        stream: StreamId,
        peer: DeviceId,
        ballots: &[Ballot],
    ) -> Result<(), DeviceError> {
        self.device.synchronize(stream, peer, ballots)
    }
}
