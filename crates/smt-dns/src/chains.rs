// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Certificate chains that are kept for records without one, by their SHA-256 (SPEC §6.7, §6.9).

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use smt_handshake::chain_hash;

use crate::limits::{CHAIN_CERTIFICATES_MAX, CHAINS_MAX};

/// Chains of earlier sessions by TLS, of files and of records. Cheap to clone: all clones are one.
///
/// Nothing here need be trusted: a ticket's verification judges its chain.
#[derive(Clone, Debug, Default)]
pub struct KnownChains(Arc<Mutex<Chains>>);

#[derive(Debug, Default)]
struct Chains {
    by_hash: BTreeMap<[u8; 32], Vec<Vec<u8>>>,
    oldest_first: VecDeque<[u8; 32]>,
}

impl KnownChains {
    /// No chains.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps a chain, leaf first in DER: that of a session's peer (`Peer::certificates`), or of a
    /// file. Chains of no or more than ten certificates are not kept; of more than 4,096 chains the
    /// first is forgotten.
    pub fn insert(&self, chain: &[Vec<u8>]) {
        if chain.is_empty() || chain.len() > CHAIN_CERTIFICATES_MAX {
            return;
        }
        let hash = chain_hash(chain);
        let mut chains = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if chains.by_hash.insert(hash, chain.to_vec()).is_some() {
            return;
        }
        chains.oldest_first.push_back(hash);
        if chains.oldest_first.len() > CHAINS_MAX
            && let Some(oldest) = chains.oldest_first.pop_front()
        {
            chains.by_hash.remove(&oldest);
        }
    }

    /// The chain of this hash.
    #[must_use]
    pub fn get(&self, hash: &[u8; 32]) -> Option<Vec<Vec<u8>>> {
        let chains = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        chains.by_hash.get(hash).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_found_by_its_hash_and_the_oldest_is_forgotten() {
        let chains = KnownChains::new();
        let chain = |number: usize| vec![number.to_be_bytes().to_vec()];
        for number in 0..=CHAINS_MAX {
            chains.insert(&chain(number));
        }
        assert_eq!(chains.get(&chain_hash(&chain(0))), None);
        assert_eq!(chains.get(&chain_hash(&chain(1))), Some(chain(1)));
    }

    #[test]
    fn chains_without_measure_are_not_kept() {
        let chains = KnownChains::new();
        let long = vec![vec![1]; CHAIN_CERTIFICATES_MAX + 1];
        chains.insert(&long);
        chains.insert(&[]);
        assert_eq!(chains.get(&chain_hash(&long)), None);
        assert_eq!(chains.get(&chain_hash::<Vec<u8>>(&[])), None);
    }
}
