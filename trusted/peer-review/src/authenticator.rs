// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Signed statements on entries of a log, and what they prove: that a message was sent, and that it
//! was received.

use serde::{Deserialize, Serialize};
use smt_replica::{Digest, SignatureBytes};

use crate::digest::digest;
use crate::group::Group;
use crate::message::encode;

/// A message as the entry that sends it has it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Sent {
    /// The receiver.
    pub to: u32,
    /// Its number among the messages of this sender to this receiver, from 1.
    pub number: u64,
    /// The hash of its bytes.
    pub body: Digest,
}

/// An entry of a node's log without its contents, attested and signed by the node's device.
///
/// The counter of the attestation is the entry's index. The device gives each counter once, so
/// there is one entry at each index, and the hash of the entry before makes it one log.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Authenticator {
    /// The node.
    pub node: u32,
    /// The entry's index, from 1.
    pub index: u64,
    /// The digest of the entry before.
    pub previous: Digest,
    /// The hash of the entry's input.
    pub input: Digest,
    /// The messages that the entry sends.
    pub sent: Vec<Sent>,
    /// The device's signature.
    pub signature: SignatureBytes,
}

impl Authenticator {
    /// The bytes that the device has attested.
    #[must_use]
    pub fn digest(&self) -> Digest {
        entry_digest(self.index, &self.previous, &self.input, &self.sent)
    }

    /// The hash of all of it.
    fn digest_with_signature(&self) -> Digest {
        digest("authenticator", &[&encode(self)])
    }

    /// Whether the node's device has signed it.
    #[must_use]
    pub fn is_genuine(&self, group: &Group) -> bool {
        self.sent.len() <= group.options.sends
            && group.has_signed(self.node, self.index, &self.digest(), &self.signature)
    }
}

/// The digest of an entry: a hash chain over the whole log.
pub(crate) fn entry_digest(index: u64, previous: &Digest, input: &Digest, sent: &[Sent]) -> Digest {
    digest("entry", &[&index.to_be_bytes(), previous, input, &encode(&sent)])
}

/// The hash of a message's bytes.
pub(crate) fn body_digest(body: &[u8]) -> Digest {
    digest("body", &[body])
}

/// A message, and the proof that its sender's log has it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct SentMessage {
    /// The entry that sends it.
    pub authenticator: Authenticator,
    /// The receiver.
    pub to: u32,
    /// Its number among the messages of this sender to this receiver.
    pub number: u64,
    /// Its bytes.
    pub body: Vec<u8>,
}

impl SentMessage {
    /// The sender.
    #[must_use]
    pub fn from(&self) -> u32 {
        self.authenticator.node
    }

    /// Whether the sender's log has this message, by the sender's signature.
    #[must_use]
    pub fn is_genuine(&self, group: &Group) -> bool {
        let sent = Sent { to: self.to, number: self.number, body: body_digest(&self.body) };
        self.body.len() <= group.options.body
            && self.from() != self.to
            && self.to < group.nodes()
            && self.authenticator.sent.contains(&sent)
            && self.authenticator.is_genuine(group)
    }

    /// The hash of an entry's input that takes this message. It covers all of it, the signature
    /// too: who shows the entry to others can alter nothing.
    pub(crate) fn received_digest(&self) -> Digest {
        let ends = [self.from(), self.to];
        let sender = self.authenticator.digest_with_signature();
        received_digest(ends, self.number, &body_digest(&self.body), &sender)
    }
}

fn received_digest([from, to]: [u32; 2], number: u64, body: &Digest, sender: &Digest) -> Digest {
    let (from, to) = (from.to_be_bytes(), to.to_be_bytes());
    digest("received", &[&from, &to, &number.to_be_bytes(), body, sender])
}

/// The proof that a receiver's log has a message, and so all messages of that sender before it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Receipt {
    /// The receiver's entry that takes it.
    pub authenticator: Authenticator,
    /// The sender.
    pub from: u32,
    /// The message's number.
    pub number: u64,
    /// The hash of its bytes.
    pub body: Digest,
    /// The hash of the sender's authenticator.
    pub sender: Digest,
}

impl Receipt {
    /// The receipt of a message that an entry of its receiver has taken.
    pub(crate) fn new(authenticator: Authenticator, message: &SentMessage) -> Self {
        Self {
            authenticator,
            from: message.from(),
            number: message.number,
            body: body_digest(&message.body),
            sender: message.authenticator.digest_with_signature(),
        }
    }

    /// The receiver.
    #[must_use]
    pub fn by(&self) -> u32 {
        self.authenticator.node
    }

    /// Whether the receiver's log has the message, by the receiver's signature.
    #[must_use]
    pub fn is_genuine(&self, group: &Group) -> bool {
        let ends = [self.from, self.by()];
        self.authenticator.input == received_digest(ends, self.number, &self.body, &self.sender)
            && self.authenticator.is_genuine(group)
    }
}
