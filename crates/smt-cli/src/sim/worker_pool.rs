// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Threads that play seeds.
//!
//! 1. Each thread takes the next seed, says so, plays it, and tells the outcome.
//! 2. [`WorkerPool::next`] collects that. A seed that takes too long is reported and its thread
//!    left behind: virtual time cannot pass in a case that loops.
//! 3. After [`WorkerPool::stop`] no seed is begun.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::played::{Played, STUCK};
use super::seeds::Seeds;
use crate::failure::{Doing, Failure};
use crate::time_span;

/// Threads at work.
#[derive(Debug)]
pub(super) struct WorkerPool {
    messages: Receiver<(usize, Message)>,
    is_over: Arc<AtomicBool>,
    /// The threads that are waited for, each with its seed and since when.
    at_work: BTreeMap<usize, Option<(u64, Instant)>>,
    time_limit: Duration,
}

/// A report of the pool.
#[derive(Debug)]
pub(super) enum News {
    /// Nothing yet.
    None,
    /// A seed has been played.
    Played(Box<Played>),
    /// All have.
    Over,
}

#[derive(Debug)]
enum Message {
    Begins(u64),
    Played(Box<Played>),
    Leaves,
}

impl WorkerPool {
    /// Starts `threads` threads that play seeds; a seed may take `time_limit`.
    pub(super) fn start(
        threads: usize,
        time_limit: Duration,
        seeds: Seeds,
        play: fn(u64) -> Played,
    ) -> Result<Self, Failure> {
        let (sender, messages) = channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let seeds = Arc::new(Mutex::new(seeds));
        for number in 0..threads {
            let worker = Worker {
                number,
                sender: sender.clone(),
                is_over: Arc::clone(&is_over),
                seeds: Arc::clone(&seeds),
                play,
            };
            std::thread::Builder::new()
                .name(format!("sim {number}"))
                .spawn(move || worker.work())
                .doing("starting a thread")?;
        }
        Ok(Self {
            messages,
            is_over,
            at_work: (0..threads).map(|number| (number, None)).collect(),
            time_limit,
        })
    }

    /// The next result, for which it waits at most `wait`.
    pub(super) fn next(&mut self, wait: Duration) -> News {
        if self.at_work.is_empty() {
            return News::Over;
        }
        if let Some(stuck) = self.give_up_one(self.time_limit) {
            return stuck;
        }
        let (number, message) = match self.messages.recv_timeout(wait) {
            Ok(told) => told,
            Err(RecvTimeoutError::Timeout) => return News::None,
            // Threads that left without a word: whatever they played has not ended.
            Err(RecvTimeoutError::Disconnected) => {
                return self.give_up_one(Duration::ZERO).unwrap_or(News::Over);
            }
        };
        match message {
            Message::Begins(seed) => {
                self.at_work.insert(number, Some((seed, Instant::now())));
            }
            Message::Played(played) => {
                // Without a seed it has come to its end after it was given up.
                if let Some(Some(_)) = self.at_work.insert(number, None) {
                    return News::Played(played);
                }
            }
            Message::Leaves => {
                self.at_work.remove(&number);
            }
        }
        News::None
    }

    /// Lets the threads end after the seeds that they play now.
    pub(super) fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn give_up_one(&mut self, limit: Duration) -> Option<News> {
        let (number, seed) = self.at_work.iter().find_map(|(number, work)| {
            let (seed, since) = (*work)?;
            (since.elapsed() >= limit).then_some((*number, seed))
        })?;
        self.at_work.remove(&number);
        let text = format!(
            "the case has not ended within {} of real time",
            time_span::display(self.time_limit)
        );
        let played = Played::without_end(seed, STUCK, text);
        Some(News::Played(Box::new(played)))
    }
}

/// One thread.
struct Worker {
    number: usize,
    sender: Sender<(usize, Message)>,
    is_over: Arc<AtomicBool>,
    seeds: Arc<Mutex<Seeds>>,
    play: fn(u64) -> Played,
}

impl Worker {
    fn work(&self) {
        while !self.is_over.load(Ordering::Relaxed) {
            let seed = {
                let mut seeds = self.seeds.lock().unwrap_or_else(PoisonError::into_inner);
                seeds.next()
            };
            let Some(seed) = seed else {
                break;
            };
            self.tell(Message::Begins(seed));
            self.tell(Message::Played(Box::new((self.play)(seed))));
        }
        self.tell(Message::Leaves);
    }

    fn tell(&self, message: Message) {
        // The receiver is gone once the command ends; the threads end with it.
        let _ = self.sender.send((self.number, message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::panics;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn well(seed: u64) -> Played {
        Played { seed, findings: Vec::new(), verdict: None }
    }

    /// Multiples of 10 panic.
    fn fragile(seed: u64) -> Played {
        let result = panics::catch(|| assert!(!seed.is_multiple_of(10), "seed {seed} broke"));
        match result {
            Ok(()) => well(seed),
            Err(text) => Played::without_end(seed, "Panic", text),
        }
    }

    fn endless(_: u64) -> Played {
        loop {
            std::thread::park();
        }
    }

    /// Everything that a pool tells, in the order of the seeds.
    fn all(mut pool: WorkerPool, wait: Duration) -> Vec<Played> {
        let mut all = Vec::new();
        loop {
            match pool.next(wait) {
                News::None => {}
                News::Played(played) => all.push(*played),
                News::Over => break,
            }
        }
        all.sort_by_key(|played| played.seed);
        all
    }

    #[test]
    fn every_seed_is_played_once_by_any_number_of_threads() {
        for threads in [1, 2, 7] {
            let seeds = Seeds::counted(Some(1), Some(100));
            let pool = WorkerPool::start(threads, HOUR, seeds, well).unwrap();
            let played = all(pool, HOUR).iter().map(|played| played.seed).collect::<Vec<_>>();
            assert_eq!(played, (1..=100).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_panic_is_the_failure_of_its_seed_alone() {
        let seeds = Seeds::counted(Some(1), Some(100));
        let played = all(WorkerPool::start(2, HOUR, seeds, fragile).unwrap(), HOUR);
        assert_eq!(played.len(), 100);
        let failed: Vec<_> = played.iter().filter(|played| played.has_failed()).collect();
        assert_eq!(failed.len(), 10);
        for played in failed {
            let told = &played.findings[0].text;
            assert!(told.ends_with(&format!("seed {} broke", played.seed)), "{told}");
        }
    }

    #[test]
    fn nothing_is_begun_after_the_stop() {
        let seeds = Seeds::counted(Some(1), None);
        let mut pool = WorkerPool::start(2, HOUR, seeds, well).unwrap();
        while !matches!(pool.next(HOUR), News::Played(_)) {}
        pool.stop();
        // It would not come back if it went on.
        all(pool, HOUR);
    }

    #[test]
    fn a_case_without_end_is_given_up() {
        let seeds = Seeds::counted(Some(7), Some(1));
        let pool = WorkerPool::start(1, Duration::ZERO, seeds, endless).unwrap();
        let played = all(pool, Duration::from_millis(1));
        assert_eq!((played.len(), played[0].seed), (1, 7));
        assert_eq!(played[0].findings[0].checker, STUCK);
    }
}
