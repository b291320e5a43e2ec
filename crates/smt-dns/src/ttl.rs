// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long a record may be kept (SPEC §6.9): a publisher's TTL, and a client's own bound.

use std::time::Duration;

use crate::limits::LOOKUP_PAUSE_MIN;

/// The TTL of a record whose ticket is good for `life` seconds and renewed after half of that: a
/// quarter. At each moment until then it is at most half of what is left.
#[must_use]
pub fn published_ttl(life: u64) -> u32 {
    u32::try_from(life / 4).unwrap_or(u32::MAX).max(1)
}

/// The time after which a client looks a name up again, whose record came with this TTL and whose
/// ticket is good for `remaining` seconds more: the TTL, but at most half of the remaining time,
/// and at least [`LOOKUP_PAUSE_MIN`].
#[must_use]
pub fn kept_for(ttl: u32, remaining: u64) -> Duration {
    let seconds = u64::from(ttl).min(remaining / 2);
    Duration::from_secs(seconds).max(LOOKUP_PAUSE_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    // SMT [6.9-4]
    #[test]
    fn a_published_ttl_is_at_most_half_of_what_is_left_until_the_renewal() {
        for life in [4, 60, 3_599, 3_600] {
            let ttl = u64::from(published_ttl(life));
            for age in 0..=life / 2 {
                assert!(ttl <= (life - age) / 2, "{life} {age}");
            }
        }
        assert_eq!(published_ttl(1), 1, "no TTL is 0, which some resolvers replace");
    }

    #[test]
    fn a_stretched_ttl_is_cut_to_half_of_what_is_left() {
        assert_eq!(kept_for(86_400, 3_600), Duration::from_secs(1_800));
        assert_eq!(kept_for(u32::MAX, 100), Duration::from_secs(50));
        assert_eq!(kept_for(900, 3_600), Duration::from_secs(900));
    }

    #[test]
    fn a_ttl_of_nothing_makes_no_storm_of_lookups() {
        assert_eq!(kept_for(0, 3_600), LOOKUP_PAUSE_MIN);
        assert_eq!(kept_for(900, 0), LOOKUP_PAUSE_MIN);
    }
}
