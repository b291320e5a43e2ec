// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages as bytes.

use std::fmt;

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use smt_attestation::Attestation;

use crate::group::PublicKey;
use crate::protocol::Effect;

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

/// Attested bytes.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Attested {
    /// The attestation's header and MAC.
    pub attestation: [[u8; 32]; 2],
    /// A [`Step`].
    pub body: Vec<u8>,
}

impl Attested {
    pub(crate) fn new(attestation: &Attestation, body: Vec<u8>) -> Self {
        Self { attestation: [attestation.header_bytes(), attestation.mac()], body }
    }

    pub(crate) fn attestation(&self) -> Attestation {
        Attestation::new(&self.attestation[0], &self.attestation[1])
    }
}

/// A hash (SHA-256).
pub(crate) type Digest = [u8; 32];

/// A signature's 64 bytes as two halves.
pub(crate) type SignatureBytes = [[u8; 32]; 2];

/// A client's request (paper, appendix C.1).
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Request {
    /// The client.
    pub client: u32,
    /// Above those of all earlier requests of this client.
    pub number: u64,
    /// The operation.
    pub operation: Vec<u8>,
    pub(crate) signature: SignatureBytes,
}

impl Request {
    /// Signs a request.
    pub fn sign(key: &SigningKey, client: u32, number: u64, operation: Vec<u8>) -> Self {
        let mut request = Self { client, number, operation, signature: [[0; 32]; 2] };
        request.signature = sign(key, &request.digest());
        request
    }

    /// Whether the owner of `key` has signed this request.
    pub fn is_signed_by(&self, key: &PublicKey) -> bool {
        verifies(key, &self.digest(), &self.signature)
    }

    fn digest(&self) -> [u8; 32] {
        let (client, number) = (self.client.to_be_bytes(), self.number.to_be_bytes());
        digest("request", &[&client, &number, &self.operation])
    }
}

/// A node has found valid a step with this reply. The signature is the host's.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Endorsement {
    /// The node that endorses.
    pub node: u32,
    /// The client.
    pub client: u32,
    /// The number of its request.
    pub number: u64,
    /// The answer.
    pub answer: Vec<u8>,
    pub(crate) signature: SignatureBytes,
}

impl Endorsement {
    /// Signs an endorsement.
    pub fn sign(key: &SigningKey, node: u32, client: u32, reply: (u64, Vec<u8>)) -> Self {
        let (number, answer) = reply;
        let mut it = Self { node, client, number, answer, signature: [[0; 32]; 2] };
        it.signature = sign(key, &it.digest());
        it
    }

    /// Whether the owner of `key` has signed this.
    pub fn is_signed_by(&self, key: &PublicKey) -> bool {
        verifies(key, &self.digest(), &self.signature)
    }

    fn digest(&self) -> [u8; 32] {
        let (node, client) = (self.node.to_be_bytes(), self.client.to_be_bytes());
        digest("endorsement", &[&node, &client, &self.number.to_be_bytes(), &self.answer])
    }
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
    /// An endorsement for a client.
    Endorsement(Endorsement),
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

/// Bytes of a value of this module. Memory is all that it can lack.
pub(crate) fn encode(value: &impl Serialize) -> Vec<u8> {
    postcard::to_allocvec(value).unwrap_or_default()
}

/// Reads a value, and refuses bytes after it.
pub(crate) fn decode<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Option<T> {
    let (value, rest) = postcard::take_from_bytes(bytes).ok()?;
    rest.is_empty().then_some(value)
}

/// SHA-256 of `parts` under a domain, each preceded by its length.
pub(crate) fn digest(domain: &str, parts: &[&[u8]]) -> Digest {
    let mut hash = Sha256::new();
    hash.update(b"SMT transform ");
    for part in [domain.as_bytes()].iter().chain(parts) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

fn sign(key: &SigningKey, digest: &[u8; 32]) -> SignatureBytes {
    let signature = key.sign(digest);
    [*signature.r_bytes(), *signature.s_bytes()]
}

fn verifies(key: &PublicKey, digest: &[u8; 32], [r, s]: &SignatureBytes) -> bool {
    let signature = Signature::from_components(*r, *s);
    VerifyingKey::from_bytes(key).is_ok_and(|key| key.verify_strict(digest, &signature).is_ok())
}
