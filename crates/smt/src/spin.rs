// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Waiting that adapts: spin for a bounded time while what is waited for mostly comes within it,
//! else block.
//!
//! A sleep and a wake-up cost 7 us on some machines and 70 on others, which is more than the rest
//! of an unloaded round trip; there they cost more CPU than spinning does, too
//! (docs/lab/2026-11-23.md). Spinning yields the core between looks, so that a peer on
//! the same core is not starved.
//!
//! 1. The one who begins to wait asks whether that may be spun for ([`Spin::begin`]), and tells
//!    whether it came in time ([`Spin::hit`], [`Spin::miss`]), or how long was slept for it
//!    ([`Spin::slept`]).
//! 2. Time is spun in vain for at most as long as was spun with success before, and for a sixteenth
//!    of all time, which the [`Allowance`] counts. Without one a wait blocks at once.
//! 3. After a long wait nothing is spun for, until one has been short: an endpoint that is called
//!    now and then spins for nobody.
//!
//! Threads spin inside of [`Spin::receive`]; futures and the task that drives them spin by looks of
//! their own (`driver::leader`), by the same rules.

use std::time::Duration;

use smt_carrier::{Arrival, Carrier, ReceiveError, Wait};
use smt_proto::Time;

use crate::clock::Clock;
use crate::sync::thread;

/// The state of one waiting place.
#[derive(Debug)]
pub(crate) struct Spin {
    bound: Duration,
    allowance: Allowance,
    was_short: bool,
    /// When the last wait began that did not end at once.
    last: Option<Time>,
}

impl Spin {
    /// Spins for at most `bound`; zero: never.
    pub(crate) fn new(bound: Duration) -> Self {
        Self { bound, allowance: Allowance::new(bound), was_short: true, last: None }
    }

    /// How long one wait is spun for at most.
    #[cfg(feature = "async")]
    pub(crate) fn bound(&self) -> Duration {
        self.bound
    }

    /// A wait begins. Returns whether it may be spun for.
    pub(crate) fn begin(&mut self, now: Time) -> bool {
        if let Some(last) = self.last.replace(now) {
            self.allowance.pass(now.since(last));
        }
        !self.bound.is_zero() && self.was_short && self.allowance.is_there()
    }

    /// Tells that a wait was spun for, for this time, and has ended. Success is only what ended in
    /// time: a spinner that lost its core to others for longer would have been woken sooner than it
    /// got the core back.
    pub(crate) fn hit(&mut self, spun: Duration) {
        match spun <= self.bound.saturating_mul(2) {
            true => self.allowance.earn(spun),
            false => self.allowance.spend(spun),
        }
    }

    /// Tells that a wait was spun for in vain, for this time.
    pub(crate) fn miss(&mut self, spun: Duration) {
        self.allowance.spend(spun);
    }

    /// A wait that was not spun for, or not to its end, took this long in all. Only what `has_come`
    /// makes the next wait one that may be short.
    pub(crate) fn slept(&mut self, waited: Duration, has_come: bool) {
        if waited >= self.bound.saturating_mul(SHORT) {
            self.was_short = false;
        } else if has_come {
            self.was_short = true;
        }
    }

    /// Receives, waiting for at most `wait`.
    pub(crate) fn receive(
        &mut self,
        (carrier, clock): (&dyn Carrier, Clock),
        sink: &mut dyn FnMut(Arrival<'_>),
        wait: Duration,
    ) -> Result<usize, ReceiveError> {
        if !self.bound.is_zero() {
            let arrivals = carrier.receive(sink, Wait::Never)?;
            if arrivals > 0 {
                return Ok(arrivals);
            }
        }
        let began = clock.now();
        let bound = match self.begin(began) {
            true => self.bound.min(wait),
            false => Duration::ZERO,
        };
        let mut waited = Duration::ZERO;
        while waited < bound {
            thread::yield_now();
            let arrivals = carrier.receive(sink, Wait::Never)?;
            if arrivals > 0 {
                self.hit(waited);
                return Ok(arrivals);
            }
            waited = clock.now().since(began);
        }
        self.miss(waited);
        let arrivals = carrier.receive(sink, Wait::AtMost(wait.saturating_sub(waited)))?;
        self.slept(clock.now().since(began), arrivals > 0);
        Ok(arrivals)
    }
}

/// Time that may yet be spun in vain.
#[derive(Debug)]
struct Allowance {
    bound: Duration,
    left: Duration,
    /// Time that was spun in vain beyond what was left: where other threads want the core, a spin
    /// that yields it takes as long as they do.
    debt: Duration,
}

impl Allowance {
    fn new(bound: Duration) -> Self {
        let left = bound.saturating_mul(SAVED);
        Self { bound, left, debt: Duration::ZERO }
    }

    /// Whether it is enough for a whole spin.
    fn is_there(&self) -> bool {
        self.debt.is_zero() && self.left >= self.bound
    }

    /// Time has passed.
    fn pass(&mut self, time: Duration) {
        self.earn(time / 16);
    }

    /// Counts time that was spun with success.
    fn earn(&mut self, time: Duration) {
        let rest = time.saturating_sub(self.debt);
        self.debt = self.debt.saturating_sub(time);
        let most = self.bound.saturating_mul(SAVED);
        self.left = self.left.saturating_add(rest).min(most);
    }

    /// Counts time that was spun in vain.
    fn spend(&mut self, time: Duration) {
        let lacks = time.saturating_sub(self.left);
        self.left = self.left.saturating_sub(time);
        self.debt = self.debt.saturating_add(lacks).min(DEBT_MAX);
    }
}

/// A wait is short if it takes less than this many bounds. Two sleeps, the peer's and one's own,
/// may add this much at a bad time, and they would not be there if both ends were spinning.
const SHORT: u32 = 16;
/// Spins in vain that may be saved up for: a scheduler's whim costs two or three.
const SAVED: u32 = 4;
/// More is not held against a spinner: it is paid off in a third of a second.
const DEBT_MAX: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Duration = Duration::from_micros(100);

    /// The sums over a second of waits.
    struct Spun {
        in_vain: Duration,
        with_success: Duration,
        all: Duration,
    }

    /// Waits of these lengths in microseconds again and again, for a second.
    fn spun(waits: &[u64]) -> Spun {
        let mut allowance = Allowance::new(BOUND);
        let [mut in_vain, mut with_success, mut all] = [Duration::ZERO; 3];
        let mut waits = waits.iter().cycle();
        while all < Duration::from_secs(1)
            && let Some(wait) = waits.next().copied().map(Duration::from_micros)
        {
            if allowance.is_there() && wait < BOUND {
                allowance.earn(wait);
                with_success += wait;
            } else if allowance.is_there() {
                allowance.spend(BOUND);
                in_vain += BOUND;
            }
            allowance.pass(wait);
            all += wait;
        }
        Spun { in_vain, with_success, all }
    }

    #[test]
    fn spinning_in_vain_takes_as_long_as_successes_and_a_sixteenth_of_the_time() {
        for waits in [&[150][..], &[1, 150], &[10, 400], &[1, 1, 1, 101], &[10_000]] {
            let spun = spun(waits);
            let most = spun.with_success + spun.all / 16 + BOUND * SAVED;
            assert!(spun.in_vain <= most, "{waits:?}: {:?}", spun.in_vain);
            assert!(spun.in_vain > spun.all / 110, "{waits:?}: it is tried");
        }
    }

    /// A wait that was spun for and has ended after so long; the time until it may be spun for
    /// again.
    fn pause_after(spun: Duration) -> Duration {
        let mut spin = Spin::new(BOUND);
        let mut now = Time::default() + Duration::from_secs(1);
        assert!(spin.begin(now));
        spin.hit(spun);
        let began = now + spun;
        now = began;
        while !spin.begin(now) {
            now = now + BOUND;
        }
        now.since(began)
    }

    #[test]
    fn spinner_that_lost_its_core_to_others_sleeps_for_a_while() {
        assert_eq!(pause_after(BOUND), Duration::ZERO);
        let lost = Duration::from_millis(2);
        assert!(pause_after(lost) > 16 * (lost - BOUND * (SAVED + 2)));
        assert!(pause_after(Duration::from_secs(9)) < Duration::from_millis(350));
    }

    #[test]
    fn a_few_misses_among_hits_do_not_end_it() {
        let spun = spun(&[80, 80, 80, 200, 200]);
        // Both of five are always tried.
        assert!(spun.in_vain.as_secs_f64() > 0.31);
    }
}
