// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages as bytes.

use serde::{Deserialize, Serialize};

use crate::authenticator::{Receipt, SentMessage};
use crate::entry::Entry;
use crate::evidence::Evidence;
pub(crate) use smt_replica::{decode, encode};

/// A message between nodes. The transport authenticates its sender.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Message {
    /// The application's message to its receiver, who answers with a receipt.
    Sent(Box<SentMessage>),
    /// The proof that a message was received. Witnesses pass it on.
    Receipt(Box<Receipt>),
    /// A witness asks a node for its log.
    Audit {
        /// The index up to which the witness has it.
        after: u64,
        /// The audit's random bytes.
        nonce: [u8; 16],
    },
    /// The node's answer.
    Segment(Segment),
    /// To the witnesses of sender and receiver: this message has no receipt.
    Complaint(Box<SentMessage>),
    /// A witness to the receiver: this message wants a receipt.
    Challenge(Box<SentMessage>),
    /// The nodes of which the sender has evidence.
    Exposed(Vec<u32>),
    /// Evidence against a node.
    Evidence(Box<Evidence>),
}

/// A part of a log.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Segment {
    /// The index of the entry before.
    pub after: u64,
    /// The entries.
    pub entries: Vec<Entry>,
    /// The newest receipt of each receiver.
    pub receipts: Vec<Receipt>,
}

impl Message {
    /// The message as bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads what [`Message::encode`] writes.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        decode(bytes)
    }
}
