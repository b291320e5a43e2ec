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
