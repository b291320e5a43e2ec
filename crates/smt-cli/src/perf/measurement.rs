// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One result: measured, made the median of its repetitions, and shown.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::Serialize;

use super::api::Api;
use super::cpu;
use super::load::Transport;
use super::plan::Case;
use crate::failure::Failure;

/// The figures of one transport in one case. Times in microseconds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Measurement {
    pub(super) transport: &'static str,
    pub(super) api: Api,
    pub(super) size: u64,
    pub(super) concurrency: usize,
    pub(super) repetitions: usize,
    /// Calls of all repetitions.
    pub(super) calls: u64,
    #[serde(flatten)]
    pub(super) values: Values,
}

/// The numbers; each is the median of its own over the repetitions.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Values {
    pub(super) p50_us: f64,
    pub(super) p90_us: f64,
    pub(super) p99_us: f64,
    #[serde(rename = "p99.9_us")]
    pub(super) p999_us: f64,
    pub(super) max_us: f64,
    pub(super) rpc_per_s: f64,
    /// Application bytes of requests; as many come back.
    pub(super) goodput_mb_per_s: f64,
    pub(super) client_cpu_us_per_rpc: f64,
    pub(super) server_cpu_us_per_rpc: f64,
}

/// The processor time that the two sides of a measurement have used.
#[derive(Clone, Copy)]
struct CpuTimes {
    client: Duration,
    server: Duration,
}

impl Measurement {
    /// Measures once, after a warm-up.
    pub(super) fn take(
        transport: &dyn Transport,
        case: Case,
        duration: Duration,
    ) -> Result<Self, Failure> {
        let mut load = transport.open(case.concurrency)?;
        load.run(case.size, (duration / 10).min(WARM_UP_MAX))?;
        let (server, client) = (transport.server_cpu(case.concurrency)?, cpu::used());
        let began = Instant::now();
        let times = load.run(case.size, duration)?;
        let elapsed = began.elapsed();
        let client = cpu::used().saturating_sub(client);
        let server = transport.server_cpu(case.concurrency)?.saturating_sub(server);
        Ok(Self {
            transport: transport.name(),
            api: transport.api(case.concurrency),
            size: case.size.0,
            concurrency: case.concurrency,
            repetitions: 1,
            calls: times.len(),
            values: Values::of(&times, case.size.0, elapsed, CpuTimes { client, server }),
        })
    }

    /// The medians of several; `None` of none.
    pub(super) fn median(parts: &[Self]) -> Option<Self> {
        let first = parts.first()?.clone();
        let of = |value: fn(&Values) -> f64| {
            let mut values: Vec<f64> = parts.iter().map(|part| value(&part.values)).collect();
            values.sort_by(f64::total_cmp);
            f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2])
        };
        Some(Self {
            repetitions: parts.len(),
            calls: parts.iter().map(|part| part.calls).sum(),
            values: Values {
                p50_us: of(|values| values.p50_us),
                p90_us: of(|values| values.p90_us),
                p99_us: of(|values| values.p99_us),
                p999_us: of(|values| values.p999_us),
                max_us: of(|values| values.max_us),
                rpc_per_s: of(|values| values.rpc_per_s),
                goodput_mb_per_s: of(|values| values.goodput_mb_per_s),
                client_cpu_us_per_rpc: of(|values| values.client_cpu_us_per_rpc),
                server_cpu_us_per_rpc: of(|values| values.server_cpu_us_per_rpc),
            },
            ..first
        })
    }
}

impl Values {
    fn of(times: &Histogram<u64>, size: u64, elapsed: Duration, cpu: CpuTimes) -> Self {
        let calls = times.len().max(1) as f64;
        let at = |quantile| times.value_at_quantile(quantile) as f64 / 1e3;
        let rpc_per_s = times.len() as f64 / elapsed.as_secs_f64();
        Self {
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: times.max() as f64 / 1e3,
            rpc_per_s,
            goodput_mb_per_s: rpc_per_s * size as f64 / 1e6,
            client_cpu_us_per_rpc: cpu.client.as_secs_f64() * 1e6 / calls,
            server_cpu_us_per_rpc: cpu.server.as_secs_f64() * 1e6 / calls,
        }
    }
}

/// Enough to fill caches and to find the size of datagrams.
const WARM_UP_MAX: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::load::{histogram, record};

    fn of(times_us: &[u64]) -> Measurement {
        let mut times = histogram().unwrap();
        for us in times_us {
            record(&mut times, Duration::from_micros(*us));
        }
        let cpu = CpuTimes { client: Duration::from_micros(30), server: Duration::from_micros(60) };
        Measurement {
            transport: "smt",
            api: Api::Blocking,
            size: 1_000,
            concurrency: 1,
            repetitions: 1,
            calls: times.len(),
            values: Values::of(&times, 1_000, Duration::from_secs(1), cpu),
        }
    }

    mod values {
        use super::*;

        #[test]
        fn are_per_call_and_second() {
            let values = of(&[10, 20, 30]).values;
            assert!((values.p50_us - 20.0).abs() < 0.1);
            assert!((values.rpc_per_s - 3.0).abs() < 1e-9);
            assert!((values.goodput_mb_per_s - 0.003).abs() < 1e-9);
            assert!((values.client_cpu_us_per_rpc - 10.0).abs() < 1e-9);
            assert!((values.server_cpu_us_per_rpc - 20.0).abs() < 1e-9);
        }
    }

    mod median {
        use super::*;

        #[test]
        fn is_of_each_number_and_calls_are_summed() {
            let parts = [of(&[10]), of(&[90, 90, 90]), of(&[20, 20])];
            let median = Measurement::median(&parts).unwrap();
            assert!((median.values.p50_us - 20.0).abs() < 0.1);
            assert!((median.values.rpc_per_s - 2.0).abs() < 1e-9);
            assert_eq!((median.repetitions, median.calls), (3, 6));
            assert!(Measurement::median(&[]).is_none());
        }
    }
}
