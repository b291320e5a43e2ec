// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The timeouts of a replica of `minbft`, in ticks.

use std::collections::BTreeMap;
use std::time::Duration;

use minbft::output::TimeoutRequest;
use minbft::timeout::{StopClass, Timeout, TimeoutType};

/// A tick in the time of `minbft`, which adds and doubles durations and reads no clock for them.
const TICK: Duration = Duration::from_secs(1);

/// Ticks as `minbft` counts time.
pub(crate) fn ticks(count: u32) -> Duration {
    TICK * count
}

/// One timeout of each type, by the rules of `MinBft::handle_timeout`.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    now: u64,
    running: BTreeMap<TimeoutType, (u64, StopClass)>,
}

impl Timers {
    /// Does what a replica asks for.
    pub(crate) fn take(&mut self, request: &TimeoutRequest) {
        match request {
            TimeoutRequest::Start(timeout) => self.start(timeout),
            TimeoutRequest::Stop(timeout) => {
                let running = self.running.get(&timeout.timeout_type);
                if running.is_some_and(|it| it.1 == timeout.stop_class) {
                    self.running.remove(&timeout.timeout_type);
                }
            }
            TimeoutRequest::StopAny(timeout) => {
                self.running.remove(&timeout.timeout_type);
            }
        }
    }

    /// A timeout that runs is not started again.
    fn start(&mut self, timeout: &Timeout) {
        let end = self.now + timeout.duration.as_secs().max(1);
        self.running.entry(timeout.timeout_type).or_insert((end, timeout.stop_class));
    }

    /// A tick passes. The timeouts that end with it do not run any more.
    pub(crate) fn tick(&mut self) -> Vec<TimeoutType> {
        self.now += 1;
        let has_ended = |it: &(u64, StopClass)| it.0 <= self.now;
        let ended: Vec<_> =
            self.running.iter().filter(|it| has_ended(it.1)).map(|it| *it.0).collect();
        self.running.retain(|_, it| !has_ended(it));
        ended
    }
}

#[cfg(test)]
mod tests {
    use shared_ids::ClientId;

    use super::*;

    fn of_client(client: u64, count: u32) -> Timeout {
        Timeout::client(ClientId::from_u64(client), ticks(count))
    }

    #[test]
    fn a_timeout_ends_once_and_a_running_one_is_not_started_again() {
        let mut timers = Timers::default();
        timers.take(&TimeoutRequest::Start(of_client(1, 2)));
        timers.take(&TimeoutRequest::Start(of_client(2, 9)));
        assert_eq!(timers.tick(), []);
        assert_eq!(timers.tick(), [TimeoutType::Client]);
        assert_eq!(timers.tick(), []);
    }

    #[test]
    fn a_timeout_of_another_client_is_not_stopped() {
        let mut timers = Timers::default();
        timers.take(&TimeoutRequest::Start(of_client(1, 1)));
        timers.take(&TimeoutRequest::Stop(of_client(2, 0)));
        assert_eq!(timers.tick(), [TimeoutType::Client]);
        timers.take(&TimeoutRequest::Start(of_client(1, 1)));
        timers.take(&TimeoutRequest::Stop(of_client(1, 0)));
        assert_eq!(timers.tick(), []);
    }
}
