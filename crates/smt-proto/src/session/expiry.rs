// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The end of a session whose certificates end (SPEC §10).
//!
//! ```text
//!   established ───────────────▶ retires_at ─────────▶ ends_at
//!      in use                      a client begins       neither side begins anything,
//!                                  nothing more          and requests are refused
//! ```
//! Messages that have begun go on. Once nothing is in progress after the first of the two moments,
//! the session closes.

use core::time::Duration;

use smt_record::Side;

use super::Session;
use crate::error::CloseCode;
use crate::key_exchange::PeerIdentity;
use crate::limits::{EXPIRY_CHECK, RETIRED_BEFORE_MAX, RETIRED_FROM};
use crate::shared::Shared;
use crate::time::{Time, WallTime};

/// When the credentials of both sides end, by the calendar.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CredentialEnds {
    /// Those of the peer.
    pub(crate) peer: Option<WallTime>,
    /// Those of this side, if the peer may have judged them.
    pub(crate) own: Option<WallTime>,
}

impl CredentialEnds {
    pub(crate) fn of(peer: &PeerIdentity, own: Option<WallTime>) -> Self {
        Self { peer: peer.expires, own }
    }
}

/// The moments at which a session ends in good order.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Expiry {
    retires_at: Time,
    ends_at: Time,
}

impl Expiry {
    /// The moments of a session that has been established at `now`, which is `wall` by the
    /// calendar; none if the endpoint was told no calendar.
    pub(super) fn new(side: Side, now: Time, wall: Option<WallTime>, ends: CredentialEnds) -> Self {
        let Some(wall) = wall else {
            return Self { retires_at: NEVER, ends_at: NEVER };
        };
        let left =
            |end: WallTime| Duration::from_secs(end.as_secs().saturating_sub(wall.as_secs()));
        let ends_at = ends.peer.map_or(NEVER, |end| now + left(end));
        // Own credentials that had ended before were not judged.
        let own = ends.own.map(left).filter(|left| !left.is_zero());
        let first = ends.peer.map(left).into_iter().chain(own).min();
        let retires_at = match (side, first) {
            (Side::Client, Some(left)) if left >= RETIRED_FROM => {
                now + (left - (left / 10).min(RETIRED_BEFORE_MAX))
            }
            _ => ends_at,
        };
        Self { retires_at: retires_at.min(ends_at), ends_at }
    }

    /// Those of a session whose peer's credentials have ended.
    fn at(now: Time) -> Self {
        Self { retires_at: now, ends_at: now }
    }

    /// Whether this side begins nothing more.
    pub(super) fn is_retired(self, now: Time) -> bool {
        self.retires_at <= now
    }

    /// Whether requests of the peer are refused.
    pub(super) fn has_ended(self, now: Time) -> bool {
        self.ends_at <= now
    }

    /// When the session is first to be looked after.
    fn due(self) -> Option<Time> {
        (self.retires_at < NEVER).then_some(self.retires_at)
    }
}

impl Session {
    /// Takes the credentials of the peer as ended.
    pub(crate) fn expire_peer(&mut self, now: Time) {
        self.expiry = Expiry::at(now);
        self.pass_timer.set(now);
    }

    /// Closes the session once its certificates end and nothing is in progress.
    pub(super) fn close_if_expired(&mut self, now: Time, shared: &mut Shared) {
        if !self.expiry.is_retired(now) {
            self.pass_timer.set_if(self.expiry.due());
        } else if self.lane.is_idle() {
            self.close(CloseCode::Expired, shared);
        } else {
            self.pass_timer.set(now + EXPIRY_CHECK);
        }
    }
}

const NEVER: Time = Time::from_nanos(u64::MAX);

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_nanos(7_000_000_000);

    /// Seconds until the two moments, if the credentials end after so many.
    fn moments(side: Side, peer: Option<u64>, own: Option<u64>) -> [Option<u64>; 2] {
        let end = |left: u64| WallTime::from_secs(1_700_000_000 + left);
        let ends = CredentialEnds { peer: peer.map(end), own: own.map(end) };
        let wall = Some(WallTime::from_secs(1_700_000_000));
        let expiry = Expiry::new(side, NOW, wall, ends);
        let seconds = |at: Time| (at < NEVER).then(|| at.since(NOW).as_secs());
        [seconds(expiry.retires_at), seconds(expiry.ends_at)]
    }

    // SMT [10-18], [10-19]
    #[test]
    fn a_client_retires_a_session_before_the_first_of_both_certificates_ends() {
        let client = |peer, own| moments(Side::Client, peer, own);
        assert_eq!(client(None, None), [None, None]);
        assert_eq!(client(Some(1_000), None), [Some(900), Some(1_000)]);
        // At most five minutes before.
        let day = 86_400;
        assert_eq!(client(Some(day), None), [Some(day - 300), Some(day)]);
        assert_eq!(client(Some(day), Some(600)), [Some(540), Some(day)]);
        assert_eq!(client(None, Some(600)), [Some(540), None]);
        // The peer has taken no notice of an own certificate that had ended before.
        assert_eq!(client(Some(1_000), Some(0)), [Some(900), Some(1_000)]);
        // Sessions that follow each other ever sooner would help nobody.
        assert_eq!(client(Some(1), None), [Some(1), Some(1)]);
        assert_eq!(client(Some(9), Some(1)), [Some(9), Some(9)]);
    }

    // SMT [10-20]
    #[test]
    fn a_server_goes_by_the_certificate_of_its_client_alone() {
        let server = |peer, own| moments(Side::Server, peer, own);
        assert_eq!(server(Some(1_000), Some(10)), [Some(1_000), Some(1_000)]);
        assert_eq!(server(None, Some(10)), [None, None]);
    }

    #[test]
    fn a_session_without_a_calendar_does_not_end() {
        let ends = CredentialEnds { peer: Some(WallTime::from_secs(1)), own: None };
        let expiry = Expiry::new(Side::Client, NOW, None, ends);
        assert!(!expiry.has_ended(Time::from_nanos(u64::MAX - 1)));
        assert_eq!(expiry.due(), None);
    }
}
