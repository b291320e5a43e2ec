// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replies of nodes, signed one by one or many together.
//!
//! A signature costs more than all else of a reply. The replies of a batch therefore have one, over
//! the root of a Merkle tree of their hashes (as Basil's, Suri-Payer et al., SOSP 2021, §4.4): each
//! of them has the hashes beside its way to the root.

use ed25519_dalek::SigningKey;
use serde::{Deserialize, Serialize};

use crate::digest::{Digest, digest};
use crate::group::PublicKey;
use crate::request::{SYSTEM, SignatureBytes, sign, verifies};

/// Hashes on the way of a reply to its root, at most: 65,536 replies have one signature.
const WAY_MAX: usize = 16;

/// A node's answer. Its host signs it, and no device attests it: it is no statement on the order of
/// requests, and takes no counter of the stream.
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
    /// The digest of the request that was executed under this number, with its nonce.
    pub request: Digest,
    /// The service's answer.
    pub result: Vec<u8>,
    /// The proof that the node's host has signed all this.
    pub proof: ReplyProof,
}

/// The proof that a reply is one of those under a signature.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct ReplyProof {
    /// The sides of the tree on which the way to the root comes up: one bit a level from below, set
    /// for the right one.
    pub sides: u32,
    /// The hashes beside the way from the reply to the root, from below.
    pub way: Vec<Digest>,
    /// The signature over the root.
    pub signature: SignatureBytes,
}

impl Reply {
    /// Signs the reply with the key of the node's host.
    #[must_use]
    pub fn sign(mut self, key: &SigningKey) -> Self {
        let signature = sign(key, &root(&self.digest()));
        self.proof = ReplyProof { sides: 0, way: Vec::new(), signature };
        self
    }

    /// Signs replies together, with one signature.
    #[must_use]
    pub fn sign_all(mut replies: Vec<Self>, key: &SigningKey) -> Vec<Self> {
        let mut level: Vec<Digest> = replies.iter().map(Self::digest).collect();
        let mut proofs = vec![ReplyProof::default(); replies.len()];
        // The places of the replies in this level of the tree.
        let mut places: Vec<usize> = (0..replies.len()).collect();
        while level.len() > 1 {
            for (proof, place) in proofs.iter_mut().zip(&mut places) {
                // The last one of an odd number goes up as it is.
                if let Some(beside) = level.get(*place ^ 1) {
                    proof.sides |= u32::from(*place % 2 == 1) << proof.way.len();
                    proof.way.push(*beside);
                }
                *place /= 2;
            }
            level = level.chunks(2).filter_map(|it| it.iter().copied().reduce(above)).collect();
        }
        let signature = level.first().map_or([[0; 32]; 2], |it| sign(key, &root(it)));
        for (reply, proof) in replies.iter_mut().zip(proofs) {
            reply.proof = ReplyProof { signature, ..proof };
        }
        replies
    }

    /// Whether the owner of `key` has signed this reply, alone or with others.
    #[must_use]
    pub fn is_signed_by(&self, key: &PublicKey) -> bool {
        let ReplyProof { sides, way, signature } = &self.proof;
        let sides = (0..WAY_MAX).map(|level| sides >> level & 1 == 1);
        let top = way.iter().zip(sides).fold(self.digest(), |below, (beside, is_right)| {
            if is_right { above(*beside, below) } else { above(below, *beside) }
        });
        way.len() <= WAY_MAX && verifies(key, &root(&top), signature)
    }

    fn digest(&self) -> Digest {
        let (replica, view) = (self.replica.to_be_bytes(), self.view.to_be_bytes());
        let (client, number) = (self.client.to_be_bytes(), self.number.to_be_bytes());
        digest(SYSTEM, "reply", &[&replica, &view, &client, &number, &self.request, &self.result])
    }
}

/// The hash over two neighbours of the tree.
fn above(left: Digest, right: Digest) -> Digest {
    digest(SYSTEM, "replies", &[&left, &right])
}

/// The hash that is signed: no hash within a tree is one.
fn root(top: &Digest) -> Digest {
    digest(SYSTEM, "root of replies", &[top])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn replies(count: u64) -> Vec<Reply> {
        let reply = |number: u64| {
            let (request, result) = ([7; 32], number.to_be_bytes().to_vec());
            let proof = ReplyProof::default();
            Reply { replica: 1, view: 2, client: 3, number, request, result, proof }
        };
        (0..count).map(reply).collect()
    }

    fn keys() -> (SigningKey, PublicKey) {
        let key = SigningKey::from_bytes(&[5; 32]);
        let public = key.verifying_key().to_bytes();
        (key, public)
    }

    #[test]
    fn replies_that_are_signed_together_have_one_signature_and_each_proves_itself() {
        let (key, public) = keys();
        for count in 1..=33 {
            let signed = Reply::sign_all(replies(count), &key);
            assert!(signed.iter().all(|it| it.is_signed_by(&public)), "{count}");
            let first = signed[0].proof.signature;
            assert!(signed.iter().all(|it| it.proof.signature == first));
            let longest = signed.iter().map(|it| it.proof.way.len()).max().unwrap();
            assert!(longest <= count.next_power_of_two().ilog2() as usize, "{count}");
        }
        assert_eq!(Reply::sign_all(Vec::new(), &key), []);
        let [one] = <[Reply; 1]>::try_from(Reply::sign_all(replies(1), &key)).unwrap();
        assert_eq!(one, replies(1).remove(0).sign(&key));
    }

    #[test]
    fn a_reply_that_was_changed_or_stands_elsewhere_proves_nothing() {
        let (key, public) = keys();
        let signed = Reply::sign_all(replies(5), &key);
        let good = &signed[2];
        let mut beside = good.proof.way.clone();
        beside[1][0] ^= 1;
        let of_proof = |proof: ReplyProof| Reply { proof, ..good.clone() };
        let changed = [
            Reply { number: 9, ..good.clone() },
            Reply { result: b"other".to_vec(), ..good.clone() },
            of_proof(ReplyProof { sides: 3, ..good.proof.clone() }),
            of_proof(ReplyProof { way: beside, ..good.proof.clone() }),
            of_proof(ReplyProof { way: Vec::new(), ..good.proof.clone() }),
            of_proof(ReplyProof { signature: [[1; 32]; 2], ..good.proof.clone() }),
            of_proof(signed[3].proof.clone()),
        ];
        assert!(good.is_signed_by(&public));
        for reply in changed {
            assert!(!reply.is_signed_by(&public), "{reply:?}");
        }
    }

    #[test]
    fn a_way_that_is_longer_than_any_tree_is_refused() {
        let (key, public) = keys();
        let mut reply = replies(1).remove(0);
        reply.proof.way = vec![[3; 32]; WAY_MAX + 1];
        let top =
            reply.proof.way.iter().fold(reply.digest(), |below, beside| above(below, *beside));
        reply.proof.signature = sign(&key, &root(&top));
        assert!(!reply.is_signed_by(&public));
        reply.proof.way.pop();
        let top =
            reply.proof.way.iter().fold(reply.digest(), |below, beside| above(below, *beside));
        reply.proof.signature = sign(&key, &root(&top));
        assert!(reply.is_signed_by(&public));
    }
}
