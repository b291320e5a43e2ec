// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How much the replies are that a session keeps until they are acknowledged (SPEC §9.4, §10).
//!
//! A caller decides when that is, so it decides what this side keeps: beyond a bound no more of its requests are taken.
//! The bytes are added up as replies are given, and counted anew when they seem to be too many: nothing is done where
//! they never are.

use std::time::Duration;

use crate::time::Time;

/// Bytes of kept replies, or more.
#[derive(Debug, Default)]
pub(crate) struct KeptReplies {
    bytes: usize,
    /// When they were counted last.
    counted: Time,
}

impl KeptReplies {
    /// A reply was given.
    pub(crate) fn add(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Whether they are more than `most`. `count` looks at all of them; whoever asks often does not make it often.
    pub(crate) fn exceed(&mut self, most: usize, now: Time, count: impl FnOnce() -> usize) -> bool {
        if self.bytes > most && now.since(self.counted) >= COUNT_INTERVAL {
            self.bytes = count();
            self.counted = now;
        }
        self.bytes > most
    }
}

/// They are counted at most so often.
const COUNT_INTERVAL: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_counted_when_they_seem_too_many_and_not_too_often() {
        let mut kept = KeptReplies::default();
        let now = Time::from_nanos(1_000_000_000);
        kept.add(100);
        assert!(!kept.exceed(100, now, || panic!("they do not seem too many")));
        kept.add(1);
        assert!(!kept.exceed(100, now, || 50));
        kept.add(51);
        assert!(kept.exceed(100, now, || panic!("they were counted just now")));
        assert!(kept.exceed(100, now + COUNT_INTERVAL, || 101));
    }
}
