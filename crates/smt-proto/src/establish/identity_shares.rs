// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The sessions of each identity that clients have proved (SPEC §10). Not here: which of them is
//! given up for another, and when.

use alloc::collections::{BTreeMap, BTreeSet};
use core::ops::Bound;

use smt_record::HashProvider;
use smt_wire::SessionIndex;

use crate::key_exchange::PeerIdentity;

/// An identity: a hash of the leaf certificate, of the public key, or of the name of the registered
/// key.
pub(crate) type IdentityHash = [u8; 32];

/// The hash of an identity; `None` of a client that has proved none.
pub(crate) fn identity_hash(peer: &PeerIdentity, hash: &dyn HashProvider) -> Option<IdentityHash> {
    let (kind, bytes): (&[u8], &[u8]) = match peer {
        PeerIdentity { certificates, .. } if !certificates.is_empty() => {
            (b"certificate", certificates.first()?)
        }
        PeerIdentity { public_key: Some(key), .. } => (b"public key", key),
        PeerIdentity { key_name: Some(name), .. } => (b"registered key", name),
        _ => return None,
    };
    Some(hash.sha256(&[kind, bytes]))
}

/// The live sessions of clients by their identity.
#[derive(Debug, Default)]
pub(crate) struct IdentityShares {
    sessions: BTreeMap<IdentityHash, OneIdentity>,
    of: BTreeMap<SessionIndex, IdentityHash>,
}

#[derive(Debug, Default)]
struct OneIdentity {
    sessions: BTreeSet<SessionIndex>,
    /// The session that was looked at last when one was to be given up: the next look goes on
    /// behind it.
    looked_at: Option<SessionIndex>,
}

impl IdentityShares {
    /// Adds a session. Returns how many its identity has now.
    pub(crate) fn add(&mut self, identity: IdentityHash, session: SessionIndex) -> usize {
        self.of.insert(session, identity);
        let one = self.sessions.entry(identity).or_default();
        one.sessions.insert(session);
        one.sessions.len()
    }

    /// Takes a session out that has ended.
    pub(crate) fn remove(&mut self, session: SessionIndex) {
        let Some(identity) = self.of.remove(&session) else {
            return;
        };
        if let Some(one) = self.sessions.get_mut(&identity) {
            one.sessions.remove(&session);
            if one.sessions.is_empty() {
                self.sessions.remove(&identity);
            }
        }
    }

    /// The sessions of an identity, `most` of them at most; each call begins behind those of the
    /// one before.
    pub(crate) fn look_at(
        &mut self,
        identity: &IdentityHash,
        most: usize,
    ) -> BTreeSet<SessionIndex> {
        let Some(one) = self.sessions.get_mut(identity) else {
            return BTreeSet::new();
        };
        let from = one.looked_at.unwrap_or(SessionIndex(0));
        let behind = one.sessions.range((Bound::Excluded(from), Bound::Unbounded));
        let around = one.sessions.range(..=from);
        let mut looked_at = BTreeSet::new();
        for session in behind.chain(around).take(most) {
            one.looked_at = Some(*session);
            looked_at.insert(*session);
        }
        looked_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smt_record::AwsLc;
    use std::prelude::v1::*;

    #[test]
    fn identities_of_different_kinds_are_different_and_nobody_has_none() {
        let nobody = PeerIdentity::default();
        let certificate = PeerIdentity { certificates: vec![vec![1]], ..nobody.clone() };
        let key = PeerIdentity { public_key: Some([1].into()), ..nobody.clone() };
        let name = PeerIdentity { key_name: Some(vec![1]), ..nobody.clone() };
        let hashes = [&certificate, &key, &name].map(|peer| identity_hash(peer, &AwsLc).unwrap());
        assert_eq!(BTreeSet::from(hashes).len(), 3);
        assert_eq!(identity_hash(&nobody, &AwsLc), None);
        let renewed = PeerIdentity { certificates: vec![vec![1], vec![2]], ..nobody };
        assert_eq!(identity_hash(&renewed, &AwsLc).unwrap(), hashes[0], "the chain is not it");
    }

    #[test]
    fn sessions_are_counted_by_identity_and_looked_at_by_turns() {
        let mut shares = IdentityShares::default();
        for number in 1..=5 {
            assert_eq!(shares.add([1; 32], SessionIndex(number)), number as usize);
        }
        assert_eq!(shares.add([2; 32], SessionIndex(6)), 1);
        let numbers = |shares: &mut IdentityShares| -> Vec<u64> {
            shares.look_at(&[1; 32], 3).into_iter().map(|session| session.0).collect()
        };
        assert_eq!(numbers(&mut shares), [1, 2, 3]);
        assert_eq!(numbers(&mut shares), [1, 4, 5]);
        shares.remove(SessionIndex(3));
        assert_eq!(shares.add([1; 32], SessionIndex(7)), 5);
        shares.remove(SessionIndex(6));
        shares.remove(SessionIndex(6));
        assert!(shares.look_at(&[2; 32], 9).is_empty());
        assert_eq!(shares.of.len(), 5);
    }
}
