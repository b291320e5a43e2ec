// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How fast a message uses what its sender may send (SPEC §9.2).
//!
//! A sender that may send a least window, and sends less than that in [`USAGE_INTERVAL`], is
//! limited by itself and not by grants: its message is *sender-limited*. Beside others it has a
//! least window, but no place among the messages that are granted at once, and no part of the
//! budget. While no other message wants grants it is treated like others, since on a path with a
//! long round trip it can use more than a least window.
//!
//! It keeps what it was granted before, and no budget of others counts that: a single slow message
//! would leave them least windows until it has used it. The bound is the memory for messages, in
//! which promises count (`memory`).
//!
//! The interval is the same for all: the resend interval of a session grows with what comes late,
//! so a peer could stretch it. A sender on a path with a longer round trip is recognised by a least
//! window that comes at once, since a measurement begins with the record that arrives.
//!
//! Not here: what sender-limited messages are granted (`policy`), and messages that do not come at
//! all (`session::retransmit`).

use crate::limits::{GRANT_WINDOW_MIN, USAGE_INTERVAL};
use crate::time::Time;

/// One measurement: whether a least window arrives in time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Usage {
    /// Bytes that must have arrived until the end of the measurement.
    target: u32,
    /// End of the measurement.
    pub(super) until: Time,
    /// Whether the sender could send up to the target from the beginning. If not, a miss says
    /// nothing about the sender.
    is_permitted: bool,
}

/// The result of a measurement.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    /// The sender has used a least window in time.
    Used,
    /// The sender could have used a least window, and has not.
    SenderLimited,
    /// The measurement goes on.
    Open,
    /// The measurement says nothing: what might be sent was less than a least window.
    Void,
}

/// How far a message has got, as offsets in its record stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Progress {
    /// Bytes of the whole record stream.
    pub(crate) length: u32,
    /// Bytes that have arrived and opened.
    pub(crate) arrived: u32,
    /// End of what may be sent.
    pub(crate) granted: u32,
}

impl Usage {
    /// A measurement that begins now, of what has arrived and arrives after this offset; if
    /// something may still come.
    pub(super) fn new(now: Time, progress: Progress, from: u32) -> Option<Self> {
        let target = progress.length.min(from.saturating_add(GRANT_WINDOW_MIN));
        (progress.granted > from).then(|| Self {
            target,
            until: now + USAGE_INTERVAL,
            is_permitted: progress.granted >= target,
        })
    }

    /// The verdict on a message that has got this far.
    pub(super) fn verdict(&self, now: Time, progress: Progress) -> Verdict {
        let in_time = now < self.until;
        match (progress.arrived >= self.target, self.is_permitted) {
            (true, _) if in_time => Verdict::Used,
            // The target is within reach only since now.
            (_, false) if progress.granted >= self.target => Verdict::Void,
            _ if in_time => Verdict::Open,
            (_, true) => Verdict::SenderLimited,
            (_, false) => Verdict::Void,
        }
    }

    /// Whether the end of this measurement may find that a message is sender-limited.
    pub(super) fn is_permitted(&self) -> bool {
        self.is_permitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(arrived: u32, granted: u32) -> Progress {
        Progress { length: 1_000_000, arrived, granted }
    }

    fn at(micros: u64) -> Time {
        Time::from_nanos(micros * 1_000)
    }

    /// A measurement of a message that may send a whole window beyond its first 10,000 bytes.
    fn usage() -> Usage {
        Usage::new(at(0), progress(10_000, 10_000 + GRANT_WINDOW_MIN), 10_000).unwrap()
    }

    #[test]
    fn a_least_window_within_the_interval_is_used() {
        let arrived = 10_000 + GRANT_WINDOW_MIN;
        let verdict = usage().verdict(at(4_999), progress(arrived, arrived));
        assert_eq!(verdict, Verdict::Used);
    }

    #[test]
    fn a_byte_less_at_the_end_of_the_interval_is_sender_limited() {
        let arrived = 10_000 + GRANT_WINDOW_MIN - 1;
        let progress = progress(arrived, 500_000);
        assert_eq!(usage().verdict(at(4_999), progress), Verdict::Open);
        assert_eq!(usage().verdict(at(5_000), progress), Verdict::SenderLimited);
    }

    #[test]
    fn the_end_of_a_message_is_used_although_it_is_less() {
        let end = |arrived| progress(arrived, 1_000_000);
        let usage = Usage::new(at(0), end(999_000), 999_000).unwrap();
        assert_eq!(usage.verdict(at(1), end(1_000_000)), Verdict::Used);
        assert_eq!(usage.verdict(at(5_000), end(999_999)), Verdict::SenderLimited);
    }

    #[test]
    fn a_message_that_waits_for_grants_is_not_judged() {
        let waiting = progress(10_000, 20_000);
        let usage = Usage::new(at(0), waiting, 10_000).unwrap();
        assert_eq!(usage.verdict(at(4_999), waiting), Verdict::Open);
        assert_eq!(usage.verdict(at(5_000), waiting), Verdict::Void);
        let granted = progress(10_000, 10_000 + GRANT_WINDOW_MIN);
        assert_eq!(usage.verdict(at(4_999), granted), Verdict::Void);
        assert_eq!(Usage::new(at(0), progress(9, 9), 9), None);
    }
}
