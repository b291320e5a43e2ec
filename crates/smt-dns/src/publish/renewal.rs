// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When tickets are issued and published, by times that the caller tells.

use std::time::Duration;

use crate::limits::{PUBLISH_PAUSE_FIRST, PUBLISH_PAUSE_MAX};

/// The renewals of one publisher. Times are since any moment, the same for all calls.
#[derive(Debug)]
pub(super) struct RenewalPlan {
    /// The time that a ticket is good.
    life: Duration,
    /// When the present ticket was issued.
    issued: Option<Duration>,
    next: Duration,
    failed: u32,
}

impl RenewalPlan {
    /// The first ticket is due at once.
    pub(super) fn new(life: u64) -> Self {
        Self { life: Duration::from_secs(life), issued: None, next: Duration::ZERO, failed: 0 }
    }

    /// When there is something to do.
    pub(super) fn next(&self) -> Duration {
        self.next
    }

    /// Whether a fresh ticket is due, and not only the publication of the present one. Half of its
    /// life is left to clients in any case.
    pub(super) fn wants_new_ticket(&self, now: Duration) -> bool {
        self.issued.is_none_or(|issued| now >= issued + self.life / 2)
    }

    pub(super) fn issued(&mut self, now: Duration) {
        self.issued = Some(now);
    }

    /// It is published everywhere.
    pub(super) fn published(&mut self, now: Duration) {
        self.failed = 0;
        self.next = self.issued.unwrap_or(now) + self.life / 2;
    }

    /// It is missing somewhere: how often in a row.
    pub(super) fn failed(&mut self, now: Duration) -> u32 {
        let longer = PUBLISH_PAUSE_FIRST.saturating_mul(1 << self.failed.min(16));
        self.next = now + longer.min(PUBLISH_PAUSE_MAX);
        self.failed = self.failed.saturating_add(1);
        self.failed
    }

    /// The tickets so far belong to another certificate.
    pub(super) fn identity_changed(&mut self) {
        self.issued = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn published(plan: &mut RenewalPlan, now: Duration) {
        assert!(plan.wants_new_ticket(now));
        plan.issued(now);
        plan.published(now);
    }

    #[test]
    fn a_ticket_is_renewed_after_half_of_its_life() {
        let mut plan = RenewalPlan::new(3_600);
        published(&mut plan, at(0));
        assert_eq!(plan.next(), at(1_800));
        assert!(!plan.wants_new_ticket(at(1_799)));
        published(&mut plan, at(1_800));
        assert_eq!(plan.next(), at(3_600));
    }

    #[test]
    fn a_publication_that_failed_is_repeated_with_the_same_ticket() {
        let mut plan = RenewalPlan::new(3_600);
        plan.issued(at(0));
        assert_eq!(plan.failed(at(0)), 1);
        assert_eq!(plan.next(), at(1));
        assert!(!plan.wants_new_ticket(at(1)));
        assert_eq!(plan.failed(at(1)), 2);
        assert_eq!(plan.next(), at(3));
        plan.published(at(3));
        assert_eq!(plan.next(), at(1_800), "its life began when it was issued");
    }

    // SMT [6.9-4]
    #[test]
    fn a_ticket_that_is_half_over_is_not_published_any_more() {
        let mut plan = RenewalPlan::new(60);
        plan.issued(at(0));
        let mut now = at(0);
        while now < at(30) {
            assert!(!plan.wants_new_ticket(now));
            plan.failed(now);
            now = plan.next();
        }
        assert!(plan.wants_new_ticket(now));
    }

    #[test]
    fn pauses_have_a_bound() {
        let mut plan = RenewalPlan::new(3_600);
        for _ in 0..99 {
            plan.failed(at(0));
        }
        assert_eq!(plan.next(), PUBLISH_PAUSE_MAX);
    }

    #[test]
    fn a_new_certificate_makes_a_ticket_due() {
        let mut plan = RenewalPlan::new(3_600);
        published(&mut plan, at(0));
        plan.identity_changed();
        assert!(plan.wants_new_ticket(at(1)));
    }
}
