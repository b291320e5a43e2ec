// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A replica of any system.

use smt_bft::{Output, Replica};
use smt_device_client::DeviceError;
use smt_replica::Service;

/// The member from which bytes come, as its session proves it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Sender {
    /// A replica.
    Replica(u32),
    /// A client. Requests name and sign their client themselves.
    Client,
}

/// A replica as a state machine, with its device below it. It may have to stay in the thread that
/// made it.
pub trait Machine {
    /// Why it must end.
    type Error;

    /// Takes a message.
    fn receive(&mut self, from: Sender, bytes: &[u8]);

    /// Time passes.
    fn tick(&mut self);

    /// Works on what has come, and takes all that is to be sent, in order.
    ///
    /// # Errors
    /// The device has failed, for example, and the replica must end.
    fn outputs(&mut self) -> Result<Vec<Output>, Self::Error>;
}

impl<M: Machine + ?Sized> Machine for Box<M> {
    type Error = M::Error;

    fn receive(&mut self, from: Sender, bytes: &[u8]) {
        M::receive(self, from, bytes);
    }

    fn tick(&mut self) {
        M::tick(self);
    }

    fn outputs(&mut self) -> Result<Vec<Output>, M::Error> {
        M::outputs(self)
    }
}

/// A replica of `smt-bft` without a log.
impl<S: Service> Machine for Replica<S> {
    type Error = DeviceError;

    fn receive(&mut self, _: Sender, bytes: &[u8]) {
        // All that matters is attested or signed.
        Self::receive(self, bytes);
    }

    fn tick(&mut self) {
        Self::tick(self);
    }

    fn outputs(&mut self) -> Result<Vec<Output>, DeviceError> {
        Ok(Self::outputs(self))
    }
}
