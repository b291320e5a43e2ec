// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Fair closings: what comes of a state when the network is perfect, and liars are silent.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use crate::{Cluster, State, System};

/// Ticks of a closing. Timeouts double: all that was wanted before has an end within these.
pub(crate) const TICKS: u32 = 2000;

/// All that tells the states of correct nodes from others.
type Key = Vec<[u8; 32]>;

/// The closings that were played, by the states of the correct nodes.
#[derive(Default)]
pub(crate) struct Closings(Mutex<HashMap<Key, bool>>);

impl Closings {
    /// Whether `closes` holds without each of the sets of nodes that `crashes` gives. `every` says
    /// that one state of so many is closed, which is a matter of what its nodes are.
    pub(crate) fn hold<S: System>(
        &self,
        (of, state): (&Cluster<S>, &State),
        every: u64,
        crashes: impl FnOnce() -> Vec<Vec<u32>>,
        closes: impl Fn(&[u32]) -> bool,
    ) -> bool {
        let key: Key = { of.see(state) }.iter().map(|it| it.1.view.fingerprint).collect();
        let mut hash = DefaultHasher::new();
        key.hash(&mut hash);
        if !hash.finish().is_multiple_of(every.max(1)) {
            return true;
        }
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
        known.unwrap_or_else(|| {
            let holds = crashes().into_iter().all(|crashed| {
                of.counts().close();
                closes(&crashed)
            });
            self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, holds);
            holds
        })
    }
}

/// The sets of nodes that may crash, where `spare` may: none, and all of the largest size.
pub(crate) fn crashes(nodes: &[u32], spare: usize) -> Vec<Vec<u32>> {
    let sets = 1_u32..1 << nodes.len();
    let sets = sets.filter(|set| set.count_ones() as usize == spare);
    let chosen = |set: u32| (0..).zip(nodes).filter(move |it| set >> it.0 & 1 == 1);
    let sets = sets.map(|set| chosen(set).map(|it| *it.1).collect());
    [Vec::new()].into_iter().chain(sets).collect()
}
