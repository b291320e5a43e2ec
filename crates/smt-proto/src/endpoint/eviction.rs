// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Room for a new client's session (SPEC §10). When the endpoint has as many as it may, a session
//! of the addresses that have most is closed; when an identity has as many as one may, an unused
//! one of its own.

use core::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use core::ops::Bound;

use smt_record::Side;
use smt_wire::SessionIndex;

use super::Endpoint;
use crate::error::CloseCode;
use crate::establish::address_shares::Excess;
use crate::establish::identity_shares::IdentityHash;
use crate::limits::EVICTION_CANDIDATES;

/// A live session, by the address of its peer.
type Place = (SocketAddr, SessionIndex, SessionIndex);

/// Before all sessions.
pub(super) const START: Place = {
    let lowest = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
    (lowest, SessionIndex(0), SessionIndex(0))
};

impl Endpoint {
    /// Whether a client whose CONFIRM has opened gets a session. If the endpoint has as many as it
    /// may, the longest unused session of the addresses that have more than their share is closed
    /// for it.
    pub(super) fn has_room_for(&mut self, newcomer: IpAddr) -> bool {
        if self.sessions.len() < self.shared.config.sessions_max {
            return true;
        }
        let excess = self.session_shares.excess(newcomer);
        let Some(index) = excess.and_then(|excess| self.longest_unused(excess)) else {
            return false;
        };
        tracing::debug!(%index, %newcomer, "a session is closed for a newcomer");
        self.close(index, CloseCode::Idle);
        true
    }

    /// Counts the session of a client that has just begun to its identity. If that has too many,
    /// the longest unused one of them is closed; if all are in use, the newcomer.
    pub(super) fn bound_identity(
        &mut self,
        identity: Option<IdentityHash>,
        newcomer: SessionIndex,
    ) {
        let Some(identity) = identity else {
            return;
        };
        if let Some(session) = self.sessions.get_mut(newcomer.0) {
            session.identity = Some(identity);
        }
        let count = self.identity_shares.add(identity, newcomer);
        if count <= self.shared.config.sessions_of_identity() {
            return;
        }
        let mut longest = None;
        for index in self.identity_shares.of(identity).iter().take(EVICTION_CANDIDATES) {
            let session = self.sessions.get(index.0).filter(|_| *index != newcomer);
            let Some(session) = session.filter(|one| one.is_idle() && !one.has_ended()) else {
                continue;
            };
            let unused = (session.last_used(), *index);
            longest = Some(longest.map_or(unused, |other| unused.min(other)));
        }
        match longest {
            Some((_, index)) => self.close(index, CloseCode::Idle),
            None => self.close(newcomer, CloseCode::TooMany),
        }
    }

    /// The longest unused session, among some at least: the next search goes on behind those.
    fn longest_unused(&mut self, excess: Excess) -> Option<SessionIndex> {
        let start = (SocketAddr::new(excess.first(), 0), SessionIndex(0), SessionIndex(0));
        let from = self.eviction_from.max(start);
        let is_theirs = |place: &&Place| excess.has(place.0.ip());
        let ahead = (Bound::Excluded(from), Bound::Unbounded);
        let ahead = self.by_remote.range(ahead).take_while(is_theirs);
        let around = self.by_remote.range(start..=from).take_while(is_theirs);
        let mut longest = None;
        for place in ahead.chain(around).take(EVICTION_CANDIDATES) {
            self.eviction_from = *place;
            let session = self.sessions.get(place.2.0);
            let session = session.filter(|session| session.side() == Side::Server);
            let Some(session) = session.filter(|session| !session.has_ended()) else {
                continue;
            };
            let unused = (session.last_used(), place.2);
            longest = Some(longest.map_or(unused, |other| unused.min(other)));
        }
        longest.map(|(_, index)| index)
    }
}
