// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ephemeral key pairs made ahead of time (paper §4.5.1), so that a handshake does not wait for
//! them.
//!
//! 1. [`KeyPairPool::start`] begins a thread that keeps pools of the process full.
//! 2. Each handshake takes a key pair from its group's pool, and makes one if the pool is empty.
//! 3. The thread makes new ones when no handshake has taken any for a while.
//!
//! Not here: which group a handshake uses (`tls/algorithms.rs`).

mod pooled_group;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

pub(crate) use self::pooled_group::PooledGroup;
use crate::tls::algorithms::Group;

/// Keeps key pairs ready for all handshakes of this process, as long as it lives.
///
/// A key pair is used once, by whichever endpoint needs one next: for the client's share, and for
/// the server's answer where the group is a Diffie-Hellman one (an answer to ML-KEM has no key pair
/// of its own). A pair may be as old as the pool: an attacker who reads the memory of the process
/// before a session begins reads that session's key too. The last keeper that is dropped takes the
/// key pairs along.
#[derive(Debug)]
pub struct KeyPairPool {
    shared: Arc<Shared>,
    groups: Vec<&'static PooledGroup>,
    thread: Option<JoinHandle<()>>,
}

impl KeyPairPool {
    /// Begins to keep up to `size` key pairs of each of these groups, at most
    /// [`KEY_PAIRS_MAX`]. A key pair takes some hundred bytes, and 3 KB with ML-KEM.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(groups: impl IntoIterator<Item = Group>, size: usize) -> io::Result<Self> {
        Self::of(groups.into_iter().map(Group::pool).collect(), size)
    }

    fn of(groups: Vec<&'static PooledGroup>, size: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        for group in &groups {
            group.keep(&shared);
        }
        let filler = Filler {
            shared: Arc::clone(&shared),
            groups: groups.clone(),
            size: size.min(KEY_PAIRS_MAX),
        };
        // A failure drops the filler, which gives the pools up.
        let thread = std::thread::Builder::new().name("smt-key-pairs".to_owned());
        let thread = thread.spawn(move || filler.run())?;
        Ok(Self { shared, groups, thread: Some(thread) })
    }
}

impl KeyPairPool {
    /// How many key pairs are ready in the emptiest of its groups.
    pub fn ready(&self) -> usize {
        let ready = self.groups.iter().map(|group| group.ready());
        ready.min().unwrap_or_default()
    }
}

impl Drop for KeyPairPool {
    fn drop(&mut self) {
        self.shared.stop();
        if let Some(thread) = self.thread.take() {
            // A panic there was told there, and took nothing from a handshake.
            drop(thread.join());
        }
    }
}

/// The most key pairs of one group.
pub const KEY_PAIRS_MAX: usize = 1_024;

/// Key pairs are replaced when none was taken for so long: a handshake that has taken one shall
/// have the processor for itself.
const QUIET: Duration = Duration::from_millis(10);

/// The thread's part.
struct Filler {
    shared: Arc<Shared>,
    groups: Vec<&'static PooledGroup>,
    size: usize,
}

impl Filler {
    fn run(self) {
        loop {
            let has_failed = self
                .groups
                .iter()
                .any(|group| group.fill(self.size, || self.shared.is_stopped()).is_err());
            // Without random bytes no handshake works either: it says so, and this thread waits.
            if self.shared.wait(has_failed) {
                return;
            }
        }
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        for group in &self.groups {
            group.give_up(&self.shared);
        }
    }
}

/// The state that a pool's keeper, its thread and handshakes share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_stopped: bool,
    /// The thread waits for a key pair to be taken; it looks by itself otherwise.
    is_asleep: bool,
    /// Key pairs taken since the thread looked.
    taken: u64,
}

impl Shared {
    /// A handshake has taken a key pair.
    fn took(&self) {
        let mut state = self.lock();
        state.taken += 1;
        // At most one handshake of many wakes the thread.
        if std::mem::take(&mut state.is_asleep) {
            self.changed.notify_one();
        }
    }

    fn stop(&self) {
        self.lock().is_stopped = true;
        self.changed.notify_one();
    }

    fn is_stopped(&self) -> bool {
        self.lock().is_stopped
    }

    /// Waits until key pairs were taken, and none for a while. Returns whether to stop.
    fn wait(&self, has_failed: bool) -> bool {
        let mut state = self.lock();
        if has_failed {
            state.taken = 0;
        }
        while state.taken == 0 && !state.is_stopped {
            state.is_asleep = true;
            state = recovered(self.changed.wait(state));
        }
        while state.taken > 0 && !state.is_stopped {
            state.taken = 0;
            (state, _) = recovered(self.changed.wait_timeout(state, QUIET));
        }
        state.is_stopped
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        recovered(self.state.lock())
    }
}

/// Counters and flags stay true if their holder panics.
fn recovered<T>(locked: Result<T, PoisonError<T>>) -> T {
    locked.unwrap_or_else(PoisonError::into_inner)
}
