// SPDX-License-Identifier: Apache-2.0 OR MIT
//! For how long commands gather while the owner of a polled endpoint works through events: then
//! they leave together.
//!
//! A system call, and above all the wake-up of the peer that comes of it, takes 10 us on some
//! machines and 70 on others. So that sending takes a fifth of the time at most, what comes next
//! gathers for four times as long as the last took; at least 50 us, in which a full bundle comes
//! together, and at most a millisecond, however much was sent.

use std::time::Duration;

/// The time in which commands gather.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchWindow(Duration);

impl Default for BatchWindow {
    fn default() -> Self {
        Self(LEAST)
    }
}

impl BatchWindow {
    /// After what had gathered before took so long to be sent.
    pub(super) fn after(sending: Duration) -> Self {
        Self((sending * 4).clamp(LEAST, MOST))
    }

    /// How long.
    pub(super) fn time(self) -> Duration {
        self.0
    }
}

const LEAST: Duration = Duration::from_micros(50);
const MOST: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sending_takes_a_fifth_of_the_time_within_bounds() {
        let times = [1, 20, 100, 10_000].map(|sending| {
            let batch_window = BatchWindow::after(Duration::from_micros(sending));
            batch_window.time().as_micros()
        });
        assert_eq!(times, [50, 80, 400, 1_000]);
    }
}
