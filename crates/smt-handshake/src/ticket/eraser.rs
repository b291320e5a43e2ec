// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Erases the keys of tickets that are over, whether clients come or not (SPEC §6.7).
//!
//! 1. The first key that is added starts a thread, which waits for the first end of all.
//! 2. At an end it tells its owner, which forgets the keys.
//! 3. It ends when no key is left, and with its owner.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The ends that are waited for.
#[derive(Debug, Default)]
pub(super) struct Eraser(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// In no order.
    ends: Vec<Instant>,
    is_running: bool,
    is_dropped: bool,
}

impl Eraser {
    /// Calls `erase` once `end` has come. One call may stand for several ends, and may be that of
    /// any of them.
    pub(super) fn at(&self, end: Instant, erase: impl Fn() + Send + 'static) {
        let mut state = self.0.lock();
        state.ends.push(end);
        if state.is_running {
            self.0.changed.notify_one();
            return;
        }
        let shared = Arc::clone(&self.0);
        let thread = std::thread::Builder::new().name("smt-ticket-keys".to_owned());
        // Without a thread a key is erased by the next client, or by the next key.
        state.is_running = thread.spawn(move || shared.run(&erase)).is_ok();
    }
}

impl Drop for Eraser {
    fn drop(&mut self) {
        self.0.lock().is_dropped = true;
        self.0.changed.notify_one();
    }
}

impl Shared {
    fn run(&self, erase: &dyn Fn()) {
        let mut state = self.lock();
        while let Some(end) = state.ends.iter().min().copied().filter(|_| !state.is_dropped) {
            let now = Instant::now();
            if now < end {
                let waited = self.changed.wait_timeout(state, end - now);
                (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.ends.retain(|end| *end > now);
            drop(state);
            erase();
            state = self.lock();
        }
        state.is_running = false;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};
    use std::time::Duration;

    use super::*;

    fn tell(sender: &Sender<()>) -> impl Fn() + Send + 'static {
        let sender = sender.clone();
        move || _ = sender.send(())
    }

    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn ends_are_told_though_a_later_one_came_first() {
        let (sender, told) = channel();
        let eraser = Eraser::default();
        eraser.at(Instant::now() + HOUR, tell(&sender));
        eraser.at(Instant::now() + Duration::from_millis(1), tell(&sender));
        told.recv().expect("the thread tells the end");
        assert_eq!(eraser.0.lock().ends.len(), 1);
    }

    #[test]
    fn an_end_after_all_others_are_over_is_told_too() {
        let (sender, told) = channel();
        let eraser = Eraser::default();
        for _ in 0..3 {
            eraser.at(Instant::now(), tell(&sender));
            told.recv().expect("a thread tells the end");
        }
    }

    #[test]
    fn the_thread_ends_with_its_owner() {
        let (sender, told) = channel();
        let eraser = Eraser::default();
        eraser.at(Instant::now() + HOUR, tell(&sender));
        drop((eraser, sender));
        assert!(told.recv().is_err(), "the thread has let go of the sender");
    }
}
