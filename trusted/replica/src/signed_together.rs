// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One signature for several messages.
//!
//! A signature costs more than all else of a request or a reply. Those that are made together
//! therefore have one, over the root of a Merkle tree of their hashes (as Basil's, Suri-Payer et
//! al., SOSP 2021, §4.4): each of them has the hashes beside its way to the root.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use ed25519_dalek::SigningKey;
use serde::{Deserialize, Serialize};

use crate::digest::{Digest, digest};
use crate::group::PublicKey;
use crate::request::{SYSTEM, SignatureBytes, sign, verifies};

/// Hashes on the way of a message to its root, at most: 65,536 messages have one signature.
pub(crate) const WAY_MAX: usize = 16;

/// Signatures of roots that are known to be genuine, at most.
const KNOWN_MAX: usize = 256;

/// The proof that a message is one of those under a signature.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Proof {
    /// The sides of the tree on which the way to the root comes up: one bit a level from below, set
    /// for the right one.
    pub sides: u32,
    /// The hashes beside the way from the message to the root, from below.
    pub way: Vec<Digest>,
    /// The signature over the root.
    pub signature: SignatureBytes,
}

impl Proof {
    /// The proofs of messages with these hashes, which one signature covers.
    pub(crate) fn of_all(kind: &str, mut level: Vec<Digest>, key: &SigningKey) -> Vec<Self> {
        let mut proofs = vec![Self::default(); level.len()];
        // The places of the messages in this level of the tree.
        let mut places: Vec<usize> = (0..level.len()).collect();
        while level.len() > 1 {
            for (proof, place) in proofs.iter_mut().zip(&mut places) {
                // The last one of an odd number goes up as it is.
                if let Some(beside) = level.get(*place ^ 1) {
                    proof.sides |= u32::from(*place % 2 == 1) << proof.way.len();
                    proof.way.push(*beside);
                }
                *place /= 2;
            }
            let pairs = level.chunks(2);
            level = pairs
                .filter_map(|it| it.iter().copied().reduce(|a, b| above(kind, a, b)))
                .collect();
        }
        let signature = level.first().map_or([[0; 32]; 2], |it| sign(key, &root(kind, it)));
        proofs.iter_mut().for_each(|it| it.signature = signature);
        proofs
    }

    /// The hash that the signature covers, if the message has this one. Nothing if the way is
    /// longer than one of `way_max` hashes, or has sides beyond its end.
    fn root(&self, kind: &str, message: Digest, way_max: usize) -> Option<Digest> {
        let is_way = self.way.len() <= way_max.min(WAY_MAX) && self.sides >> self.way.len() == 0;
        let sides = (0..WAY_MAX).map(|level| self.sides >> level & 1 == 1);
        let top = self.way.iter().zip(sides).fold(message, |below, (beside, is_right)| {
            if is_right { above(kind, *beside, below) } else { above(kind, below, *beside) }
        });
        is_way.then(|| root(kind, &top))
    }
}

/// The hash over two neighbours of the tree.
fn above(kind: &str, left: Digest, right: Digest) -> Digest {
    digest(SYSTEM, "tree", &[kind.as_bytes(), &left, &right])
}

/// The hash that is signed: no hash within a tree is one.
fn root(kind: &str, top: &Digest) -> Digest {
    digest(SYSTEM, "root", &[kind.as_bytes(), top])
}

/// Roots whose signatures were verified, so that each is verified once: those of requests and
/// replies that came together. It does not change what is genuine.
#[derive(Debug, Default)]
pub struct KnownRoots(Mutex<VecDeque<(PublicKey, Digest, SignatureBytes)>>);

impl KnownRoots {
    /// Whether the owner of `key` has signed a message with this hash.
    pub(crate) fn proves(
        &self,
        key: &PublicKey,
        (kind, message, way_max): (&str, Digest, usize),
        proof: &Proof,
    ) -> bool {
        let Some(root) = proof.root(kind, message, way_max) else {
            return false;
        };
        let signed = (*key, root, proof.signature);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains(&signed) {
            return true;
        }
        let is_genuine = verifies(key, &root, &proof.signature);
        // A root of one message does not come again.
        if is_genuine && !proof.way.is_empty() {
            known.truncate(KNOWN_MAX - 1);
            known.push_front(signed);
        }
        is_genuine
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn messages(count: u8) -> Vec<Digest> {
        (0..count).map(|it| [it; 32]).collect()
    }

    fn keys() -> (SigningKey, PublicKey) {
        let key = SigningKey::from_bytes(&[5; 32]);
        let public = key.verifying_key().to_bytes();
        (key, public)
    }

    fn proves(message: Digest, proof: &Proof) -> bool {
        KnownRoots::default().proves(&keys().1, ("message", message, WAY_MAX), proof)
    }

    #[test]
    fn messages_that_are_signed_together_have_one_signature_and_each_proves_itself() {
        for count in 1..=33 {
            let proofs = Proof::of_all("message", messages(count), &keys().0);
            let all = || messages(count).into_iter().zip(&proofs);
            assert!(all().all(|(message, proof)| proves(message, proof)), "{count}");
            assert!(proofs.iter().all(|it| it.signature == proofs[0].signature));
            let longest = proofs.iter().map(|it| it.way.len()).max().unwrap();
            assert!(longest <= usize::from(count).next_power_of_two().ilog2() as usize, "{count}");
        }
        assert_eq!(Proof::of_all("message", Vec::new(), &keys().0), []);
    }

    #[test]
    fn a_proof_that_was_changed_or_stands_elsewhere_proves_nothing() {
        let proofs = Proof::of_all("message", messages(5), &keys().0);
        let good = &proofs[2];
        let mut beside = good.way.clone();
        beside[1][0] ^= 1;
        let changed = [
            Proof { sides: 3, ..good.clone() },
            // Beyond the way: else a signed message would have a form for each number.
            Proof { sides: good.sides | 1 << good.way.len(), ..good.clone() },
            Proof { sides: good.sides | 1 << 31, ..good.clone() },
            Proof { way: beside, ..good.clone() },
            Proof { way: Vec::new(), ..good.clone() },
            Proof { signature: [[1; 32]; 2], ..good.clone() },
            proofs[3].clone(),
        ];
        assert!(proves([2; 32], good) && !proves([3; 32], good));
        for proof in changed {
            assert!(!proves([2; 32], &proof), "{proof:?}");
        }
        let known = KnownRoots::default();
        assert!(!known.proves(&keys().1, ("other", [2; 32], WAY_MAX), good), "another kind");
        assert!(!known.proves(&keys().1, ("message", [2; 32], 2), good), "longer than it may be");
    }

    #[test]
    fn a_way_that_is_longer_than_any_tree_is_refused() {
        let mut proof = Proof { way: vec![[3; 32]; WAY_MAX + 1], ..Proof::default() };
        let sign_top = |proof: &mut Proof| {
            let top = proof.way.iter().fold([2; 32], |below, it| above("message", below, *it));
            proof.signature = sign(&keys().0, &root("message", &top));
        };
        sign_top(&mut proof);
        assert!(!proves([2; 32], &proof));
        proof.way.pop();
        sign_top(&mut proof);
        assert!(proves([2; 32], &proof));
    }

    #[test]
    fn roots_that_are_known_prove_what_their_signatures_prove_and_are_bounded() {
        let known = KnownRoots::default();
        let (key, public) = keys();
        for seed in 0..=KNOWN_MAX as u32 {
            let message =
                |it: u32| digest(SYSTEM, "test", &[&seed.to_be_bytes(), &it.to_be_bytes()]);
            let proofs = Proof::of_all("message", vec![message(0), message(1)], &key);
            for (place, proof) in (0..).zip(&proofs) {
                assert!(known.proves(&public, ("message", message(place), 1), proof));
                assert!(!known.proves(&public, ("message", message(1 - place), 1), proof));
                let of_other = SigningKey::from_bytes(&[6; 32]).verifying_key().to_bytes();
                assert!(!known.proves(&of_other, ("message", message(place), 1), proof));
            }
        }
        assert_eq!(known.0.lock().unwrap().len(), KNOWN_MAX);
    }
}
