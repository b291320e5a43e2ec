// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How calls and sessions of a player end.

use bytes::Bytes;
use smt_proto::{CallError, CallFailure, Endpoint, Metadata, RpcId, SessionEnd, Time};
use smt_wire::SessionIndex;

use super::{Player, Underway};
use crate::swarm::check::Outcome;

impl Player {
    pub(super) fn replied(&mut self, now: Time, rpc: RpcId, body: Bytes, metadata: &Metadata) {
        if let Some(Underway { content, .. }) = self.calls.get(&rpc) {
            let expected = content.reply_metadata(self.limit_of(self.id));
            self.compare_metadata(&expected, metadata);
        }
        self.used.insert(rpc.session);
        self.within_own_limit(&body);
        self.ended(now, rpc, Outcome::Replied(body));
    }

    pub(super) fn call_failed(
        &mut self,
        now: Time,
        rpc: RpcId,
        error: &CallError,
        endpoint: &mut Endpoint,
    ) {
        if let CallFailure::Refused(failure) | CallFailure::Failed(failure) = &error.reason {
            self.compare_failure(rpc, failure);
            self.parts_replied(rpc, endpoint);
        }
        self.end_parts(rpc, endpoint);
        let outcome = match error.reason {
            CallFailure::Forgotten => Outcome::Forgotten,
            _ => Outcome::Failed(error.execution),
        };
        self.ended(now, rpc, outcome);
    }

    pub(super) fn session_ended(&mut self, session: SessionIndex, end: SessionEnd) {
        let peer = self.sessions.remove(&session);
        self.peers.retain(|_, used| *used != session);
        self.left.extend(peer);
        if self.accepts_late {
            self.past_sessions.extend(peer.map(|peer| (session, peer)));
        }
        if let Some(peer) = peer.filter(|_| self.used.remove(&session)) {
            self.ends.push((peer, end));
        }
    }
}
