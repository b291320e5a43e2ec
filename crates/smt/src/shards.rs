// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The shards of an endpoint, and which of them a thread uses.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The shards of one client or server, in the order of their numbers.
///
/// Each shard is an endpoint of its own, with socket, sessions, timers, limits and lock. Shards
/// share nothing that is written while messages travel. The shards of a server are given to threads
/// or tasks one by one. The shards of a client are kept together, and each thread uses the one that
/// is [`here`](Self::here).
#[derive(Debug)]
pub struct Shards<T>(Box<[T]>);

impl<T> Shards<T> {
    pub(crate) fn new(shards: Vec<T>) -> Self {
        assert!(!shards.is_empty(), "there is at least one shard");
        Self(shards.into_boxed_slice())
    }

    /// The first shard, where there is one alone.
    pub(crate) fn into_only(self) -> T {
        let first = self.into_iter().next();
        first.expect("there is at least one shard")
    }

    /// Returns the shard of the calling thread. A thread keeps to one shard, and threads get shards
    /// in turn.
    #[must_use]
    pub fn here(&self) -> &T {
        &self.0[THREAD_NUMBER.with(|number| *number) % self.0.len()]
    }
}

impl<T> Deref for Shards<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> IntoIterator for Shards<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_vec().into_iter()
    }
}

thread_local! {
    /// Drawn once per thread, so that later looks write nothing.
    static THREAD_NUMBER: usize = NEXT_THREAD.fetch_add(1, Ordering::Relaxed);
}

/// Threads that have asked.
static NEXT_THREAD: AtomicUsize = AtomicUsize::new(0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_to_its_shard() {
        let shards = Shards::new(vec![0, 1, 2, 3]);
        let first = shards.here();
        assert!((0..100).all(|_| shards.here() == first));
    }

    #[test]
    fn threads_get_shards_in_turn() {
        let shards = Shards::new(vec![0, 1]);
        let drawn: Vec<i32> = (0..100)
            .map(|_| std::thread::scope(|scope| scope.spawn(|| *shards.here()).join().unwrap()))
            .collect();
        // Other tests have threads too: not every turn is ours.
        assert!(drawn.contains(&0) && drawn.contains(&1));
    }
}
