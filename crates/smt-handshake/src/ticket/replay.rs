// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The randoms of the clients whose early data was taken by a ticket, for as long as its key is
//! answered to: a flight that comes again is not delivered again.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Randoms that were seen. It forgets none: when it is full it takes no more.
#[derive(Debug)]
pub(super) struct ReplayMemory {
    seen: Mutex<BTreeSet<[u8; 32]>>,
    most: usize,
}

impl ReplayMemory {
    const fn of(most: usize) -> Self {
        Self { seen: Mutex::new(BTreeSet::new()), most }
    }

    /// Whether a random is seen for the first time. It is from now on seen; if there is no memory
    /// to keep it, it counts as seen.
    pub(super) fn is_first(&self, random: [u8; 32]) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.len() < self.most && seen.insert(random)
    }
}

impl Default for ReplayMemory {
    fn default() -> Self {
        Self::of(SEEN_MAX)
    }
}

/// Flights with early data of one ticket: some 3 MB at most.
const SEEN_MAX: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_is_first_once_and_none_is_when_the_memory_is_full() {
        let memory = ReplayMemory::of(2);
        assert!(memory.is_first([1; 32]));
        assert!(!memory.is_first([1; 32]));
        assert!(memory.is_first([2; 32]));
        assert!(!memory.is_first([3; 32]));
        assert!(!memory.is_first([1; 32]), "nothing is forgotten");
    }

    #[test]
    fn one_of_several_threads_that_show_a_random_is_first() {
        let memory = ReplayMemory::default();
        let firsts: usize = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| usize::from(memory.is_first([7; 32])))).collect();
            let joined = threads.into_iter().map(|thread| thread.join());
            joined.map(Result::unwrap_or_default).sum()
        });
        assert_eq!(firsts, 1);
    }
}
