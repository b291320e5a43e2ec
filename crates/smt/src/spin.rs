// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Waiting that adapts: spin for a bounded time while what is waited for comes within it, else block.
//!
//! A sleep and a wake-up cost 7 us on some machines and 70 on others, which is more than the rest of an unloaded
//! round trip; there they cost more CPU than spinning does, too (docs/PERF.md). Spinning yields the core between
//! looks, so that a peer on the same core is not starved.
//!
//! 1. While [`Credit`] says so, [`Spin::receive`] looks again and again for at most the bound, and then blocks.
//! 2. What comes in that time earns a credit; a wait that had to block all the same costs one. Without credit a wait
//!    blocks at once, and after [`REST`] waits that were short it is tried again. So spins that come to nothing take
//!    at most a twentieth of a core, whatever the waits are.
//! 3. After a long wait nothing is spun for until one has been short.

use std::time::{Duration, Instant};

use smt_carrier::{Carrier, ReceiveError, Received, Wait};

/// The state of one waiting place.
#[derive(Debug)]
pub(crate) struct Spin {
    bound: Duration,
    credit: Credit,
}

impl Spin {
    /// Spins for at most `bound`; zero: never.
    pub(crate) fn new(bound: Duration) -> Self {
        Self {
            bound,
            credit: Credit::default(),
        }
    }

    /// Receives, waiting for at most `wait`.
    pub(crate) fn receive(
        &mut self,
        carrier: &dyn Carrier,
        buffer: &mut [u8],
        wait: Duration,
    ) -> Result<Option<Received>, ReceiveError> {
        let is_spinning = !self.bound.is_zero() && self.credit.is_there();
        let bound = match is_spinning {
            true => self.bound.min(wait),
            false => Duration::ZERO,
        };
        if !bound.is_zero()
            && let Some(received) = carrier.receive(buffer, Wait::Never)?
        {
            return Ok(Some(received));
        }
        let began = Instant::now();
        let mut waited = Duration::ZERO;
        while waited < bound {
            std::thread::yield_now();
            if let Some(received) = carrier.receive(buffer, Wait::Never)? {
                self.credit.earn();
                return Ok(Some(received));
            }
            waited = began.elapsed();
        }
        let received = carrier.receive(buffer, Wait::AtMost(wait.saturating_sub(waited)))?;
        let is_long = began.elapsed() >= self.bound.saturating_mul(SHORT);
        match (received.is_some(), is_long) {
            (_, true) => self.credit.lose(),
            (true, false) => self.credit.block(is_spinning),
            // A timer: what is waited for may come soon after it.
            (false, false) => {}
        }
        Ok(received)
    }
}

/// Whether spinning has been worth it.
#[derive(Debug)]
struct Credit {
    /// Spins that may yet come to nothing.
    left: u32,
    /// Short waits that block at once, before spinning is tried again.
    rest: u32,
}

impl Default for Credit {
    fn default() -> Self {
        Self {
            left: CREDIT,
            rest: 0,
        }
    }
}

impl Credit {
    fn is_there(&self) -> bool {
        self.left > 0
    }

    /// It came while the thread was spinning.
    fn earn(&mut self) {
        self.left = CREDIT.min(self.left + 1);
    }

    /// It came soon, but the thread had blocked, perhaps after it `has_spun`.
    fn block(&mut self, has_spun: bool) {
        if has_spun {
            self.left -= 1;
            self.rest = if self.left == 0 { REST } else { 0 };
        } else if self.rest > 0 {
            self.rest -= 1;
        } else {
            self.left = CREDIT;
        }
    }

    /// The wait was long.
    fn lose(&mut self) {
        self.left = 0;
    }
}

/// A wait is short that takes less than this many bounds: so much may two sleeps add, the peer's and one's own, and they
/// would not be there if both were spinning.
const SHORT: u32 = 4;
/// Spins that may come to nothing one after the other: a scheduler's whim costs two or three.
const CREDIT: u32 = 4;
/// Each of these waits is longer than the bound, so all of them more than 16 times what the last four spins took.
const REST: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether each of so many waits spins, if none of them comes in time.
    fn spins(credit: &mut Credit, waits: usize) -> Vec<bool> {
        let wait = |_| {
            let is_spinning = credit.is_there();
            credit.block(is_spinning);
            is_spinning
        };
        (0..waits).map(wait).collect()
    }

    #[test]
    fn spins_that_come_to_nothing_are_one_in_seventeen() {
        let spins = spins(&mut Credit::default(), 1_000);
        assert!(spins[..4].iter().all(|is_spinning| *is_spinning));
        assert!(spins.iter().filter(|is_spinning| **is_spinning).count() <= 1_000 / 17 + 4);
        assert!(spins[500..].iter().any(|is_spinning| *is_spinning));
    }

    #[test]
    fn a_few_misses_among_hits_do_not_end_it() {
        let mut credit = Credit::default();
        for _ in 0..100 {
            (0..3).for_each(|_| credit.block(true));
            assert!(credit.is_there());
            (0..3).for_each(|_| credit.earn());
        }
    }

    #[test]
    fn after_a_long_wait_a_short_one_is_enough() {
        let mut credit = Credit::default();
        credit.lose();
        assert!(!credit.is_there());
        credit.block(false);
        assert!(credit.is_there());
    }

    #[test]
    fn a_long_wait_does_not_cut_the_rest_short() {
        let mut credit = Credit::default();
        spins(&mut credit, 4);
        credit.lose();
        credit.block(false);
        assert!(!credit.is_there());
    }
}
