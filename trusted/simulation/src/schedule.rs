// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events of a run, by time.

use std::collections::BTreeMap;

/// Events in the order of their times. Two at one time are in the order of their planning.
#[derive(Clone, Debug)]
pub struct Schedule<E> {
    now: u64,
    planned: u64,
    events: BTreeMap<(u64, u64), E>,
}

impl<E> Default for Schedule<E> {
    fn default() -> Self {
        Self { now: 0, planned: 0, events: BTreeMap::new() }
    }
}

impl<E> Schedule<E> {
    /// The time of the last event that happened.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Plans an event.
    pub fn at(&mut self, time: u64, event: E) {
        self.planned += 1;
        self.events.insert((time, self.planned), event);
    }

    /// The next event, which happens now.
    pub fn pop(&mut self) -> Option<E> {
        let ((time, _), event) = self.events.pop_first()?;
        self.now = time;
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_happen_in_the_order_of_their_times_and_then_of_their_planning() {
        let mut schedule = Schedule::default();
        for (time, event) in [(5, 'c'), (2, 'a'), (5, 'd'), (3, 'b')] {
            schedule.at(time, event);
        }
        let mut happened = Vec::new();
        while let Some(event) = schedule.pop() {
            happened.push((schedule.now(), event));
        }
        assert_eq!(happened, [(2, 'a'), (3, 'b'), (5, 'c'), (5, 'd')]);
    }
}
