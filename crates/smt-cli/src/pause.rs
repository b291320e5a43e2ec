// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Pauses between attempts: each is twice as long as the one before, and drawn at random from its
//! second half, so that processes that failed together do not come back together.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// The pause after this many failed attempts, at least one.
pub(crate) fn after(failed: u32) -> Duration {
    drawn(failed, RandomState::new().hash_one(()))
}

fn drawn(failed: u32, random: u64) -> Duration {
    let longest = FIRST.saturating_mul(1 << failed.saturating_sub(1).min(16)).min(LONGEST);
    let part = (random >> 32) as f64 / f64::from(u32::MAX);
    longest.mul_f64(0.5 + part / 2.0)
}

/// Long enough for a server to be restarted within a few attempts, and short beside a human's
/// wait.
const FIRST: Duration = Duration::from_millis(100);
/// Longer ones would find a server late that is there again.
const LONGEST: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_up_to_its_bound_and_differs_from_process_to_process() {
        let ms = |failed, random| drawn(failed, random).as_millis();
        assert_eq!((ms(1, 0), ms(1, u64::MAX)), (50, 100));
        assert_eq!((ms(2, 0), ms(2, u64::MAX)), (100, 200));
        assert_eq!((ms(99, 0), ms(99, u64::MAX)), (2_500, 5_000));
    }
}
