// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Entries of a log.

use serde::{Deserialize, Serialize};
use smt_replica::{Digest, SignatureBytes};

use crate::authenticator::{Sent, SentMessage, entry_digest};
use crate::digest::digest;
use crate::group::Options;

/// Something that happens to a node.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Input {
    /// A message of another node, with the proof that its log has it.
    Received(Box<SentMessage>),
    /// An input of the host.
    Local(Vec<u8>),
    /// A witness asks for the log. Its nonce proves that the log up to here is the whole log of
    /// this moment.
    Audit {
        /// The witness.
        witness: u32,
        /// Its random bytes.
        nonce: [u8; 16],
    },
    /// The state of the node at this place.
    Checkpoint {
        /// The hash of the state.
        state: Digest,
    },
}

impl Input {
    /// The hash that an authenticator has in the input's place.
    #[must_use]
    pub fn digest(&self) -> Digest {
        match self {
            Self::Received(message) => message.received_digest(),
            Self::Local(input) => digest("local", &[input]),
            Self::Audit { witness, nonce } => digest("audit", &[&witness.to_be_bytes(), nonce]),
            Self::Checkpoint { state } => digest("checkpoint", &[state]),
        }
    }
}

/// An entry: an input, and the messages that follow from it. Their bytes are left out, for who
/// replays the log has them.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Entry {
    /// The input.
    pub input: Input,
    /// The messages that it sends.
    pub sent: Vec<Sent>,
    /// The device's signature over the entry's digest.
    pub signature: SignatureBytes,
}

impl Entry {
    /// Whether it is short enough to be shown as evidence: a fault of length needs no more than
    /// twice what a correct node has.
    pub(crate) fn is_bounded(&self, options: &Options) -> bool {
        let (body, sends) = (2 * options.body, 2 * options.sends);
        let is_short = match &self.input {
            Input::Received(it) => it.body.len() <= body && it.authenticator.sent.len() <= sends,
            Input::Local(input) => input.len() <= body,
            Input::Audit { .. } | Input::Checkpoint { .. } => true,
        };
        is_short && self.sent.len() <= sends
    }

    /// The digest of the entry at an index behind another one.
    pub(crate) fn digest(&self, index: u64, previous: &Digest) -> Digest {
        entry_digest(index, previous, &self.input.digest(), &self.sent)
    }
}

/// The digest of the last of entries that begin at an index; `previous` if there are none.
pub(crate) fn head_of(first: u64, previous: Digest, entries: &[Entry]) -> Digest {
    // The entries come first: the number behind the last one may be too great.
    let numbered = entries.iter().zip(first..);
    numbered.fold(previous, |head, (entry, index)| entry.digest(index, &head))
}
