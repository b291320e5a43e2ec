// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether messages wait for others that are about to be sent, so that they leave together.
//!
//! Messages are corked while a leader is about to run again: right after the tasks that it has told
//! of something, or with its next look. The cork holds for a short time and for few bytes, since a
//! full batch gains nothing by waiting.

use std::time::Duration;

use smt_proto::Time;

/// The cork of an endpoint that tasks use.
#[derive(Debug, Default)]
pub(crate) struct Cork {
    /// `None`: it is out.
    until: Option<Time>,
    /// Bytes of bodies that wait.
    bytes: usize,
}

impl Cork {
    /// Puts the cork in, or leaves it in for longer.
    pub(crate) fn put_in(&mut self, now: Time) {
        self.until = Some(now + CORKED_MAX);
    }

    /// Takes the cork out: each change sends its own messages.
    pub(crate) fn take_out(&mut self) {
        *self = Self::default();
    }

    /// Ends the time of the corked messages, if there are any.
    pub(crate) fn expire(&mut self, now: Time) {
        self.until = self.until.map(|_| now);
    }

    /// Counts a body of this many bytes that is about to wait.
    pub(crate) fn add(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Whether messages that are to be sent wait.
    pub(crate) fn holds(&self, now: Time) -> bool {
        self.until.is_some_and(|until| now < until) && self.bytes < CORKED_BYTES_MAX
    }

    /// Takes in that all corked messages have left: the time begins again, if the cork is in. The
    /// time does not begin with the send. Sending wakes the peer, and where that takes longer than
    /// the cork holds, each message would leave by itself.
    pub(crate) fn has_sent(&mut self, now: Time) {
        self.bytes = 0;
        self.until = self.until.map(|_| now + CORKED_MAX);
    }
}

/// Messages wait for this time at most, if the endpoint is used meanwhile.
const CORKED_MAX: Duration = Duration::from_micros(50);
/// Bodies that wait have fewer bytes than this: two segmented batches.
const CORKED_BYTES_MAX: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time::default() + Duration::from_micros(micros)
    }

    #[test]
    fn it_holds_for_a_time_from_when_the_last_was_sent() {
        let mut cork = Cork::default();
        assert!(!cork.holds(at(0)));
        cork.put_in(at(0));
        assert!(cork.holds(at(49)) && !cork.holds(at(50)));
        // Sending took 150 us.
        cork.has_sent(at(200));
        assert!(cork.holds(at(249)) && !cork.holds(at(250)));
        cork.expire(at(201));
        assert!(!cork.holds(at(201)));
        cork.has_sent(at(202));
        assert!(cork.holds(at(203)));
        cork.take_out();
        cork.has_sent(at(300));
        assert!(!cork.holds(at(300)));
    }

    #[test]
    fn a_full_batch_waits_for_nothing() {
        let mut cork = Cork::default();
        cork.put_in(at(0));
        cork.add(CORKED_BYTES_MAX - 1);
        assert!(cork.holds(at(1)));
        cork.add(1);
        assert!(!cork.holds(at(1)));
        cork.has_sent(at(2));
        assert!(cork.holds(at(3)));
    }
}
