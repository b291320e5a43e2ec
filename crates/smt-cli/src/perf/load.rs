// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A closed loop: each caller begins its next call when it has its reply.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hdrhistogram::Histogram;

use super::api::Api;
use super::caller::Caller;
use crate::failure::{Doing, Failure};
use crate::size::Size;

/// A transport that can be measured.
pub(super) trait Transport {
    /// Its name in tables and JSON.
    fn name(&self) -> &'static str;

    /// The interface that is used for `concurrency` concurrent calls.
    fn api(&self, concurrency: usize) -> Api;

    /// Opens all that `concurrency` concurrent calls need, so that opening is not measured.
    fn open(&self, concurrency: usize) -> Result<Box<dyn Load + '_>, Failure>;

    /// CPU time used so far by the process that serves `concurrency` concurrent calls.
    fn server_cpu(&self, concurrency: usize) -> Result<Duration, Failure>;
}

/// Concurrent callers, ready to call.
pub(super) trait Load {
    /// Calls for `duration`, and gives the time of each call in nanoseconds.
    fn run(&mut self, size: Size, duration: Duration) -> Result<Histogram<u64>, Failure>;
}

/// Callers with a thread each.
pub(super) struct Threads<C>(pub(super) Vec<C>);

impl<C: Caller> Load for Threads<C> {
    fn run(&mut self, size: Size, duration: Duration) -> Result<Histogram<u64>, Failure> {
        let round = Round { begin: Barrier::new(self.0.len()), is_failed: AtomicBool::new(false) };
        let request = request_of(size);
        std::thread::scope(|scope| {
            let one = |caller| scope.spawn(|| run_one(caller, &request, duration, &round));
            let threads: Vec<_> = self.0.iter_mut().map(one).collect();
            let mut total = histogram()?;
            for thread in threads {
                let part = thread.join().map_err(|_| {
                    Failure::of(smt::Fault::Environment, "a measuring thread has died")
                })??;
                total.add(part).doing("adding histograms")?;
            }
            Ok(total)
        })
    }
}

/// Threads that begin together, and end early if one of them fails.
struct Round {
    begin: Barrier,
    is_failed: AtomicBool,
}

fn run_one(
    caller: &mut impl Caller,
    request: &Bytes,
    duration: Duration,
    round: &Round,
) -> Result<Histogram<u64>, Failure> {
    let mut times = histogram();
    round.begin.wait();
    let end = Instant::now() + duration;
    let mut began = Instant::now();
    while began < end && !round.is_failed.load(Ordering::Relaxed) {
        let outcome = caller.call(request).and_then(|length| check(length, request));
        if let Err(failure) = outcome {
            round.is_failed.store(true, Ordering::Relaxed);
            return Err(failure);
        }
        let now = Instant::now();
        if let Ok(times) = &mut times {
            record(times, now - began);
        }
        began = now;
    }
    times
}

/// An empty histogram of nanoseconds up to a minute, three digits exact.
pub(super) fn histogram() -> Result<Histogram<u64>, Failure> {
    Histogram::new_with_bounds(1, TIME_NS_MAX, 3).doing("making a histogram")
}

/// Notes the time of a call.
pub(super) fn record(times: &mut Histogram<u64>, time: Duration) {
    times.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(TIME_NS_MAX));
}

/// Bytes to be sent; zeros.
pub(super) fn request_of(size: Size) -> Bytes {
    vec![0; size.0 as usize].into()
}

/// A reply of another length is no reply of this measurement's server.
pub(super) fn check(length: usize, request: &Bytes) -> Result<(), Failure> {
    if length == request.len() {
        return Ok(());
    }
    Err(Failure::of(
        smt::Fault::Peer,
        format!(
            "the server replied with {length} bytes to {}: it is no `smt perf server`",
            request.len()
        ),
    ))
}

/// Longer calls count as a minute.
const TIME_NS_MAX: u64 = 60_000_000_000;
