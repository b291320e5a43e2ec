// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Waits that differ, so that hosts that lost packets together do not repeat them together (SPEC
//! §6.2, §9.3).
//!
//! A short queue that a hundred senders fill at once passes the first few and drops the rest. If
//! all asked again at the same intervals, the same few would get through each time. A wait is
//! therefore up to a quarter longer than its name says, by a hash of what only its session, or its
//! attempt, has: the core has no randomness.

use core::time::Duration;

/// The part of a quarter that is added to a wait, in 65,536ths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jitter(u16);

impl Jitter {
    /// The jitter that follows from these bytes. It is no secret, and only the times of repetitions
    /// depend on it.
    pub(crate) fn of<'a>(bytes: impl IntoIterator<Item = &'a u8>) -> Self {
        // FNV-1a, whose upper half differs with each byte.
        let hash = bytes.into_iter().fold(0x811C_9DC5_u32, |hash, byte| {
            (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
        });
        Self((hash >> 16) as u16)
    }

    /// `wait`, and up to a quarter more.
    pub(crate) fn lengthen(self, wait: Duration) -> Duration {
        let quarter = (wait / 4).saturating_mul(u32::from(self.0)) / (1 << 16);
        wait.saturating_add(quarter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_lie_within_a_quarter_and_differ() {
        let wait = Duration::from_millis(50);
        let waits = (0..64_u8).map(|last| Jitter::of(&[1, 2, 3, last]).lengthen(wait));
        let waits: std::collections::BTreeSet<_> = waits.collect();
        assert!(waits.len() > 60, "{}", waits.len());
        let range = wait..wait * 5 / 4;
        assert!(waits.iter().all(|wait| range.contains(wait)), "{waits:?}");
    }

    #[test]
    fn any_wait_can_be_lengthened() {
        let most = Jitter(u16::MAX);
        assert_eq!(most.lengthen(Duration::ZERO), Duration::ZERO);
        let hour = Duration::from_secs(3_600);
        assert!(most.lengthen(hour) < hour * 5 / 4);
        assert_eq!(most.lengthen(Duration::MAX), Duration::MAX);
    }
}
