// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A device that outlives its host, as a process of its own does.

use std::cell::RefCell;
use std::rc::Rc;

use smt_attestation::{
    Attestation, Ballot, DeviceId, Group, GroupSecret, Header, PUBLIC_KEY_LEN, Position,
    SIGNATURE_LEN, SigningKey, Start, StreamId,
};
use smt_device_client::{Device, DeviceError, Library, SecretNumber};

use crate::own_device::OwnDevice;

/// A connection to a device in memory. Its clones are connections to the same one.
#[derive(Clone)]
pub struct OutlivingDevice(Rc<RefCell<Library<1, 8, 64>>>);

impl OutlivingDevice {
    /// A device that has the group's secret under number 1.
    #[must_use]
    pub fn start(own: Start, secret: GroupSecret, signing_key: SigningKey) -> Self {
        let mut library = Library::start(own, signing_key);
        // It has room for 64 secrets.
        let _ = library.add_secret(SecretNumber(1), secret);
        Self(Rc::new(RefCell::new(library)))
    }

    /// A connection, for a replica.
    #[must_use]
    pub fn own_device(&self) -> OwnDevice {
        OwnDevice::Process { device: Box::new(self.clone()), secret: SecretNumber(1) }
    }
}

impl Device for OutlivingDevice {
    fn own(&self) -> Start {
        self.0.borrow().own()
    }

    fn public_key(&self) -> [u8; PUBLIC_KEY_LEN] {
        self.0.borrow().public_key()
    }

    fn open(&mut self, secret: SecretNumber, group: &Group<'_>) -> Result<(), DeviceError> {
        self.0.borrow_mut().open(secret, group)
    }

    fn attest(&mut self, stream: StreamId, message: &[u8]) -> Result<Attestation, DeviceError> {
        self.0.borrow_mut().attest(stream, message)
    }

    fn accept(
        &mut self,
        stream: StreamId,
        attestation: &Attestation,
        message: &[u8],
    ) -> Result<Header, DeviceError> {
        self.0.borrow_mut().accept(stream, attestation, message)
    }

    fn check(
        &self,
        stream: StreamId,
        attestation: &Attestation,
        message: &[u8],
    ) -> Result<Header, DeviceError> {
        self.0.borrow().check(stream, attestation, message)
    }

    fn sign(
        &self,
        stream: StreamId,
        counter: u64,
        message: &[u8],
    ) -> Result<[u8; SIGNATURE_LEN], DeviceError> {
        self.0.borrow().sign(stream, counter, message)
    }

    fn reissue(&self, stream: StreamId, counter: u64) -> Result<Attestation, DeviceError> {
        self.0.borrow().reissue(stream, counter)
    }

    fn sent(&self, stream: StreamId) -> Result<Option<u64>, DeviceError> {
        self.0.borrow().sent(stream)
    }

    fn position(
        &self,
        stream: StreamId,
        device: DeviceId,
    ) -> Result<Option<Position>, DeviceError> {
        self.0.borrow().position(stream, device)
    }

    fn vote(
        &mut self,
        stream: StreamId,
        newcomer: Start,
        about: DeviceId,
    ) -> Result<Ballot, DeviceError> {
        self.0.borrow_mut().vote(stream, newcomer, about)
    }

    fn admit(
        &mut self,
        stream: StreamId,
        newcomer: Start,
        ballots: &[Ballot],
    ) -> Result<(), DeviceError> {
        self.0.borrow_mut().admit(stream, newcomer, ballots)
    }

    fn synchronize(
        &mut self,
        stream: StreamId,
        peer: DeviceId,
        ballots: &[Ballot],
    ) -> Result<(), DeviceError> {
        self.0.borrow_mut().synchronize(stream, peer, ballots)
    }
}
