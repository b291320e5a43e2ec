// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which new clients a server takes, and which it asks for a cookie first (SPEC §6.4, §10).
//!
//! The decision is a function of numbers: [`Load`] has what the endpoint knows without work, and the
//! cookie is looked at only where the answer depends on it.
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
    pub(crate) may_displace: bool,
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
    AdmitInPlaceOfAnother,
}

impl Load {
    /// Decides about a client; `has_cookie` looks whether its packet has a valid one.
    pub(crate) fn admission(&self, has_cookie: impl FnOnce() -> bool) -> Admission {
        if self.is_draining {
            return Admission::Refuse(Unavailability::ShuttingDown);
        }
        if self.sessions_free == 0 && !self.may_displace {
            return Admission::Refuse(Unavailability::Full);
        }
        let has_cookie = has_cookie();
        // Anybody can send in a client's name, so a handshake of others is given up for a client
        // that has shown a cookie.
        let places = match has_cookie && self.may_displace {
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
            (_, true) => Admission::AdmitInPlaceOfAnother,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server with room for all.
    const IDLE: Load = Load {
        is_draining: false,
        sessions_free: usize::MAX,
        may_displace: false,
        handshakes: 0,
        without_cookie: 0,
        without_cookie_max: 100,
        of_prefix: 0,
    };
    const ASK: Admission = Admission::AskForCookie;
    const INSTEAD: Admission = Admission::AdmitInPlaceOfAnother;
    const FULL: Admission = Admission::Refuse(Unavailability::Full);
    const SHUTTING_DOWN: Admission = Admission::Refuse(Unavailability::ShuttingDown);

    fn admit(has_cookie: bool) -> Admission {
        Admission::Admit { has_cookie }
    }

    #[test]
    fn a_client_is_taken_asked_or_refused_by_the_load() {
        // The load; the answers to a client without a cookie, and with one.
        let cases = [
            (IDLE, admit(false), admit(true)),
            (
                Load {
                    is_draining: true,
                    ..IDLE
                },
                SHUTTING_DOWN,
                SHUTTING_DOWN,
            ),
            // Sessions.
            (
                Load {
                    sessions_free: 0,
                    ..IDLE
                },
                FULL,
                FULL,
            ),
            (
                Load {
                    sessions_free: 0,
                    may_displace: true,
                    ..IDLE
                },
                ASK,
                admit(true),
            ),
            (
                Load {
                    sessions_free: 1,
                    ..IDLE
                },
                ASK,
                admit(true),
            ),
            (
                Load {
                    sessions_free: 2,
                    ..IDLE
                },
                admit(false),
                admit(true),
            ),
            // Handshakes without a cookie: as configured, and half of the places at most.
            (
                Load {
                    without_cookie: 99,
                    ..IDLE
                },
                admit(false),
                admit(true),
            ),
            (
                Load {
                    without_cookie: 100,
                    ..IDLE
                },
                ASK,
                admit(true),
            ),
            (
                Load {
                    without_cookie: 7,
                    sessions_free: 16,
                    ..IDLE
                },
                admit(false),
                admit(true),
            ),
            (
                Load {
                    without_cookie: 8,
                    sessions_free: 16,
                    ..IDLE
                },
                ASK,
                admit(true),
            ),
            // Handshakes of the client's network.
            (
                Load {
                    of_prefix: ACCEPTS_PER_PREFIX - 1,
                    ..IDLE
                },
                admit(false),
                admit(true),
            ),
            (
                Load {
                    of_prefix: ACCEPTS_PER_PREFIX,
                    ..IDLE
                },
                ASK,
                admit(true),
            ),
            // Handshakes in all: a network has at most as many as there are places left.
            (
                Load {
                    handshakes: ACCEPTS_MAX - 1,
                    ..IDLE
                },
                admit(false),
                admit(true),
            ),
            (
                Load {
                    handshakes: ACCEPTS_MAX,
                    ..IDLE
                },
                ASK,
                INSTEAD,
            ),
            (
                Load {
                    handshakes: ACCEPTS_MAX - 3,
                    of_prefix: 2,
                    ..IDLE
                },
                admit(false),
                admit(true),
            ),
            (
                Load {
                    handshakes: ACCEPTS_MAX - 3,
                    of_prefix: 3,
                    ..IDLE
                },
                ASK,
                INSTEAD,
            ),
            (
                Load {
                    handshakes: 8,
                    sessions_free: 8,
                    ..IDLE
                },
                ASK,
                INSTEAD,
            ),
            (
                Load {
                    handshakes: 8,
                    sessions_free: 8,
                    may_displace: true,
                    ..IDLE
                },
                ASK,
                admit(true),
            ),
        ];
        for (load, without, with) in cases {
            assert_eq!(
                load.admission(|| false),
                without,
                "without a cookie: {load:?}"
            );
            assert_eq!(load.admission(|| true), with, "with a cookie: {load:?}");
        }
    }

    #[test]
    fn no_cookie_is_looked_at_for_a_client_that_is_refused_anyway() {
        let looked = |load: Load| load.admission(|| unreachable!("a MAC costs time"));
        assert_eq!(
            looked(Load {
                is_draining: true,
                ..IDLE
            }),
            SHUTTING_DOWN
        );
        assert_eq!(
            looked(Load {
                sessions_free: 0,
                ..IDLE
            }),
            FULL
        );
    }
}
