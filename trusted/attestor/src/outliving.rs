// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A device that outlives its host, as a process of its own does.

use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;

use smt_attestation::{
    Attestation, Ballot, DeviceId, Group, GroupSecret, Header, PUBLIC_KEY_LEN, Position,
    SIGNATURE_LEN, SigningKey, Start, StreamId,
};
use smt_device_client::{Device, DeviceError, SecretNumber};

use crate::attestor::OwnLibrary;
use crate::own_device::OwnDevice;

/// A connection to a device in memory. Its clones are connections to the same one.
#[derive(Clone)]
pub struct OutlivingDevice {
    library: Rc<RefCell<OwnLibrary>>,
    /// How many requests more find no device.
    absent: Rc<Cell<u32>>,
}

impl OutlivingDevice {
    /// A device that has the group's secret under number 1.
    #[must_use]
    pub fn start(own: Start, secret: GroupSecret, signing_key: SigningKey) -> Self {
        let mut library = OwnLibrary::start(own, signing_key);
        // It has room for 64 secrets.
        let _ = library.add_secret(SecretNumber(1), secret);
        Self { library: Rc::new(RefCell::new(library)), absent: Rc::default() }
    }

    /// Has the next requests find a device that has ended.
    pub fn end_for(&self, requests: u32) {
        self.absent.set(requests);
    }

    fn library(&self) -> Result<RefMut<'_, OwnLibrary>, DeviceError> {
        match self.absent.get().checked_sub(1) {
            None => Ok(self.library.borrow_mut()),
            Some(absent) => {
                self.absent.set(absent);
                Err(DeviceError::Ended)
            }
        }
    }

    /// A connection, for a replica.
    #[must_use]
    pub fn own_device(&self) -> OwnDevice {
        OwnDevice::Process { device: Box::new(self.clone()), secret: SecretNumber(1) }
    }
}

impl Device for OutlivingDevice {
    fn own(&self) -> Start {
        self.library.borrow().own()
    }

    fn public_key(&self) -> [u8; PUBLIC_KEY_LEN] {
        self.library.borrow().public_key()
    }

    fn open(&mut self, secret: SecretNumber, group: &Group<'_>) -> Result<(), DeviceError> {
        self.library()?.open(secret, group)
    }

    fn attest(&mut self, stream: StreamId, message: &[u8]) -> Result<Attestation, DeviceError> {
        self.library()?.attest(stream, message)
    }

    fn accept(
        &mut self,
        stream: StreamId,
        attestation: &Attestation,
        message: &[u8],
    ) -> Result<Header, DeviceError> {
        self.library()?.accept(stream, attestation, message)
    }

    fn check(
        &self,
        stream: StreamId,
        attestation: &Attestation,
        message: &[u8],
    ) -> Result<Header, DeviceError> {
        self.library()?.check(stream, attestation, message)
    }

    fn sign(
        &self,
        stream: StreamId,
        counter: u64,
        message: &[u8],
    ) -> Result<[u8; SIGNATURE_LEN], DeviceError> {
        self.library()?.sign(stream, counter, message)
    }

    fn reissue(&self, stream: StreamId, counter: u64) -> Result<Attestation, DeviceError> {
        self.library()?.reissue(stream, counter)
    }

    fn sent(&self, stream: StreamId) -> Result<Option<u64>, DeviceError> {
        self.library()?.sent(stream)
    }

    fn position(
        &self,
        stream: StreamId,
        device: DeviceId,
    ) -> Result<Option<Position>, DeviceError> {
        self.library()?.position(stream, device)
    }

    fn vote(
        &mut self,
        stream: StreamId,
        newcomer: Start,
        about: DeviceId,
    ) -> Result<Ballot, DeviceError> {
        self.library()?.vote(stream, newcomer, about)
    }

    fn admit(
        &mut self,
        stream: StreamId,
        newcomer: Start,
        ballots: &[Ballot],
    ) -> Result<(), DeviceError> {
        self.library()?.admit(stream, newcomer, ballots)
    }

    fn synchronize(
        &mut self,
        stream: StreamId,
        peer: DeviceId,
        ballots: &[Ballot],
    ) -> Result<(), DeviceError> {
        self.library()?.synchronize(stream, peer, ballots)
    }
}
