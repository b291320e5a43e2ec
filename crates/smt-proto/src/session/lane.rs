// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All that a session has of messages: their ids and numbers, the messages of both sides, and the
//! queues in which they leave.
//!
//! A session has one lane. Several lanes on several cores would share no more than keys, the peer's
//! address and its liveness.

use alloc::boxed::Box;

use smt_wire::MessageId;

use super::client_messages::ClientMessages;
use super::memory_share::{Memory, MemoryShare};
use super::parts::CallsInParts;
use super::reordered::Reordered;
use super::stripe::Stripes;
use crate::collections::id_map::{IdMap, Salt};
use crate::message::incoming::Incoming;
use crate::message::outgoing::Outgoing;
use crate::message::server_rpc::{ServerRpc, ServerRpcState};
use crate::recovery::retry_timer::RetryTimer;
use crate::send::control_queue::ControlQueue;
use crate::send::message_queue::MessageQueue;
use crate::shared::Shared;

/// The messages of a session.
pub(super) struct Lane {
    pub(super) stripes: Stripes,
    /// Messages that this side initiated.
    pub(super) client: ClientMessages,
    /// Messages that the peer initiated, and the replies to them.
    pub(super) server: IdMap<ServerRpc>,
    /// Calls of either side whose request or reply comes in parts.
    pub(super) parts: CallsInParts,
    pub(super) memory_share: MemoryShare,
    pub(super) reordered: Reordered,
    /// Questions about trimmed packets that wait for the pacer.
    pub(super) trimmed_waiting: usize,
    pub(super) control: ControlQueue,
    /// Messages that may send, fewest bytes left first.
    pub(super) sendable: MessageQueue,
    /// Whether the next batch is of messages although control packets wait, which ask for the bytes
    /// that messages are to bring.
    pub(super) messages_first: bool,
    /// WINDOW_REQUEST, since a command was refused for lack of ids. It is rare, and an idle session
    /// is to be small.
    pub(super) blocked: Option<Box<RetryTimer>>,
}

impl Lane {
    pub(super) fn new(stripes: Stripes, salt: Salt) -> Self {
        Self {
            stripes,
            client: ClientMessages::new(salt),
            server: IdMap::new(salt),
            parts: CallsInParts::default(),
            memory_share: MemoryShare::default(),
            reordered: Reordered::default(),
            trimmed_waiting: 0,
            control: ControlQueue::default(),
            sendable: MessageQueue::default(),
            messages_first: false,
            blocked: None,
        }
    }

    /// Whether no message of either side is in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.client.is_empty() && self.server.is_empty()
    }

    /// Messages of both sides that are in progress.
    pub(super) fn len(&self) -> usize {
        self.client.len() + self.server.len()
    }

    /// A message on its way out.
    pub(super) fn outgoing(&self, id: MessageId) -> Option<&Outgoing> {
        if self.stripes.is_own(id) {
            return self.client.live(id)?.outgoing.as_ref();
        }
        match &self.server.get(id.0)?.state {
            ServerRpcState::Replying(outgoing) => Some(outgoing),
            _ => None,
        }
    }

    /// A message on its way out, to be changed.
    pub(super) fn outgoing_mut(&mut self, id: MessageId) -> Option<&mut Outgoing> {
        if self.stripes.is_own(id) {
            return self.client.outgoing_mut(id);
        }
        match &mut self.server.get_mut(id.0)?.state {
            ServerRpcState::Replying(outgoing) => Some(outgoing),
            _ => None,
        }
    }

    /// The incoming message of an id whose record 0 has opened.
    pub(super) fn incoming_mut(&mut self, id: MessageId) -> Option<&mut Incoming> {
        if self.stripes.is_own(id) {
            return self.client.live_mut(id)?.incoming_mut();
        }
        match &mut self.server.get_mut(id.0)?.state {
            ServerRpcState::Receiving { incoming, .. } => Some(incoming),
            _ => None,
        }
    }

    /// Queues a message for sending if it has something to send and is not queued.
    pub(super) fn queue_sendable(&mut self, id: MessageId) {
        let Some(outgoing) = self.outgoing_mut(id) else {
            return;
        };
        if outgoing.is_sendable() && !outgoing.is_queued {
            outgoing.is_queued = true;
            let remaining = outgoing.remaining();
            self.sendable.push((remaining, id));
        }
    }

    /// The memory that decisions about new messages of the peer depend on.
    pub(super) fn memory<'a>(&self, shared: &'a Shared) -> Memory<'a> {
        Memory { account: &shared.memory, max: shared.config.memory_max, served: self.server.len() }
    }

    /// Gives back memory that an unused session does not need.
    pub(super) fn shrink_to_fit(&mut self) {
        self.client.shrink_to_fit();
        self.server.shrink_to_fit();
        self.sendable.shrink_to_fit();
        self.control = ControlQueue::default();
        for stripe in self.stripes.iter_mut() {
            stripe.window.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests;
