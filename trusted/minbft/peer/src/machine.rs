// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A replica of either system.

use smt_bft::{Output, Replica, Service};
use smt_device_client::DeviceError;

/// The member from which bytes come, as its session proves it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Sender {
    /// A replica.
    Replica(u32),
    /// A client. Requests name and sign their client themselves.
    Client,
}

/// A replica as a state machine.
pub trait Machine {
    /// Takes a message.
    fn receive(&mut self, from: Sender, bytes: &[u8]);

    /// Time passes.
    fn tick(&mut self);

    /// All that is to be sent, in order.
    ///
    /// # Errors
    /// The device has failed, and the replica must end.
    fn outputs(&mut self) -> Result<Vec<Output>, DeviceError>;
}

impl<S: Service> Machine for Replica<S> {
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
