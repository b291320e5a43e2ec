// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Facts about the path of a session, and the budgets of its repetitions.

use core::time::Duration;

use smt_wire::DataHeader;

use crate::collections::token_bucket::TokenBucket;
use crate::limits::ANSWERS_PER_SECOND;
use crate::recovery::jitter::Jitter;
use crate::recovery::pmtud::Pmtud;
use crate::recovery::retransmit_budget::RetransmitBudget;
use crate::recovery::rto::RtoEstimator;
use crate::time::Time;

/// Round trips, datagram sizes, and the budgets of what is sent again.
#[derive(Debug)]
pub(super) struct Recovery {
    pub(super) rto: RtoEstimator,
    /// The jitter of all waits, so that sessions do not retry in lockstep.
    pub(super) jitter: Jitter,
    pub(super) pmtud: Pmtud,
    /// Bounds the bytes that are sent again.
    pub(super) retransmit_budget: RetransmitBudget,
    /// Bounds answers to questions about ids that are not live.
    pub(super) answers: TokenBucket,
    /// Longest payload of the peer's packets, of those from which a record has opened.
    payload_max: u32,
}

impl Recovery {
    /// The state of a session that begins. `interval` is the first retransmission timeout, before
    /// jitter; no datagram is larger than `datagram_limit`.
    pub(super) fn new(
        now: Time,
        jitter: Jitter,
        interval: Duration,
        datagram_limit: usize,
    ) -> Self {
        Self {
            rto: RtoEstimator::new(jitter.lengthen(interval)),
            jitter,
            pmtud: Pmtud::new(now, datagram_limit),
            retransmit_budget: RetransmitBudget::new(now),
            answers: TokenBucket::new(ANSWERS_PER_SECOND),
            payload_max: 0,
        }
    }

    /// Notes how long the peer's packets are, as far as their records open.
    pub(super) fn payload_opened(&mut self, length: usize) {
        self.payload_max = self.payload_max.max(length as u32);
    }

    /// The payload that a packet of the peer may have had, if the path carries the same in both
    /// directions.
    pub(super) fn payload_most(&self) -> u32 {
        let own = (self.pmtud.size() - DataHeader::LEN) as u32;
        self.payload_max.max(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{
        BLACK_HOLE_QUESTIONS, DATAGRAM_FLOOR, RESEND_BYTES_PER_SECOND, RESEND_INTERVAL,
    };

    const INTERVAL: Duration = Duration::from_millis(5);
    const LARGE: usize = 8_972;

    fn recovery() -> Recovery {
        Recovery::new(Time::default(), Jitter::of(&[7]), INTERVAL, LARGE)
    }

    /// The payload of a packet in a datagram of this size.
    fn payload_in(datagram: usize) -> u32 {
        (datagram - DataHeader::LEN) as u32
    }

    #[test]
    fn the_first_interval_of_a_session_has_its_jitter() {
        let recovery = recovery();
        let expected = recovery.jitter.lengthen(INTERVAL);
        assert!(expected > INTERVAL, "the jitter of these bytes is not zero");
        assert_eq!(recovery.rto.interval(), expected);
    }

    #[test]
    fn payloads_of_the_peer_are_at_least_as_long_as_those_of_this_side_may_be() {
        let mut recovery = recovery();
        assert_eq!(recovery.payload_most(), payload_in(DATAGRAM_FLOOR));
        recovery.payload_opened(1);
        assert_eq!(recovery.payload_most(), payload_in(DATAGRAM_FLOOR));
        recovery.pmtud.probe(Time::default());
        recovery.pmtud.answered(LARGE);
        assert_eq!(recovery.payload_most(), payload_in(LARGE));
    }

    #[test]
    fn the_longest_payload_that_has_opened_is_remembered() {
        let mut recovery = recovery();
        recovery.payload_opened(4_000);
        recovery.payload_opened(1_200);
        assert_eq!(recovery.payload_most(), 4_000);
    }

    #[test]
    fn a_smaller_path_of_this_side_does_not_shorten_what_the_peer_has_sent() {
        let mut recovery = recovery();
        recovery.pmtud.probe(Time::default());
        recovery.pmtud.answered(LARGE);
        recovery.payload_opened(4_000);
        let mut now = Time::default();
        for _ in 0..BLACK_HOLE_QUESTIONS {
            recovery.pmtud.stalled(now);
            now = now + RESEND_INTERVAL;
        }
        assert_eq!(recovery.pmtud.size(), DATAGRAM_FLOOR);
        assert_eq!(recovery.payload_most(), 4_000);
    }

    #[test]
    fn answers_and_repetitions_have_budgets_apart() {
        let (mut recovery, now) = (recovery(), Time::default());
        let answers = (0..ANSWERS_PER_SECOND).filter(|_| recovery.answers.take(now));
        assert_eq!(answers.count() as u32, ANSWERS_PER_SECOND / 10);
        let bytes = RESEND_BYTES_PER_SECOND as usize;
        assert!(recovery.retransmit_budget.spend(now, bytes, bytes));
        assert!(!recovery.retransmit_budget.spend(now, 1, 0));
    }
}
