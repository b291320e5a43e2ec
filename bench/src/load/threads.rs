// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A thread for each caller.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{Arrivals, Callers, Group, Tally, check};
use crate::failure::Failure;
use crate::frame;

/// One way to call, used by one thread at a time.
pub(crate) trait ThreadCaller: Send {
    /// Sends `request`, waits for the reply, and gives its length.
    fn call(&mut self, request: &Bytes) -> Result<usize, Failure>;
}

/// Callers; each has one connection or takes several in turn.
pub(crate) struct Threads<C>(pub(crate) Vec<Vec<C>>);

impl<C: ThreadCaller> Callers for Threads<C> {
    fn closed(&mut self, groups: &[Group], duration: Duration) -> Result<Vec<Tally>, Failure> {
        let count = groups.iter().map(|group| group.callers).sum();
        let barrier = Barrier::new(count);
        let is_failed = AtomicBool::new(false);
        let (barrier, is_failed) = (&barrier, &is_failed);
        std::thread::scope(|scope| {
            let mut hands = self.0.iter_mut();
            let mut started = Vec::new();
            for group in groups {
                let threads = hands.by_ref().take(group.callers);
                started.push(
                    threads
                        .map(|hand| {
                            scope.spawn(move || {
                                barrier.wait();
                                let outcome = call_until(hand, *group, duration, is_failed);
                                is_failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
                                outcome
                            })
                        })
                        .collect::<Vec<_>>(),
                );
            }
            let mut tallies = Vec::new();
            for threads in started {
                tallies.push(join(threads)?);
            }
            Ok(tallies)
        })
    }

    fn open(&mut self, size: u32, arrivals: Arrivals) -> Result<Tally, Failure> {
        let request = frame::request(size, size);
        let barrier = Barrier::new(self.0.len());
        let mut arrivals = Mutex::new(arrivals);
        let mut tally = std::thread::scope(|scope| {
            let (request, arrivals, barrier) = (&request, &arrivals, &barrier);
            let threads = self
                .0
                .iter_mut()
                .map(|hand| scope.spawn(move || call_when_due(hand, request, arrivals, barrier)));
            join(threads.collect())
        })?;
        let arrivals = arrivals.get_mut().unwrap_or_else(PoisonError::into_inner);
        tally.end(arrivals.began());
        Ok(tally)
    }
}

fn join(
    threads: Vec<std::thread::ScopedJoinHandle<'_, Result<Tally, Failure>>>,
) -> Result<Tally, Failure> {
    let mut total = Tally::new()?;
    for thread in threads {
        let part = thread.join().map_err(|_| Failure::new("a calling thread has died"))??;
        total.add(&part)?;
    }
    Ok(total)
}

fn call_until<C: ThreadCaller>(
    hand: &mut [C],
    group: Group,
    duration: Duration,
    is_failed: &AtomicBool,
) -> Result<Tally, Failure> {
    let request = group.message();
    let mut tally = Tally::new()?;
    let began = Instant::now();
    let mut last = began;
    let mut turn = 0;
    while last - began < duration && !is_failed.load(Ordering::Relaxed) {
        check(hand[turn].call(&request)?, group.reply)?;
        turn = (turn + 1) % hand.len();
        let now = Instant::now();
        tally.record(now - last);
        last = now;
    }
    tally.end(began);
    Ok(tally)
}

/// One idle thread at a time waits for the next arrival; it looks at the clock and yields, since a
/// sleep would end late. A call that blocks cannot be given up: one that ends after the limit
/// counts as unfinished then.
fn call_when_due<C: ThreadCaller>(
    hand: &mut [C],
    request: &Bytes,
    arrivals: &Mutex<Arrivals>,
    barrier: &Barrier,
) -> Result<Tally, Failure> {
    let tally = Tally::new();
    // The first call is due when all can call: to start a hundred threads takes longer than most
    // calls do.
    barrier.wait();
    let mut tally = tally?;
    loop {
        let (due, limit) = {
            let mut arrivals = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(due) = arrivals.next() else { break };
            while Instant::now() < due {
                std::thread::yield_now();
            }
            (due, arrivals.limit())
        };
        if Instant::now() > limit {
            tally.record_unfinished(due, limit);
            continue;
        }
        check(hand[0].call(request)?, request.len() as u32)?;
        tally.record_until(due, Instant::now(), limit);
    }
    Ok(tally)
}
