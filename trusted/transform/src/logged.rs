// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node with a log.
//!
//! The log also has a digest of the steps that followed from its inputs. A protocol that makes
//! other steps of the same inputs, since its program was changed or since it depends on more than
//! them, is refused: its node would say a second thing under a counter that it has used.
//!
//! The log is the device's counter. A node whose log is lost or restored from a copy says two
//! things under one counter, and is one of the f that lie.

use std::sync::Arc;

use smt_attestor::Attestor;
use smt_journal::Disk;
use smt_replica::{Attested, Effect, Logged, LoggedError, Owner, Statements};

use crate::error::NodeError;
use crate::group::{EPOCH, Group};
use crate::message::{Message, SYSTEM, digest, encode};
use crate::node::{Identity, Node, Output};
use crate::protocol::Protocol;

impl<P: Protocol> Node<P> {
    /// Starts a node with an empty log, or goes on where the log ends. A log of another node or
    /// group is refused. `protocol` is that of [`Node::new`].
    ///
    /// # Errors
    /// [`LoggedError`]
    pub fn open<D: Disk>(
        group: Arc<Group>,
        identity: Identity,
        protocol: impl Fn(u32) -> P,
        disk: D,
    ) -> Result<Logged<Self, D>, LoggedError<NodeError>> {
        let owner = owner(&group, identity.device);
        let start = |()| {
            let mut node = Self::new(group, identity, protocol)?;
            node.is_silent = true;
            Ok(node)
        };
        Logged::open(owner, (), disk, start, |_| ())
    }
}

/// All that the node depends on beside its inputs and its protocol.
fn owner(group: &Group, node: u32) -> Owner {
    let members = encode(&(&group.nodes, &group.clients, group.stream));
    let sizes = encode(&group.options.operation);
    let configuration = digest("configuration", &[&members, &sizes]);
    Owner { device: node, epoch: EPOCH.0, configuration }
}

impl<P: Protocol> smt_replica::Node for Node<P> {
    type Message = Message;
    type Output = Output;
    type Start = ();
    type Error = NodeError;

    const SYSTEM: &'static str = SYSTEM;
    const VERSION: u32 = 3;

    fn statement(message: &Message) -> Option<&Attested> {
        match message {
            Message::Step(step) => Some(step),
            _ => None,
        }
    }

    fn device(&self) -> &Attestor {
        &self.device
    }

    fn device_mut(&mut self) -> &mut Attestor {
        &mut self.device
    }

    fn failure(&mut self) -> Option<LoggedError<NodeError>> {
        let of_device = self.device.failure().map(LoggedError::from);
        self.error.clone().map(LoggedError::Node).or(of_device)
    }

    fn effect_of(&mut self, message: &Message) -> Effect {
        Self::effect_of(self, message)
    }

    fn may_take(&self, step: &Attested) -> bool {
        Self::may_take(self, step)
    }

    fn take(&mut self, message: Message) {
        Self::take(self, message);
    }

    fn tick(&mut self) {
        // An error is the node's failure too.
        let _ = Self::tick(self);
    }

    fn is_idle(&self) -> bool {
        Self::is_idle(self)
    }

    fn idle_tick(&mut self) -> Option<Output> {
        self.count_tick();
        Some(self.question())
    }

    fn answer(&mut self, message: &Message, _may_be_long: bool) -> Vec<Output> {
        Self::answer(self, message)
    }

    fn outputs(&mut self) -> Vec<Output> {
        Self::outputs(self)
    }

    fn go_live(&mut self) {
        self.is_silent = false;
    }

    fn statements(&self) -> Statements {
        self.made
    }
}

#[cfg(all(test, feature = "sim"))]
mod tests;
