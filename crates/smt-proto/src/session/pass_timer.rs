// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When the timers of a session may have something to do.

use core::time::Duration;

use crate::time::Time;

/// The earliest moment that any timer of a session waits for. Timers run in passes, and a pass
/// comes no sooner after the one before than its grain.
#[derive(Clone, Copy, Debug)]
pub(super) struct PassTimer {
    due: Option<Time>,
    /// No pass runs before this moment.
    earliest: Time,
}

impl PassTimer {
    /// A timer that is due at once.
    pub(super) fn new(now: Time) -> Self {
        Self { due: Some(now), earliest: now }
    }

    /// Sets a timer that is due at this time, or as soon after it as a pass may run.
    pub(super) fn set(&mut self, due: Time) {
        let due = due.max(self.earliest);
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
    }

    /// Sets a timer that may have nothing to wait for.
    pub(super) fn set_if(&mut self, due: Option<Time>) {
        if let Some(due) = due {
            self.set(due);
        }
    }

    /// When the next pass is due.
    pub(super) fn due(&self) -> Option<Time> {
        self.due
    }

    /// Begins a pass if one is due: each timer then sets its next moment anew.
    pub(super) fn start_pass(&mut self, now: Time) -> bool {
        let is_due = self.due.is_some_and(|due| due <= now);
        if is_due {
            self.due = None;
        }
        is_due
    }

    /// Ends a pass: the next one comes after `grain` at the earliest.
    pub(super) fn end_pass(&mut self, now: Time, grain: Duration) {
        self.earliest = now + grain;
        self.due = self.due.map(|due| due.max(self.earliest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::default() + Duration::from_millis(millis)
    }

    #[test]
    fn the_earliest_of_all_timers_counts() {
        let mut timer = PassTimer::new(at(0));
        assert!(timer.start_pass(at(0)) && !timer.start_pass(at(0)));
        for millis in [30, 10, 20] {
            timer.set(at(millis));
        }
        assert_eq!(timer.due(), Some(at(10)));
        assert!(!timer.start_pass(at(9)) && timer.start_pass(at(10)));
        assert_eq!(timer.due(), None);
    }

    #[test]
    fn passes_keep_their_distance_whatever_is_due_between_them() {
        let mut timer = PassTimer::new(at(0));
        timer.start_pass(at(0));
        timer.set(at(1));
        timer.end_pass(at(0), Duration::from_millis(5));
        assert_eq!(timer.due(), Some(at(5)));
        timer.start_pass(at(5));
        timer.end_pass(at(5), Duration::from_millis(5));
        timer.set(at(6));
        assert_eq!(timer.due(), Some(at(10)));
    }
}
