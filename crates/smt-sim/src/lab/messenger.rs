// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The interface that all transports have in common: messages go in here and come out there.

use smt_proto::{Statistics, Time};

use crate::net::packet::HostId;
use crate::net::world::Host;

/// A host that carries messages.
pub trait Messenger: Host {
    /// Prepares for sending to these hosts; called once, at the beginning.
    fn prepare(&mut self, now: Time, peers: &[HostId]);
    /// Whether everything is prepared: sessions are there.
    fn is_ready(&self) -> bool;
    /// Sends a message. Returns its name, by which the receiver knows it too; nothing if too many
    /// wait already.
    fn send(&mut self, now: Time, to: HostId, length: u32) -> Option<u64>;
    /// Returns its endpoint's counts, if it has an endpoint.
    fn statistics(&self) -> Option<Statistics> {
        None
    }
    /// Messages that have arrived since the last call.
    fn take_arrivals(&mut self, taken: &mut Vec<Arrival>);
}

/// A message that has arrived.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Arrival {
    /// The sender.
    pub from: HostId,
    /// Its name among the messages of this sender to this receiver.
    pub name: u64,
    /// Its bytes.
    pub length: u32,
}
