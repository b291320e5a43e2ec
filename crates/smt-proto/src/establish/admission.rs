// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which new clients a server takes, and which it asks for a cookie first (SPEC §6.4, §10).
//!
//! The decision is a function of numbers: [`Load`] has what the endpoint knows without work, and
//! the cookie is looked at only where the answer depends on it.
//!
//! Not here: making room for the client, and the answers (`endpoint::receive`).

use crate::error::Unavailability;
use crate::limits::{ACCEPTS_MAX, ACCEPTS_PER_PREFIX};

/// The state of a server when flight 1 of an unknown client comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// The endpoint shuts down.
    pub(crate) is_draining: bool,
    /// Sessions that the endpoint may still have.
    pub(crate) sessions_free: usize,
    /// Whether a session of others would be closed for this client.
    pub(crate) may_evict: bool,
    /// Handshakes in progress.
    pub(crate) handshakes: usize,
    /// Those of them whose clients have shown no cookie, and how many may be.
    pub(crate) without_cookie: usize,
    pub(crate) without_cookie_max: usize,
    /// Handshakes in progress of the network of this client.
    pub(crate) of_prefix: usize,
}

/// The answer to a new client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Admission {
    /// The client is told why it is not taken.
    Refuse(Unavailability),
    /// The client has to show first that it receives at its address.
    AskForCookie,
    /// The handshake begins.
    Admit { has_cookie: bool },
    /// The handshake begins in the place of another one, of the addresses that have most.
    AdmitByEviction,
}

impl Load {
    /// Decides about a client; `has_cookie` looks whether its packet has a valid one.
    pub(crate) fn admission(&self, has_cookie: impl FnOnce() -> bool) -> Admission {
        if self.is_draining {
            return Admission::Refuse(Unavailability::ShuttingDown);
        }
        if self.sessions_free == 0 && !self.may_evict {
            return Admission::Refuse(Unavailability::Full);
        }
        let has_cookie = has_cookie();
        // Anybody can send in a client's name, so a handshake of others is given up for a client
        // that has shown a cookie.
        let places = match has_cookie && self.may_evict {
            true => ACCEPTS_MAX,
            false => self.sessions_free.min(ACCEPTS_MAX),
        };
        // Half of the places are for clients that show a cookie: anybody can take the others, in
        // any name.
        let is_loaded = self.without_cookie >= self.without_cookie_max.min(places / 2)
            || self.of_prefix >= ACCEPTS_PER_PREFIX;
        let are_few = self.of_prefix >= places.saturating_sub(self.handshakes);
        match (has_cookie, are_few) {
            (false, _) if is_loaded || are_few => Admission::AskForCookie,
            (_, false) => Admission::Admit { has_cookie },
            (_, true) => Admission::AdmitByEviction,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server with room for all.
    const IDLE: Load = Load {
        is_draining: false,
        sessions_free: MANY,
        may_evict: false,
        handshakes: 0,
        without_cookie: 0,
        without_cookie_max: 100,
        of_prefix: 0,
    };
    const MANY: usize = 1_000_000;
    const NEW: Admission = Admission::Admit { has_cookie: false };
    const SHOWN: Admission = Admission::Admit { has_cookie: true };
    const ASK: Admission = Admission::AskForCookie;
    const INSTEAD: Admission = Admission::AdmitByEviction;
    const FULL: Admission = Admission::Refuse(Unavailability::Full);
    const SHUTTING_DOWN: Admission = Admission::Refuse(Unavailability::ShuttingDown);

    #[test]
    fn a_client_is_taken_asked_or_refused_by_the_load() {
        const LAST: usize = ACCEPTS_PER_PREFIX - 1;
        // Sessions free, handshakes in all, without a cookie, and of the client's network; the
        // answers to a client without a cookie, and with one.
        let cases = [
            ((MANY, 0, 0, 0), NEW, SHOWN),
            ((0, 0, 0, 0), FULL, FULL),
            // Half of the places are for clients that show a cookie.
            ((1, 0, 0, 0), ASK, SHOWN),
            ((2, 0, 0, 0), NEW, SHOWN),
            ((16, 7, 7, 0), NEW, SHOWN),
            ((16, 8, 8, 0), ASK, SHOWN),
            // As many have no cookie as the configuration permits.
            ((MANY, 99, 99, 0), NEW, SHOWN),
            ((MANY, 100, 100, 0), ASK, SHOWN),
            // As many are of one network as may be without cookies.
            ((MANY, LAST, 0, LAST), NEW, SHOWN),
            ((MANY, LAST + 1, 0, LAST + 1), ASK, SHOWN),
            // All places are taken, or a network has as many as there are left.
            ((8, 7, 0, 0), NEW, SHOWN),
            ((8, 8, 0, 0), ASK, INSTEAD),
            ((MANY, ACCEPTS_MAX - 1, 0, 0), NEW, SHOWN),
            ((MANY, ACCEPTS_MAX, 0, 0), ASK, INSTEAD),
            ((MANY, ACCEPTS_MAX - 3, 0, 2), NEW, SHOWN),
            ((MANY, ACCEPTS_MAX - 3, 0, 3), ASK, INSTEAD),
        ];
        for ((sessions_free, handshakes, without_cookie, of_prefix), without, with) in cases {
            let load = Load { sessions_free, handshakes, without_cookie, of_prefix, ..IDLE };
            assert_eq!(load.admission(|| false), without, "no cookie: {load:?}");
            assert_eq!(load.admission(|| true), with, "a cookie: {load:?}");
            let shutting_down = Load { is_draining: true, ..load };
            assert_eq!(shutting_down.admission(|| true), SHUTTING_DOWN);
        }
    }

    #[test]
    fn a_session_of_others_makes_room_for_a_client_with_a_cookie_alone() {
        let full = Load { sessions_free: 0, may_evict: true, handshakes: 8, ..IDLE };
        assert_eq!(full.admission(|| false), ASK);
        assert_eq!(full.admission(|| true), SHOWN);
        let all_taken = Load { handshakes: ACCEPTS_MAX, ..full };
        assert_eq!(all_taken.admission(|| true), INSTEAD);
    }

    #[test]
    fn no_cookie_is_looked_at_for_a_client_that_is_refused_anyway() {
        let busy = [Load { is_draining: true, ..IDLE }, Load { sessions_free: 0, ..IDLE }];
        for load in busy {
            let answer = load.admission(|| unreachable!("a MAC costs time"));
            assert!(matches!(answer, Admission::Refuse(_)), "{load:?}");
        }
    }
}
