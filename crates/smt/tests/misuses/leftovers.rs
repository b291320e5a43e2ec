// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Threads and descriptors of this process.

use std::fs;
use std::time::{Duration, Instant};

/// How many there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leftovers {
    threads: usize,
    descriptors: usize,
}

impl Leftovers {
    pub(crate) fn now() -> Self {
        let entries = |directory| fs::read_dir(directory).expect("this is Linux").count();
        Self { threads: entries("/proc/self/task"), descriptors: entries("/proc/self/fd") }
    }

    /// Tells what is there in addition, and does not go. Threads end a little later than what they
    /// served; a minute is never.
    pub(crate) fn defect(self, done: &str) -> Option<String> {
        let began = Instant::now();
        loop {
            let now = Self::now();
            if now.threads <= self.threads && now.descriptors <= self.descriptors {
                return None;
            }
            if began.elapsed() > Duration::from_secs(60) {
                return Some(format!("{done}: {self:?} have become {now:?}"));
            }
            std::thread::yield_now();
        }
    }
}
