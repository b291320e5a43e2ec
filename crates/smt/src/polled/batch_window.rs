// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The time for which commands are corked while the owner of a polled endpoint works through
//! events: then they leave together.
//!
//! A system call, and above all the wake-up of the peer that comes of it, takes 10 us on some
//! machines and 70 on others. Sending shall take a fifth of the time at most. Commands are
//! therefore corked for four times as long as the last sending took: for at least 50 us, in which a
//! full bundle comes together, and for at most a millisecond, however much was sent.

use std::time::Duration;

/// The time for which commands are corked.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchWindow(Duration);

impl Default for BatchWindow {
    fn default() -> Self {
        Self(LEAST)
    }
}

impl BatchWindow {
    /// The window after a sending that took this long.
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
