// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replies of nodes, signed one by one or many together.

use ed25519_dalek::SigningKey;
use serde::{Deserialize, Serialize};

use crate::client_table::Refusal;
use crate::digest::{Digest, digest};
use crate::encoding::encode;
use crate::group::PublicKey;
use crate::request::SYSTEM;
use crate::signed_together::{KnownRoots, Proof, WAY_MAX};

/// The kind of what is signed.
const REPLIES: &str = "replies";

/// The word of a node on a request. Its host signs it, and no device attests it: it is no statement
/// on the order of requests, and takes no counter of the stream.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Reply {
    /// The node.
    pub replica: u32,
    /// The view in which the node is. It tells the client where the leader is.
    pub view: u64,
    /// The client.
    pub client: u32,
    /// The request's number.
    pub number: u64,
    /// The digest of the request, with its nonce.
    pub request: Digest,
    /// The service's answer, or why the request is not executed.
    pub result: Result<Vec<u8>, Refusal>,
    /// The proof that the node's host has signed all this.
    pub proof: Proof,
}

impl Reply {
    /// Signs the reply with the key of the node's host.
    #[must_use]
    pub fn sign(mut self, key: &SigningKey) -> Self {
        let proofs = Proof::of_all(REPLIES, vec![self.digest()], key);
        self.proof = proofs.into_iter().next().unwrap_or_default();
        self
    }

    /// Signs replies together, with one signature.
    #[must_use]
    pub fn sign_all(mut replies: Vec<Self>, key: &SigningKey) -> Vec<Self> {
        let proofs = Proof::of_all(REPLIES, replies.iter().map(Self::digest).collect(), key);
        for (reply, proof) in replies.iter_mut().zip(proofs) {
            reply.proof = proof;
        }
        replies
    }

    /// Whether the owner of `key` has signed this reply, alone or with others.
    #[must_use]
    pub fn is_signed_by(&self, key: &PublicKey, known: &KnownRoots) -> bool {
        known.proves(key, (REPLIES, self.digest(), WAY_MAX), &self.proof)
    }

    fn digest(&self) -> Digest {
        let (replica, view) = (self.replica.to_be_bytes(), self.view.to_be_bytes());
        let (client, number) = (self.client.to_be_bytes(), self.number.to_be_bytes());
        let result = encode(&self.result);
        digest(SYSTEM, "reply", &[&replica, &view, &client, &number, &self.request, &result])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_that_was_changed_is_signed_by_nobody() {
        let key = SigningKey::from_bytes(&[5; 32]);
        let reply = |number: u64| {
            let (request, result) = ([7; 32], Ok(number.to_be_bytes().to_vec()));
            let proof = Proof::default();
            Reply { replica: 1, view: 2, client: 3, number, request, result, proof }
        };
        let signed = Reply::sign_all((0..5).map(reply).collect(), &key);
        let public = key.verifying_key().to_bytes();
        let is_signed = |it: &Reply| it.is_signed_by(&public, &KnownRoots::default());
        assert!(signed.iter().all(is_signed));
        assert!(is_signed(&reply(1).sign(&key)));
        let good = &signed[2];
        let changed = [
            Reply { replica: 2, ..good.clone() },
            Reply { view: 3, ..good.clone() },
            Reply { client: 4, ..good.clone() },
            Reply { number: 9, ..good.clone() },
            Reply { request: [8; 32], ..good.clone() },
            Reply { result: Ok(b"other".to_vec()), ..good.clone() },
        ];
        assert!(!changed.iter().any(is_signed));
    }
}
