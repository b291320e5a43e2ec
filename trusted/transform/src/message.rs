// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages as bytes.

use std::fmt;

use serde::{Deserialize, Serialize};
use smt_replica::{Digest, Reply, Request};

use crate::protocol::Effect;
pub(crate) use smt_replica::{Attested, decode, encode};

/// The name of this system in hashes and logs.
pub(crate) const SYSTEM: &str = "transform";

/// The input of a step.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Input {
    /// A message: an effect of another node's step.
    Message {
        /// The sender.
        from: u32,
        /// The counter of the sender's step.
        counter: u64,
        /// The message.
        message: Vec<u8>,
    },
    /// A timer. No other node can tell whether it was time.
    Timeout {
        /// The timer's number.
        timer: u32,
    },
    /// A client's signed request.
    Request(Request),
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message { from, counter, .. } => {
                write!(f, "the message of node {from} at its step {counter}")
            }
            Self::Timeout { timer } => write!(f, "timer {timer}"),
            Self::Request(it) => write!(f, "request {} of client {}", it.number, it.client),
        }
    }
}

/// A step of a node, which its device attests.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Step {
    /// The input.
    pub input: Input,
    /// The effects that the protocol has.
    pub effects: Vec<Effect>,
}

/// How much a node has of each stream, which asks for what is missing.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Status {
    /// The node that asks.
    pub from: u32,
    /// The counter up to which it has each device's stream; the greatest number for a stream of
    /// which it takes nothing more.
    pub held: Vec<u64>,
}

/// A message between nodes and clients.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Message {
    /// A step, of the node that sends it or forwarded.
    Step(Attested),
    /// A question for what is missing.
    Status(Status),
    /// A client's request.
    Request(Request),
    /// The word of a node that has found valid a step with this reply. Its view plays no part.
    Endorsement(Reply),
}

impl Message {
    /// The message as bytes.
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads what [`Message::encode`] writes.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        decode(bytes)
    }
}

/// The hash of `parts` under a domain of this system.
pub(crate) fn digest(domain: &str, parts: &[&[u8]]) -> Digest {
    smt_replica::digest(SYSTEM, domain, parts)
}
