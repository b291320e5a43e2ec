// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sessions whose peers the trust of today does not accept.

use std::sync::Arc;
use std::time::Duration;

use smt_handshake::PeerJudge;
use smt_proto::key_exchange::HandshakeFailure;
use smt_proto::{CloseCode, Time};
use smt_wire::SessionIndex;

use super::EndpointState;
use crate::clock::Clock;
use crate::distrust::Distrusted;
use crate::peer::Peer;

/// The trust by which newcomers are judged, since their handshakes may have begun by the trust
/// before.
pub(super) struct NewcomersJudge {
    judge: Arc<PeerJudge>,
    until: Time,
}

impl EndpointState {
    /// Judges the peers of sessions that begin within the next minute by this trust.
    pub(crate) fn judge_newcomers(&mut self, now: Time, judge: Arc<PeerJudge>) {
        self.newcomers_judge = Some(NewcomersJudge { judge, until: now + HANDSHAKES_WITHIN });
    }

    /// The peers of all live sessions.
    pub(crate) fn live_peers(&self) -> Vec<(SessionIndex, Arc<Peer>)> {
        let is_live = |session: &SessionIndex| self.endpoint.session(*session).is_some();
        self.peers.iter().filter(|(session, _)| is_live(session)).collect()
    }

    /// Ends the session of a peer that is not accepted any more, for this reason.
    pub(crate) fn end_distrusted(
        &mut self,
        now: Time,
        session: SessionIndex,
        why: &HandshakeFailure,
    ) {
        if self.endpoint.session(session).is_none() {
            return;
        }
        let peer = self.peers.get(session);
        let (address, name) = peer.map(|peer| (peer.address, peer.name())).unzip();
        let name = name.flatten();
        tracing::info!(
            peer = address.map(tracing::field::display),
            name,
            "the peer of a session is accepted no more: {}",
            why.text
        );
        self.sessions_distrusted += 1;
        match self.distrusted {
            Distrusted::End => self.endpoint.close(session, CloseCode::Expired),
            Distrusted::Finish => {
                self.endpoint.expire(now, session);
                self.finish_session(session);
            }
            Distrusted::Keep => {}
        }
    }

    /// A session has begun: its peer is judged by a trust that is newer than its handshake may be.
    pub(super) fn judge_newcomer(&mut self, session: SessionIndex) {
        let now = self.changed;
        let Some(newcomers) = &self.newcomers_judge else {
            return;
        };
        if newcomers.until <= now {
            self.newcomers_judge = None;
            return;
        }
        let judge = Arc::clone(&newcomers.judge);
        let peer = self.peers.get(session).map(|peer| peer.identity());
        let judged = peer.map(|identity| judge.check(&identity, Clock::wall_time()));
        if let Some(Err(why)) = judged {
            self.end_distrusted(now, session, &why);
        }
    }
}

/// A handshake takes at most this long.
const HANDSHAKES_WITHIN: Duration = Duration::from_secs(60);
