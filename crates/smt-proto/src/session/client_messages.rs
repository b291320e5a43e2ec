// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The messages of a session that this side initiated, and the bundles among them.

use smt_wire::MessageId;

use crate::collections::id_map::{IdMap, Salt};
use crate::message::client_message::{Cancelling, ClientMessage, LiveMessage, Untold};
use crate::message::outgoing::Outgoing;

/// Requests, one-way messages and bundles, by id.
#[derive(Debug)]
pub(super) struct ClientMessages {
    messages: IdMap<ClientMessage>,
    /// Bundles among them, those included whose id is cancelled.
    bundles: usize,
}

impl ClientMessages {
    pub(super) fn new(salt: Salt) -> Self {
        Self { messages: IdMap::new(salt), bundles: 0 }
    }

    pub(super) fn insert(&mut self, id: MessageId, live: LiveMessage) {
        self.bundles += usize::from(live.is_bundle());
        self.messages.insert(id.0, ClientMessage::Live(live));
    }

    pub(super) fn get_mut(&mut self, id: MessageId) -> Option<&mut ClientMessage> {
        self.messages.get_mut(id.0)
    }

    /// A message that is not cancelled.
    pub(super) fn live(&self, id: MessageId) -> Option<&LiveMessage> {
        match self.messages.get(id.0)? {
            ClientMessage::Live(live) => Some(live),
            ClientMessage::Cancelling(_) => None,
        }
    }

    /// A message that is not cancelled, to change it.
    pub(super) fn live_mut(&mut self, id: MessageId) -> Option<&mut LiveMessage> {
        match self.messages.get_mut(id.0)? {
            ClientMessage::Live(live) => Some(live),
            ClientMessage::Cancelling(_) => None,
        }
    }

    /// A message on its way out.
    pub(super) fn outgoing_mut(&mut self, id: MessageId) -> Option<&mut Outgoing> {
        self.live_mut(id)?.outgoing.as_mut()
    }

    /// Takes out a message that is over and is not cancelled.
    pub(super) fn remove_live(&mut self, id: MessageId) -> Option<LiveMessage> {
        self.live(id)?;
        match self.messages.remove(id.0)? {
            ClientMessage::Live(live) => {
                self.bundles -= usize::from(live.is_bundle());
                Some(live)
            }
            ClientMessage::Cancelling(_) => None,
        }
    }

    /// Takes the wanted part out of a request that is over, and drops the rest in place: most
    /// requests end so. A request of which nothing is wanted stays.
    pub(super) fn take_request<T>(
        &mut self,
        id: MessageId,
        wanted: impl FnOnce(&mut LiveMessage) -> Option<T>,
    ) -> Option<T> {
        self.messages.take(id.0, |message| match message {
            ClientMessage::Live(live) if live.is_request() => wanted(live),
            _ => None,
        })
    }

    /// Cancels a message: the peer is told until it answers. Returns the message as it was.
    pub(super) fn cancel(&mut self, id: MessageId, cancelling: Cancelling) -> Option<LiveMessage> {
        let message = self.messages.get_mut(id.0)?;
        let ClientMessage::Live(live) = &*message else {
            return None;
        };
        let is_bundle = live.is_bundle();
        let cancelling = ClientMessage::Cancelling(Cancelling { is_bundle, ..cancelling });
        match core::mem::replace(message, cancelling) {
            ClientMessage::Live(live) => Some(live),
            ClientMessage::Cancelling(_) => None,
        }
    }

    /// Forgets a cancelled message, since the peer has answered. Returns the outcome that the
    /// application waits for, if it does.
    pub(super) fn end_cancelling(&mut self, id: MessageId) -> Option<Untold> {
        let cancelled = |message: &mut ClientMessage| match message {
            ClientMessage::Cancelling(cancelling) => Some(*cancelling),
            ClientMessage::Live(_) => None,
        };
        let ended = self.messages.take(id.0, cancelled)?;
        self.bundles -= usize::from(ended.is_bundle);
        ended.untold
    }

    /// Takes the outcome of a cancelled message that the application waits for, if it does: the
    /// application is told now.
    pub(super) fn take_untold(&mut self, id: MessageId) -> Option<Untold> {
        match self.messages.get_mut(id.0)? {
            ClientMessage::Cancelling(cancelling) => cancelling.untold.take(),
            ClientMessage::Live(_) => None,
        }
    }

    /// Cancelled messages of which the application is not told.
    pub(super) fn untold(&self) -> impl Iterator<Item = (MessageId, Untold)> {
        self.messages.iter().filter_map(|(number, message)| match message {
            ClientMessage::Cancelling(cancelling) => Some((MessageId(number), cancelling.untold?)),
            ClientMessage::Live(_) => None,
        })
    }

    /// Whether any record of a message has left: its own, or that of the bundle that it is in.
    pub(super) fn has_left(&self, live: &LiveMessage) -> bool {
        let bundle = live.bundle.and_then(|bundle| self.live(bundle));
        bundle.unwrap_or(live).has_left()
    }

    /// The message in which this one travels: the bundle that it has left in, or itself.
    pub(super) fn carrier_of(&self, id: MessageId) -> MessageId {
        let bundle = self.live(id).and_then(|live| live.bundle);
        bundle.unwrap_or(id)
    }

    /// Messages that are not cancelled.
    pub(super) fn iter_live(&self) -> impl Iterator<Item = (MessageId, &LiveMessage)> {
        self.messages.iter().filter_map(|(number, message)| match message {
            ClientMessage::Live(live) => Some((MessageId(number), live)),
            ClientMessage::Cancelling(_) => None,
        })
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (MessageId, &mut ClientMessage)> {
        let messages = self.messages.iter_mut();
        messages.map(|(number, message)| (MessageId(number), message))
    }

    /// Takes out all messages, and returns those that are not cancelled.
    pub(super) fn drain_live(&mut self) -> impl Iterator<Item = (MessageId, LiveMessage)> + use<> {
        self.bundles = 0;
        let messages = self.messages.drain().into_iter();
        messages.filter_map(|(number, message)| match message {
            ClientMessage::Live(live) => Some((MessageId(number), live)),
            ClientMessage::Cancelling(_) => None,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Bundles that are not acknowledged.
    pub(super) fn bundles(&self) -> usize {
        self.bundles
    }

    pub(super) fn shrink_to_fit(&mut self) {
        self.messages.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests;
