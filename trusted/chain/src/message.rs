// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages as bytes, and the statements that devices attest.

use serde::{Deserialize, Serialize};
use smt_attestor::Attested;
use smt_replica::{Digest, Reply, Request};

use crate::accusation::Made;
pub(crate) use smt_replica::{decode, encode};

/// A statement in a node's attested stream. Each receiver takes each stream without a gap.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Statement {
    /// The head orders a request: its proof of execution.
    Order {
        /// The number of the configuration.
        configuration: u64,
        /// The place in the log, from 1.
        place: u64,
        /// The request.
        request: Request,
        /// The hash of the answer.
        output: Digest,
    },
    /// The proof of execution of another node.
    Proof {
        /// The number of the configuration.
        configuration: u64,
        /// The place in the log.
        place: u64,
        /// The hash of the answer.
        output: Digest,
        /// The MAC of the proof of the node before.
        before: [u8; 32],
    },
    /// The sender says nothing more in lower configurations.
    Freeze {
        /// The number of the configuration.
        configuration: u64,
    },
    /// The head opens a configuration, on f + 1 FREEZEs.
    Open {
        /// The number of the configuration.
        configuration: u64,
        /// The FREEZEs, in ascending order of their nodes.
        freezes: Vec<Reference>,
    },
    /// The sender enters a configuration: its proof of all that the configuration begins with.
    Enter {
        /// The number of the configuration.
        configuration: u64,
        /// The hash of how it begins.
        opening: Digest,
    },
}

/// A FREEZE in its sender's stream.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Reference {
    /// The sender.
    pub node: u32,
    /// The counter of the FREEZE.
    pub counter: u64,
    /// The MAC of its attestation.
    pub mac: [u8; 32],
}

/// How far a node has come with each stream, which asks the others for what is missing.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Status {
    /// The node that asks.
    pub from: u32,
    /// The counter up to which all is there, by node.
    pub counters: Vec<u64>,
    /// The newest configuration that it knows.
    pub newest: u64,
}

/// A message between nodes and clients.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Message {
    /// A client's request.
    Request(Request),
    /// A node's reply. Its view is the number of the configuration.
    Reply(Reply),
    /// A statement, of the node that sends it or forwarded.
    Statement(Attested),
    /// A question for what is missing.
    Status(Status),
    /// The newest configuration, for a node that does not know it. Its accusations prove it,
    /// whoever brings it.
    Made(Made),
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
