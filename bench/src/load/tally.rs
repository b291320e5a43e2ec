// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Times of calls, and the figures made of them.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::failure::Failure;
use crate::job::GroupFindings;

/// Times of one or many callers.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    times: Histogram<u64>,
    unfinished: u64,
    per_second: f64,
}

impl Tally {
    /// Nothing yet.
    pub(crate) fn new() -> Result<Self, Failure> {
        Ok(Self {
            times: Histogram::new_with_bounds(1, TIME_NS_MAX, 3)?,
            unfinished: 0,
            per_second: 0.0,
        })
    }

    /// Notes the time of a call.
    pub(crate) fn record(&mut self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(TIME_NS_MAX);
        self.times.saturating_record(nanoseconds);
    }

    /// A call should have begun at `due`, and had not ended at `limit`. Its age counts as its time:
    /// left out, it would make a slow peer look fast.
    pub(crate) fn record_unfinished(&mut self, due: Instant, limit: Instant) {
        self.record(limit.saturating_duration_since(due));
        self.unfinished += 1;
    }

    /// A call that should have begun at `due` has ended at `ended`, perhaps too late.
    pub(crate) fn record_until(&mut self, due: Instant, ended: Instant, limit: Instant) {
        match ended <= limit {
            true => self.record(ended - due),
            false => self.record_unfinished(due, limit),
        }
    }

    /// A caller has made its last call just now.
    pub(crate) fn end(&mut self, began: Instant) {
        self.per_second = self.finished() as f64 / began.elapsed().as_secs_f64();
    }

    /// All callers together took this long.
    pub(crate) fn took(&mut self, time: Duration) {
        self.per_second = self.finished() as f64 / time.as_secs_f64();
    }

    fn finished(&self) -> u64 {
        self.times.len() - self.unfinished
    }

    /// Takes in what another caller did at the same time.
    pub(crate) fn add(&mut self, other: &Self) -> Result<(), Failure> {
        self.times.add(&other.times)?;
        self.unfinished += other.unfinished;
        self.per_second += other.per_second;
        Ok(())
    }
}

impl GroupFindings {
    /// In microseconds.
    pub(crate) fn of(tally: &Tally) -> Self {
        let at = |quantile| tally.times.value_at_quantile(quantile) as f64 / 1e3;
        Self {
            calls: tally.finished(),
            unfinished: tally.unfinished,
            per_second: tally.per_second,
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: tally.times.max() as f64 / 1e3,
        }
    }
}

/// Longer calls count as a minute.
const TIME_NS_MAX: u64 = 60_000_000_000;
