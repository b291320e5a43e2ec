// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets of the model. The headers are values instead of bytes; what is sealed are bytes.

use smt_record::Side;

/// A packet that was sent. The network keeps it for good: it may arrive at any time, any number of
/// times, or never.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct Packet {
    pub(crate) session: u8,
    pub(crate) to_server: bool,
    pub(crate) epoch: u32,
    pub(crate) content: Content,
    /// The sealed bytes, with their tag.
    pub(crate) sealed: Vec<u8>,
}

#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) enum Content {
    /// DATA with a whole record.
    Record {
        id: u64,
        index: u32,
        /// Inner bytes of the message, which the clear header tells.
        padded: u32,
    },
    Control {
        number: u64,
        /// The sealed body, for readers of a trace.
        body: Body,
    },
}

/// The bodies of control packets (SPEC §8). The counter stands for the id: there is one stripe.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) enum Body {
    EpochDone {
        epoch: u32,
    },
    EpochAck {
        epoch: u32,
    },
    Cancel {
        counter: u64,
    },
    /// The answer to CANCEL: the message will not be delivered.
    Voided {
        counter: u64,
    },
    /// The answer to CANCEL: the message was delivered.
    Seen {
        counter: u64,
    },
    /// The message was seen, and whether it was delivered is not known any more.
    SeenAndGone {
        counter: u64,
    },
    /// The message was accepted, and the id limit is this now.
    Ack {
        counter: u64,
        limit: u64,
    },
    WindowRequest,
    Window {
        limit: u64,
    },
}

impl Body {
    /// Whether two bodies say the same, perhaps at different times.
    pub(crate) fn is_copy_of(self, other: Self) -> bool {
        match (self, other) {
            (Self::Ack { counter, .. }, Self::Ack { counter: other, .. }) => counter == other,
            _ => self == other,
        }
    }

    /// Bytes that differ if the bodies do.
    pub(crate) fn bytes(self) -> Vec<u8> {
        format!("{self:?}").into_bytes()
    }
}

impl Packet {
    /// The peer that the packet is for.
    pub(crate) fn receiver(&self) -> Side {
        match self.to_server {
            true => Side::Server,
            false => Side::Client,
        }
    }

    /// One line for a trace.
    pub(crate) fn describe(&self) -> String {
        let Self { session, epoch, .. } = self;
        let receiver = self.receiver();
        let content = match &self.content {
            Content::Record { id, index, .. } => format!("record {index} of id {id}"),
            Content::Control { number, body } => format!("control {number} {body:?}"),
        };
        format!("{content}, epoch {epoch}, session {session}, to the {receiver}")
    }
}
