// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Times of many calls.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Times of calls, or of batches of so many calls.
#[derive(Clone)]
pub(crate) struct Times {
    nanoseconds: Vec<u64>,
    batch: usize,
    is_sorted: bool,
}

impl Times {
    pub(crate) fn of_batches(batch: usize) -> Self {
        Self { nanoseconds: Vec::new(), batch, is_sorted: true }
    }

    pub(crate) fn time<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let made = black_box(call());
        self.add(begin.elapsed());
        made
    }

    pub(crate) fn add(&mut self, time: Duration) {
        self.nanoseconds.push(time.as_nanos() as u64);
        self.is_sorted = false;
    }

    /// Microseconds of a call in the mean.
    pub(crate) fn mean(&self) -> f64 {
        let sum: u64 = self.nanoseconds.iter().sum();
        sum as f64 / 1e3 / (self.nanoseconds.len() * self.batch).max(1) as f64
    }

    /// Microseconds of a call that this share of all stay below.
    pub(crate) fn below(&mut self, share: f64) -> f64 {
        if !self.is_sorted {
            self.nanoseconds.sort_unstable();
            self.is_sorted = true;
        }
        let last = self.nanoseconds.len().saturating_sub(1);
        let place = (share * last as f64).round() as usize;
        self.nanoseconds.get(place).map_or(0.0, |it| *it as f64 / 1e3 / self.batch as f64)
    }

    /// Calls in a second, by the quickest batch: what other processes take is left out.
    pub(crate) fn rate(&mut self) -> f64 {
        1e6 / self.below(0.0).max(f64::MIN_POSITIVE)
    }
}

/// Microseconds or a rate, short.
pub(crate) fn told(value: f64) -> String {
    smt_report::number(value)
}
