// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether the peer of a session is there, and whether the session is in use (SPEC §9.9, §10).
//!
//! ```text
//!   question ──▶ asked ── half of silence_max ──▶ PING ── silence_max, enough PINGs ──▶ dead
//!      ▲           │                               │
//!      └───────────┴── a packet that answers ──────┘
//! ```

use core::time::Duration;

use crate::limits::{HIBERNATE_AFTER, PINGS_UNTIL_DEAD, REQUESTS_AGAIN, RESEND_INTERVAL_MAX};
use crate::recovery::retry_timer::RetryTimer;
use crate::time::Time;

/// When a session has last received something, asked something, and been in use.
#[derive(Debug)]
pub(super) struct Liveness {
    /// When a packet of the peer has last opened.
    received_at: Time,
    /// The first question that no packet of the peer has answered.
    asked_since: Option<Time>,
    /// PING, while the peer is suspected to be gone.
    ping: Option<RetryTimer>,
    /// When the session was last in use, see [`Self::used`].
    used_at: Time,
    /// Whether the session has given up memory that an unused session does not need.
    is_hibernating: bool,
    /// Whether anything of the peer has opened.
    is_confirmed: bool,
    /// Datagrams of requests that have left again with first probes since a packet of the peer has
    /// opened.
    requests_repeated: u8,
}

/// The meaning of a peer's silence.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Silence {
    /// The peer owes no answer.
    None,
    /// The peer owes an answer, and PING is due at this time.
    Asked { ping_at: Time },
    /// PING is due. The peer may be declared dead at this time, or as soon as PINGs were enough.
    Suspect { dead_at: Option<Time> },
    /// The peer is gone. It was silent for this long.
    Dead(Duration),
}

/// Whether an unused session gives up memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Hibernation {
    Already,
    At(Time),
    Now,
}

impl Liveness {
    pub(super) fn new(now: Time) -> Self {
        Self {
            received_at: now,
            asked_since: None,
            ping: None,
            used_at: now,
            is_hibernating: false,
            is_confirmed: false,
            requests_repeated: 0,
        }
    }

    /// Notes that a packet of the peer has opened. The peer need not hear this side.
    pub(super) fn received(&mut self, now: Time) {
        self.received_at = now;
        self.is_confirmed = true;
        self.requests_repeated = 0;
    }

    /// Notes that a packet of the peer has opened which it sends only to a side that it hears: the
    /// packet may answer a question.
    pub(super) fn answered(&mut self, now: Time) {
        self.received(now);
        self.asked_since = None;
        self.ping = None;
    }

    /// Notes that a question leaves, which the peer owes an answer.
    pub(super) fn asked(&mut self, now: Time) {
        self.asked_since.get_or_insert(now);
    }

    /// Notes that the session is in use: a message of either side begins, goes on or ends. Control
    /// packets alone are no use of it, nor is a bundle of which nothing is new.
    pub(super) fn used(&mut self, now: Time) {
        self.is_hibernating = false;
        self.used_at = now;
    }

    /// Whether a packet of the peer has opened: a session may begin before that (SPEC §6.8).
    pub(super) fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    /// When the first question left that no packet of the peer has answered.
    pub(super) fn asked_since(&self) -> Option<Time> {
        self.asked_since
    }

    pub(super) fn used_at(&self) -> Time {
        self.used_at
    }

    pub(super) fn received_at(&self) -> Time {
        self.received_at
    }

    /// The meaning of the silence of the peer, which is dead after `most` at the earliest.
    ///
    /// Questions may have backed off so far that a few losses would look like death; and a process
    /// that was stopped has asked nothing meanwhile. Enough PINGs must therefore have waited in
    /// vain too.
    pub(super) fn silence(&self, now: Time, most: Duration) -> Silence {
        let Some(since) = self.asked_since else {
            return Silence::None;
        };
        let silent = now.since(since);
        if silent < most / 2 {
            let ping_at = since + most / 2;
            return Silence::Asked { ping_at };
        }
        let pings = self.ping.map_or(0, |ping| ping.asked);
        if silent >= most && pings >= PINGS_UNTIL_DEAD {
            return Silence::Dead(silent);
        }
        Silence::Suspect { dead_at: (silent < most).then_some(since + most) }
    }

    /// Begins to send PING. Returns whether one is due now; else PING has begun before.
    pub(super) fn start_ping(&mut self, now: Time, interval: Duration) -> bool {
        if self.ping.is_some() {
            return false;
        }
        self.asked(now);
        self.ping = Some(RetryTimer::new(now, interval));
        true
    }

    /// Counts a PING that is due. Returns whether one is.
    pub(super) fn repeat_ping(&mut self, now: Time) -> bool {
        let due = self.ping.as_mut().filter(|ping| ping.due <= now);
        due.map(|ping| ping.ask(now, RESEND_INTERVAL_MAX)).is_some()
    }

    /// When PING is due again.
    pub(super) fn ping_due(&self) -> Option<Time> {
        self.ping.map(|ping| ping.due)
    }

    /// Counts a request that leaves again with a first probe. Returns whether it may.
    pub(super) fn repeat_request(&mut self) -> bool {
        let may = self.requests_repeated < REQUESTS_AGAIN;
        self.requests_repeated += u8::from(may);
        may
    }

    /// Notes that a packet has come from any sender, for which memory may have been made again.
    /// Returns whether the session was hibernating.
    pub(super) fn wake(&mut self) -> bool {
        core::mem::take(&mut self.is_hibernating)
    }

    /// Whether a session without messages gives up memory now. Returns `Now` once.
    pub(super) fn hibernate(&mut self, now: Time) -> Hibernation {
        if self.is_hibernating {
            return Hibernation::Already;
        }
        let at = self.received_at.max(self.used_at) + HIBERNATE_AFTER;
        if now < at {
            return Hibernation::At(at);
        }
        self.is_hibernating = true;
        Hibernation::Now
    }

    pub(super) fn is_hibernating(&self) -> bool {
        self.is_hibernating
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_secs(2);
    const INTERVAL: Duration = Duration::from_millis(5);

    fn at(millis: u64) -> Time {
        Time::default() + Duration::from_millis(millis)
    }

    /// A peer that was asked at time 0 and is asked by `pings` PINGs after half of the time.
    fn asked(pings: u32) -> Liveness {
        let mut liveness = Liveness::new(at(0));
        liveness.asked(at(0));
        liveness.start_ping(at(1_000), INTERVAL);
        for _ in 0..pings {
            let due = liveness.ping_due().unwrap();
            assert!(liveness.repeat_ping(due));
        }
        liveness
    }

    #[test]
    fn a_peer_that_was_asked_nothing_may_be_silent() {
        let liveness = Liveness::new(at(0));
        assert_eq!(liveness.silence(at(100_000), MOST), Silence::None);
    }

    // SMT [9.9-6]
    #[test]
    fn silence_leads_over_ping_to_death() {
        let liveness = asked(PINGS_UNTIL_DEAD);
        let silence = |millis| liveness.silence(at(millis), MOST);
        assert_eq!(silence(999), Silence::Asked { ping_at: at(1_000) });
        let suspect = |dead_at| Silence::Suspect { dead_at };
        assert_eq!(silence(1_000), suspect(Some(at(2_000))));
        assert_eq!(silence(1_999), suspect(Some(at(2_000))));
        assert_eq!(silence(2_000), Silence::Dead(MOST));
    }

    #[test]
    fn a_peer_is_not_dead_before_it_was_asked_often_enough() {
        let liveness = asked(PINGS_UNTIL_DEAD - 1);
        let suspect = Silence::Suspect { dead_at: None };
        assert_eq!(liveness.silence(at(60_000), MOST), suspect);
    }

    #[test]
    fn an_answer_ends_suspicion_and_a_question_of_the_peer_does_not() {
        let mut liveness = asked(PINGS_UNTIL_DEAD);
        liveness.received(at(1_500));
        assert!(matches!(liveness.silence(at(3_000), MOST), Silence::Dead(_)));
        liveness.answered(at(1_500));
        assert_eq!(liveness.silence(at(3_000), MOST), Silence::None);
        assert_eq!(liveness.ping_due(), None);
    }

    #[test]
    fn silence_is_counted_from_the_first_question_without_an_answer() {
        let mut liveness = Liveness::new(at(0));
        liveness.asked(at(100));
        liveness.asked(at(900));
        let asked = Silence::Asked { ping_at: at(1_100) };
        assert_eq!(liveness.silence(at(1_000), MOST), asked);
    }

    #[test]
    fn few_requests_are_repeated_until_a_packet_opens() {
        let mut liveness = Liveness::new(at(0));
        let repeated = (0..100).filter(|_| liveness.repeat_request()).count();
        assert_eq!(repeated, usize::from(REQUESTS_AGAIN));
        liveness.received(at(1));
        assert!(liveness.repeat_request());
    }

    #[test]
    fn a_session_hibernates_once_when_neither_side_has_moved() {
        let mut liveness = Liveness::new(at(0));
        liveness.used(at(300));
        liveness.received(at(200));
        let due = at(300) + HIBERNATE_AFTER;
        assert_eq!(liveness.hibernate(at(400)), Hibernation::At(due));
        assert_eq!(liveness.hibernate(due), Hibernation::Now);
        assert_eq!(liveness.hibernate(due), Hibernation::Already);
        assert!(liveness.wake() && !liveness.wake());
        assert_eq!(liveness.hibernate(due), Hibernation::Now);
        liveness.used(due);
        assert!(!liveness.is_hibernating());
    }
}
