// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients that the application does not serve: their requests are refused without running, with
//! the application's code and text, and their sessions are closed soon.
//!
//! The wire has no place for a text beside CLOSE. A session that were closed at once would tell its
//! client nothing, and the client would connect again for its call.

use std::time::Duration;

use smt_proto::key_exchange::PeerIdentity;
use smt_proto::{CloseCode, Failure, PeerMessage, Time};
use smt_wire::SessionIndex;

use super::EndpointState;
use crate::peer_log::PeerLog;

impl EndpointState {
    /// A client has a session from now on: the application decides whether it is served.
    pub(super) fn accept_peer(&mut self, session: SessionIndex, identity: PeerIdentity) {
        let Some(mut peer) = self.peer_of(session, identity) else {
            return;
        };
        PeerLog::began(session, &peer);
        let authorization = self.authorization.as_ref();
        peer.refusal = authorization.and_then(|rule| rule.refusal(&peer));
        if let Some(refusal) = &peer.refusal {
            let (address, code) = (peer.address, refusal.code);
            tracing::info!(peer = %address, code, text = refusal.text, "a client is not served");
            let until = self.changed + REFUSED_LIFE;
            self.refused.push_back((until, session));
            self.sessions_refused += 1;
        }
        self.peers.insert(session, peer);
        self.judge_newcomer(session);
    }

    /// Ends a message of a client that is not served: a request is refused, and a one-way message
    /// is dropped.
    pub(super) fn refuse_message(&mut self, now: Time, message: &PeerMessage, refusal: Failure) {
        if !message.is_one_way {
            // Without success where its caller has given up.
            let _ = self.endpoint.fail(now, message.rpc, refusal);
        }
    }

    /// When the next session that is not served is to be closed.
    pub(super) fn refused_due(&self) -> Option<Time> {
        self.refused.front().map(|(until, _)| *until)
    }

    /// Closes the sessions that are not served, after their time.
    pub(super) fn close_refused(&mut self, now: Time) {
        while let Some((until, session)) = self.refused.front().copied()
            && until <= now
        {
            self.refused.pop_front();
            self.endpoint.close(session, CloseCode::Refused);
        }
    }
}

/// The time in which a client that is not served learns why by its requests.
const REFUSED_LIFE: Duration = Duration::from_secs(1);
