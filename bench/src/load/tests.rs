// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Open loops of all kinds of callers tell the same of the same server.

use std::time::Instant;

use bytes::Bytes;

use super::*;
use crate::job::{Flavor, GroupFindings};

/// A call that takes the given time.
struct Slow(Duration);

impl ThreadCaller for Slow {
    fn call(&mut self, request: &Bytes) -> Result<usize, Failure> {
        std::thread::sleep(self.0);
        Ok(request.len())
    }
}

impl TaskCaller for Slow {
    async fn call(&mut self, request: &Bytes) -> Result<usize, Failure> {
        tokio::time::sleep(self.0).await;
        Ok(request.len())
    }
}

/// One connection of the same.
struct SlowExchange {
    takes: Duration,
    calls: Vec<(u32, usize, Instant)>,
}

impl Exchange for SlowExchange {
    fn connections(&self) -> usize {
        1
    }

    fn begin(&mut self, _: usize, number: u32, request: &Bytes) -> Result<(), Failure> {
        let ends = Instant::now() + self.takes;
        self.calls.push((number, request.len(), ends));
        Ok(())
    }

    fn turn(&mut self, _: Duration, ended: &mut Vec<(u32, usize)>) -> Result<(), Failure> {
        let now = Instant::now();
        let of_now = self.calls.extract_if(.., |(_, _, ends)| *ends <= now);
        ended.extend(of_now.map(|(number, length, _)| (number, length)));
        Ok(())
    }
}

/// The findings of two callers of each kind, whose calls take `takes` each.
fn found(takes: Duration, finish: Duration) -> [GroupFindings; 3] {
    let hands = || vec![vec![Slow(takes)], vec![Slow(takes)]];
    let exchange = SlowExchange { takes, calls: Vec::new() };
    let kinds: [Box<dyn Callers>; 3] = [
        Box::new(Threads(hands())),
        Box::new(Tasks::new(runtime(Flavor::CurrentThread).unwrap(), hands())),
        Box::new(Turns::new(exchange, 2)),
    ];
    kinds.map(|mut callers| GroupFindings::of(&callers.open(64, arrivals(finish)).unwrap()))
}

fn arrivals(finish: Duration) -> Arrivals {
    Arrivals::new(200.0, Duration::from_millis(100), 7).with_finish(finish)
}

const SOON: Duration = Duration::from_millis(600);

#[test]
fn calls_that_do_not_end_count_with_their_age() {
    let (mut ages, mut dues) = (Vec::new(), arrivals(SOON));
    let limit = dues.limit();
    ages.extend(dues.map(|due| (limit - due).as_secs_f64() * 1e6));
    for found in found(Duration::from_millis(900), SOON) {
        assert_eq!((found.calls, found.unfinished), (0, ages.len() as u64));
        // Times have three digits.
        assert!((found.max_us / ages[0] - 1.0).abs() < 2e-3, "{found:?}");
        let median = ages[ages.len() / 2];
        assert!((found.p50_us / median - 1.0).abs() < 2e-3, "{found:?}");
        assert_eq!(found.per_second, 0.0);
    }
}

#[test]
fn those_that_waited_too_long_for_a_caller_count_too() {
    for found in found(Duration::from_millis(250), SOON) {
        // Two callers end at most four calls within the 700 ms; fewer if something holds them up.
        assert!(found.calls <= 4, "{found:?}");
        assert_eq!(found.calls + found.unfinished, arrivals(SOON).count() as u64);
        assert!(found.p99_us > 600_000.0, "{found:?}");
    }
}

#[test]
fn all_end_where_nothing_is_slow() {
    // However long this host is held up.
    for found in found(Duration::ZERO, Duration::from_secs(600)) {
        assert_eq!((found.calls, found.unfinished), (arrivals(SOON).count() as u64, 0));
    }
}
