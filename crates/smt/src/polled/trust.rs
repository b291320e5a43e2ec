// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The identity of a polled endpoint and its trust in peers, replaced while it is open, and the end
//! of sessions whose peers are accepted no more.

use smt_handshake::{ClientAuth, Identity, Trust};
use smt_proto::CloseCode;

use super::{Endpoint, HandshakeFailure, PeerIdentity, SessionIndex};
use crate::clock::Clock;
use crate::error::OpenError;

impl Endpoint {
    /// Shows this identity to clients that connect from now on by TLS, at all shards of the server:
    /// a renewed certificate, for example. Handshakes in progress and sessions go on with what they
    /// began with.
    ///
    /// # Errors
    /// The endpoint takes no clients by TLS.
    pub fn set_identity(&self, identity: Identity) -> Result<(), OpenError> {
        Ok(self.credentials.server()?.set_identity(identity)?)
    }

    /// Asks TLS clients that connect from now on for other certificates, or for none, at all shards
    /// of the server. Sessions go on: judge their clients by [`Self::check_peer`].
    ///
    /// # Errors
    /// The endpoint takes no clients by TLS, or the trust cannot be used; then nothing
    /// has changed.
    pub fn set_client_auth(&self, client_auth: ClientAuth) -> Result<(), OpenError> {
        Ok(self.credentials.server()?.set_client_auth(client_auth)?)
    }

    /// Accepts servers by another trust from now on, revocation lists included, at all shards.
    /// Sessions and handshakes in progress go on: judge their servers by [`Self::check_peer`].
    /// Tickets that were verified by the trust before are forgotten; give their
    /// [`crate::TicketVerifier`] the new one before.
    ///
    /// # Errors
    /// The endpoint calls no servers by TLS, or the trust cannot be used; then nothing has changed.
    pub fn set_trust(&self, trust: Trust) -> Result<(), OpenError> {
        Ok(self.credentials.client()?.set_trust(trust)?)
    }

    /// Shows this identity from now on to servers that ask for one, or none, at all shards.
    /// Sessions and handshakes in progress go on with what they began with.
    ///
    /// # Errors
    /// The endpoint calls no servers by TLS.
    pub fn set_client_identity(&self, identity: Option<Identity>) -> Result<(), OpenError> {
        Ok(self.credentials.client()?.set_identity(identity)?)
    }

    /// Judges what the peer of a live session has proved, as its events [`Accepted`] or
    /// [`Connected`] have told, by the trust of today, after that was replaced: a peer that is
    /// refused would not be accepted any more, and its session may be
    /// [closed](Self::close_distrusted) or [expired](Self::expire).
    ///
    /// [`Accepted`]: super::Event::Accepted
    /// [`Connected`]: super::Event::Connected
    ///
    /// # Errors
    /// It says why a handshake would not accept the peer now.
    pub fn check_peer(&self, peer: &PeerIdentity) -> Result<(), HandshakeFailure> {
        let judge = self.credentials.judge();
        judge.map_or(Ok(()), |judge| judge.check(peer, Clock::wall_time()))
    }

    /// Ends a session in good order: nothing begins in it, requests that come are refused and did
    /// not run, and it closes once nothing is in progress.
    pub fn expire(&mut self, session: SessionIndex) {
        let now = self.clock.now();
        self.endpoint.expire(now, session);
        self.settle(now);
    }

    /// Closes a session whose peer is accepted no more ([`Self::check_peer`]), and tells the peer
    /// that this is why.
    pub fn close_distrusted(&mut self, session: SessionIndex) {
        self.close_as(session, CloseCode::Expired);
    }
}
