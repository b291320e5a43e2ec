// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node with a log.

use std::convert::Infallible;
use std::sync::Arc;

use smt_attestor::{Attestor, AttestorError};
use smt_journal::Disk;
use smt_replica::{Attested, Effect, Group, Logged, LoggedError, Owner, Service};

use crate::digest::{SYSTEM, digest};
use crate::message::{Message, encode};
use crate::node::{Identity, Node, Output};

impl<S: Service + Clone> Node<S> {
    /// Starts a node with an empty log, or continues where the log ends. A log of another node,
    /// group or service is refused, and one that is older than a device's counter.
    ///
    /// # Errors
    /// [`LoggedError`]
    pub fn open<D: Disk>(
        group: Arc<Group>,
        identity: Identity,
        empty: S,
        disk: D,
    ) -> Result<Logged<Self, D>, LoggedError> {
        // Its log, of another epoch, would be refused as that of another owner.
        identity.refuse_other_epoch(&group)?;
        let owner = owner(&group, &identity, &empty);
        let nonce = identity.device.start().nonce;
        let start = |nonce| {
            let device = identity.device.with_nonce(nonce)?;
            Ok(Self::with_log(group, Identity { device, ..identity }, empty)?)
        };
        Logged::open(owner, nonce, disk, start, |_| ())
    }
}

/// All that the node depends on beside its inputs.
fn owner(group: &Group, identity: &Identity, empty: &impl Service) -> Owner {
    let start = identity.device.start();
    let members = encode(&(&group.clients, &group.reply_keys, group.stream, &group.epochs));
    let options = group.options;
    let sizes = encode(&(options.operation, options.window, options.retained, options.timeout));
    let configuration = digest("configuration", &[&members, &sizes, &empty.snapshot()]);
    Owner { device: start.device.0, epoch: start.epoch.0, configuration }
}

impl<S: Service + Clone> smt_replica::Node for Node<S> {
    type Message = Message;
    type Output = Output;
    type Start = [u8; 16];
    type Error = Infallible;

    const SYSTEM: &'static str = SYSTEM;
    const VERSION: u32 = 8;

    fn statement(message: &Message) -> Option<&Attested> {
        match message {
            Message::Statement(statement) => Some(statement),
            _ => None,
        }
    }

    fn device(&self) -> &Attestor {
        &self.device
    }

    fn device_mut(&mut self) -> &mut Attestor {
        &mut self.device
    }

    fn effect_of(&mut self, message: &Message) -> Effect {
        Self::effect_of(self, message)
    }

    fn may_take(&self, statement: &Attested) -> bool {
        Self::may_take(self, statement)
    }

    fn take(&mut self, message: Message) {
        Self::take(self, message);
    }

    fn tick(&mut self) {
        Self::tick(self);
    }

    fn is_idle(&self) -> bool {
        Self::is_idle(self)
    }

    fn idle_tick(&mut self) -> Option<Output> {
        Some(self.question())
    }

    fn advance(&mut self) {
        Self::advance(self);
    }

    fn shortened(&self, question: Message) -> Message {
        Self::shortened(self, question)
    }

    fn precedence(question: &Message) -> u64 {
        match question {
            Message::Reply(refusal) => refusal.number,
            _ => 0,
        }
    }

    fn answer(&mut self, message: &Message, _may_be_long: bool) -> Vec<Output> {
        Self::answer(self, message)
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

#[cfg(all(test, feature = "sim"))]
mod tests;
