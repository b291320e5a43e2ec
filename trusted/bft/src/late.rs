// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long a replica waits before it wants another view.

use smt_replica::Service;

use crate::replica::Replica;

/// The most doublings of the timeout by views that were wanted in vain since the last execution.
const ATTEMPTS_MAX: u32 = 6;
/// The timeout doubles once more with each of this number of views that a replica has wanted since
/// it entered one. The network is at fault then, and no leader, and the views that others let a
/// replica want in vain would run out ([`Track::may_want`]).
///
/// [`Track::may_want`]: crate::track::Track::may_want
const ROUND: u32 = 64;

impl<S: Service> Replica<S> {
    /// Counts a tick, and wants the next view if another leader is wanted.
    pub(crate) fn want_next_if_late(&mut self) {
        let limit = limit(self.group.options.timeout, self.attempts, self.own_track().wanted);
        if self.is_late(limit) && self.metrics.is_active {
            self.attempts = self.attempts.saturating_add(1);
            self.want(self.own_track().promised + 1);
        }
    }

    /// Counts a tick. True if another leader is wanted.
    fn is_late(&mut self, limit: u32) -> bool {
        let track = self.own_track();
        if track.at.is_some_and(|at| at.0 == track.promised) {
            self.waited = 0;
            return self.pending.tick(limit);
        }
        // Between views the time counts once f + 1 want the view: a replica that ran ahead of the
        // others by more than a timeout would stay ahead for ever.
        if self.wanted_by_quorum() >= track.promised {
            self.waited = self.waited.saturating_add(1);
        }
        self.waited > limit
    }
}

/// The ticks for which a replica waits: it has wanted `attempts` views since the last execution,
/// and `wanted` since it entered one.
fn limit(timeout: u32, attempts: u32, wanted: u32) -> u32 {
    let doublings = attempts.min(ATTEMPTS_MAX) + wanted / ROUND;
    timeout.saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::limit;
    use crate::track::WANTED_MAX;

    #[test]
    fn a_replica_wants_views_in_vain_for_a_year_of_seconds_and_the_first_ones_soon() {
        let limits = |count| (0..count).map(|it| u64::from(limit(1, it, it)));
        assert!(limits(8).sum::<u64>() < 256);
        assert!(limits(WANTED_MAX).sum::<u64>() > 365 * 86_400);
        assert_eq!(limit(20, 6, 63), 20 << 6);
        assert_eq!(limit(u32::MAX, 6, WANTED_MAX), u32::MAX);
    }
}
