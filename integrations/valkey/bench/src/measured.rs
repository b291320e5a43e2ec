// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The outcome of one measurement.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::way::Way;
use crate::workload::Workload;

/// A workload by a way.
pub(crate) struct Measured {
    pub(crate) workload: Workload,
    pub(crate) size: usize,
    pub(crate) way: Way,
    /// Operations a second.
    pub(crate) rate: f64,
    /// Microseconds of an operation.
    pub(crate) latency: Histogram<u64>,
    /// CPU of the server for an operation.
    pub(crate) cpu: Duration,
    /// Microseconds of each new session beside the load, until its first reply.
    pub(crate) sessions: Histogram<u64>,
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} {:>4} B {:8} {:>8.0} op/s   p50 {:>6} us   p99 {:>6} us   server {:>5.1} us/op",
            self.workload,
            self.size,
            self.way.name(),
            self.rate,
            self.latency.value_at_quantile(0.5),
            self.latency.value_at_quantile(0.99),
            self.cpu.as_secs_f64() * 1e6
        )?;
        match self.sessions.len() {
            0 => Ok(()),
            count => {
                let [half, most] = [0.5, 0.99].map(|q| self.sessions.value_at_quantile(q));
                write!(f, "   {count} new sessions: p50 {half} us, p99 {most} us")
            }
        }
    }
}
