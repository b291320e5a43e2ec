// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A replica as a node with a log.

use std::convert::Infallible;
use std::sync::Arc;

use smt_attestor::{Attestor, AttestorError};
use smt_journal::Disk;
use smt_replica::{Attested, Effect, Group, Logged, LoggedError, Node, Owner, Service};

use crate::message::{Message, SYSTEM, digest, encode};
use crate::replica::{Identity, Output, Replica};

impl<S: Service> Replica<S> {
    /// Starts a replica with an empty log, or continues where the log ends: then the nonce of a
    /// library's start is the log's, and that of `identity` plays no part. A log of another device,
    /// epoch or group is refused, and one that is older than a device's counter.
    ///
    /// # Errors
    /// [`LoggedError`]
    pub fn open<D: Disk>(
        group: Arc<Group>,
        identity: Identity,
        service: S,
        disk: D,
    ) -> Result<Logged<Self, D>, LoggedError> {
        let owner = owner(&group, &identity);
        let nonce = identity.device.start().nonce;
        let start = |nonce| {
            let device = identity.device.with_nonce(nonce)?;
            Ok(Self::silent(group, Identity { device, ..identity }, service)?)
        };
        Logged::open(owner, nonce, disk, start, |_| ())
    }
}

/// All that a replica depends on beside its inputs.
fn owner(group: &Group, identity: &Identity) -> Owner {
    let start = identity.device.start();
    let members = encode(&(&group.clients, &group.reply_keys, &group.epochs));
    let options = group.options;
    let sizes = (options.batch, options.operation, options.interval, options.window);
    let (replicas, stream) = (group.replicas, group.stream);
    let rest = (options.pipeline, options.retained, options.timeout, replicas, stream);
    let configuration = digest("configuration", &[&members, &encode(&sizes), &encode(&rest)]);
    Owner { device: start.device.0, epoch: start.epoch.0, configuration }
}

impl<S: Service> Node for Replica<S> {
    type Message = Message;
    type Output = Output;
    type Start = [u8; 16];
    type Error = Infallible;

    const SYSTEM: &'static str = SYSTEM;
    const VERSION: u32 = 10;

    fn decode(bytes: &[u8]) -> Option<Message> {
        let mut message = Message::decode(bytes)?;
        // The state in which the group was formed needs no proof, and nobody takes it from others.
        if let Message::State(state) = &mut message
            && state.proof.is_empty()
        {
            state.snapshot.clear();
        }
        Some(message)
    }

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

    fn begin(&mut self) {
        Self::begin(self);
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
        Some(self.status())
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

    fn answer(&mut self, message: &Message, may_be_long: bool) -> Vec<Output> {
        Self::answer(self, message, may_be_long)
    }

    fn has_long_answer(&self, message: &Message) -> bool {
        matches!(message, Message::Status(status) if self.lacks_state(status))
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
