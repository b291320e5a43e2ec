// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node with a journal: the log of its inputs, beside the tamper-evident log of its entries.
//!
//! Where the device is a kernel in the process, the journal is its counter. A node whose journal is
//! lost or restored from a copy signs two entries at one index: its witnesses suspect it for good,
//! and whoever sees both exposes it. A last block that the disk has damaged is cut off as one that
//! a crash has torn, which is the same. A device that outlives the node gives no counter twice:
//! such a journal is refused.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smt_attestation::{GroupSecret, SigningKey, Start};
use smt_attestor::{Attestor, AttestorError, OwnDevice};
use smt_journal::Disk;
use smt_replica::{Effect, Logged, LoggedError, Owner};
use zeroize::Zeroizing;

use crate::application::Application;
use crate::digest::{SYSTEM, digest};
use crate::group::Group;
use crate::message::{Message, encode};
use crate::node::{Node, NodeError, Output};

/// The device and the secret of a node.
pub struct Identity {
    /// The device. Its number is the node's, and its epoch the one that the group has of it.
    pub device: OwnDevice,
    /// 32 random bytes, from which the nonces of audits come. A journal that has begun has its own.
    pub nonces: Zeroizing<[u8; 32]>,
}

impl Identity {
    /// A kernel in this process as the device of a node. All secrets are derived from the seed of
    /// the key with which it signs.
    #[must_use]
    pub fn of_seed(group: &Group, node: u32, signing_seed: &[u8; 32]) -> Self {
        let derived = |purpose: &str| digest(purpose, &[signing_seed]);
        let (key, secret) = (SigningKey::new(signing_seed), GroupSecret::new(derived("codes")));
        let device = group.library(node, key, secret);
        Self { device, nonces: Zeroizing::new(derived("nonces")) }
    }
}

/// Something from outside, beside time.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub enum Event {
    /// An input of the host ([`Logged::local`]).
    Local(Vec<u8>),
    /// A message and the node that has sent it, which the transport has authenticated
    /// ([`Logged::receive_message`]).
    Message(u32, Message),
}

impl Event {
    /// A message in bytes of another node. Nothing if the bytes are none.
    #[must_use]
    pub fn message(from: u32, bytes: &[u8]) -> Option<Self> {
        Message::decode(bytes).map(|it| Self::Message(from, it))
    }
}

impl<A: Application> Node<A> {
    /// Starts a node with an empty journal, or goes on where the journal ends. A journal of another
    /// node, group or application is refused, and one that is older than a device's counter.
    /// `deliver` gets what the application has delivered since the journal was begun
    /// ([`SnapshotLog::move_to`](smt_journal::SnapshotLog::move_to)), again.
    ///
    /// # Errors
    /// [`LoggedError`]
    pub fn open<D: Disk>(
        group: Arc<Group>,
        identity: Identity,
        application: &A,
        disk: D,
        mut deliver: impl FnMut(Vec<u8>),
    ) -> Result<Logged<Self, D>, LoggedError<NodeError>> {
        let Identity { device, nonces } = identity;
        // The journal of a device that has restarted would be refused as that of another owner.
        Self::check(&group, &device).map_err(logged)?;
        let owner = owner(&group, device.start(), application);
        let start = |nonces| Self::with_journal(group, device, nonces, application).map_err(logged);
        Logged::open(owner, *nonces, disk, start, |outputs| {
            for output in std::mem::take(outputs) {
                match output {
                    Output::Host(delivered) => deliver(delivered),
                    other => outputs.push(other),
                }
            }
        })
    }
}

fn logged(error: NodeError) -> LoggedError<NodeError> {
    match error {
        NodeError::Device(error) => LoggedError::Device(error),
        other => LoggedError::Node(other),
    }
}

impl<A: Application> smt_replica::Node for Node<A> {
    type Message = Event;
    type Output = Output;
    type Start = [u8; 32];
    type Error = NodeError;

    const SYSTEM: &'static str = SYSTEM;
    const LOG: &'static str = "journal";
    const VERSION: u32 = 4;

    /// Nothing: bytes alone do not tell who has sent them ([`Event::message`]).
    fn decode(_: &[u8]) -> Option<Event> {
        None
    }

    fn device(&self) -> &Attestor {
        &self.device
    }

    fn device_mut(&mut self) -> &mut Attestor {
        &mut self.device
    }

    fn failure(&mut self) -> Option<LoggedError<NodeError>> {
        let of_device = || self.device.failure().map(LoggedError::from);
        self.failure.take().map(logged).or_else(of_device)
    }

    fn effect_of(&mut self, event: &Event) -> Effect {
        Self::effect_of(self, event)
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Local(input) => {
                // One that is not taken has ended the node.
                self.local(input);
            }
            Event::Message(from, message) => Self::take(self, from, message),
        }
    }

    fn tick(&mut self) {
        Self::tick(self);
    }

    fn answer(&mut self, event: &Event, _may_be_long: bool) -> Vec<Output> {
        self.reply(event)
    }

    fn outputs(&mut self) -> Vec<Output> {
        Self::outputs(self)
    }

    fn snapshot(&self) -> Option<Vec<u8>> {
        Some(Self::snapshot(self))
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<bool, AttestorError> {
        Self::restore(self, snapshot)
    }
}

/// All that the node depends on beside its inputs.
fn owner(group: &Group, own: Start, application: &impl Application) -> Owner {
    let it = group.options;
    let sizes = [it.body, it.state, it.sends, it.retained, it.segment].map(|it| it as u64);
    let times = [it.resend, it.complain, it.audit, it.suspect];
    let options = encode(&(it.interval, sizes, times));
    let members = encode(&(&group.keys, &group.epochs, group.faults, group.stream));
    let states: Vec<_> = (0..group.nodes()).map(|it| application.start(it).snapshot()).collect();
    let configuration = digest("configuration", &[&members, &options, &encode(&states)]);
    Owner { device: own.device.0, epoch: own.epoch.0, configuration }
}

#[cfg(all(test, feature = "sim"))]
mod tests;
