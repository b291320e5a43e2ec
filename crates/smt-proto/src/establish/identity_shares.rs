// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The sessions of each identity that clients have proved (SPEC §10). Not here: which of them is
//! given up for another, and when.

use alloc::vec::Vec;
use core::num::NonZeroU64;

use smt_record::HashProvider;
use smt_wire::SessionIndex;

use crate::collections::id_map::{IdMap, Salt};
use crate::key_exchange::PeerIdentity;

/// An identity in short: of a leaf certificate, a public key, or the name of a registered key. Two
/// identities that are alike here share one bound.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct IdentityHash(NonZeroU64);

impl IdentityHash {
    /// The hash of an identity; `None` of a client that has proved none.
    pub(crate) fn of(peer: &PeerIdentity, hash: &dyn HashProvider) -> Option<Self> {
        let certificate = peer.certificates.first().map(|leaf| (&b"certificate"[..], &leaf[..]));
        let public_key = peer.public_key.as_ref().map(|key| (&b"public key"[..], &key[..]));
        let key_name = peer.key_name.as_ref().map(|name| (&b"registered key"[..], &name[..]));
        let (kind, bytes) = certificate.or(public_key).or(key_name)?;
        let hash = hash.sha256(&[kind, bytes]);
        let first = hash.first_chunk()?;
        // Zero, one of 2^64, counts as no identity.
        NonZeroU64::new(u64::from_be_bytes(*first)).map(Self)
    }
}

/// The live sessions of clients by their identity.
#[derive(Debug)]
pub(crate) struct IdentityShares(IdMap<Vec<SessionIndex>>);

impl IdentityShares {
    pub(crate) fn new(salt: Salt) -> Self {
        Self(IdMap::new(salt))
    }

    /// Adds a session. Returns how many its identity has now.
    pub(crate) fn add(&mut self, identity: IdentityHash, session: SessionIndex) -> usize {
        if let Some(sessions) = self.0.get_mut(identity.0.get()) {
            sessions.push(session);
            return sessions.len();
        }
        self.0.insert(identity.0.get(), [session].into());
        1
    }

    /// Takes a session out that has ended.
    pub(crate) fn remove(&mut self, identity: IdentityHash, session: SessionIndex) {
        let Some(sessions) = self.0.get_mut(identity.0.get()) else {
            return;
        };
        sessions.retain(|other| *other != session);
        if sessions.is_empty() {
            self.0.remove(identity.0.get());
        }
    }

    /// The sessions of an identity, the oldest first.
    pub(crate) fn of(&self, identity: IdentityHash) -> &[SessionIndex] {
        self.0.get(identity.0.get()).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smt_record::AwsLc;
    use std::prelude::v1::*;

    fn hash_of(peer: &PeerIdentity) -> Option<IdentityHash> {
        IdentityHash::of(peer, &AwsLc)
    }

    #[test]
    fn identities_of_different_kinds_are_different_and_nobody_has_none() {
        let nobody = PeerIdentity::default();
        let certificate = PeerIdentity { certificates: vec![vec![1]], ..nobody.clone() };
        let key = PeerIdentity { public_key: Some([1].into()), ..nobody.clone() };
        let name = PeerIdentity { key_name: Some(vec![1]), ..nobody.clone() };
        let [one, other, third] = [&certificate, &key, &name].map(|peer| hash_of(peer).unwrap());
        assert!(one != other && other != third && one != third);
        assert_eq!(hash_of(&nobody), None);
        let longer = PeerIdentity { certificates: vec![vec![1], vec![2]], ..nobody };
        assert_eq!(hash_of(&longer), Some(one), "the chain is not it");
    }

    #[test]
    fn sessions_are_counted_by_identity() {
        let mut shares = IdentityShares::new(Salt(7));
        let [one, other] = [1, 2].map(|number| IdentityHash(NonZeroU64::new(number).unwrap()));
        for number in 1..=3 {
            assert_eq!(shares.add(one, SessionIndex(number)), number as usize);
        }
        assert_eq!(shares.add(other, SessionIndex(6)), 1);
        shares.remove(one, SessionIndex(1));
        shares.remove(one, SessionIndex(9));
        assert_eq!(shares.of(one), [SessionIndex(2), SessionIndex(3)]);
        shares.remove(other, SessionIndex(6));
        shares.remove(other, SessionIndex(6));
        assert!(shares.of(other).is_empty());
        assert_eq!(shares.0.len(), 1);
    }
}
