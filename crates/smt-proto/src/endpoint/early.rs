// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Early data of an endpoint: the calls that began with a client's session, and a server's session
//! that begins with its client's flight 1 (SPEC §6.8).

use alloc::boxed::Box;
use alloc::vec::Vec;

use smt_wire::SessionIndex;

use super::Endpoint;
use crate::error::SessionEnd;
use crate::establish::confirm::Unconfirmed;
use crate::establish::early::EarlyCalls;
use crate::establish::identity_shares::IdentityHash;
use crate::event::{ConnectId, Event};
use crate::limits::ACCEPT_LIFE;
use crate::session::CallKind;
use crate::time::Time;

impl Endpoint {
    /// Gives the calls of a connect their names in its session, which is live. Those that the
    /// server has taken have arrived; the others leave like any call.
    // A frame of its own: a kernel's stack has 16 KB.
    #[inline(never)]
    pub(super) fn begin_early_calls(
        &mut self,
        now: Time,
        connect: ConnectId,
        index: SessionIndex,
        early: EarlyCalls,
    ) {
        let EarlyCalls { calls, since, sent, is_taken } = early;
        let Some(session) = self.sessions.get_mut(index.0) else {
            return;
        };
        if calls.is_empty() {
            return;
        }
        let taken = if is_taken { sent } else { 0 };
        let mut names = Vec::with_capacity(calls.len());
        for (number, call) in calls.into_iter().enumerate() {
            let kind = CallKind {
                deadline: call.deadline.map(|after| after.saturating_sub(now.since(since))),
                ..CallKind::default()
            };
            let called = session.call(now, call.message, kind, &mut self.shared);
            if let Ok(id) = called
                && number < taken
            {
                session.arrived_early(id);
                self.shared.statistics.early_requests += 1;
            }
            names.push(called.map(|id| session.rpc(id)));
        }
        self.shared.events.push_back(Event::EarlyCalls { connect, calls: names, taken });
    }

    /// Begins the session of a client whose early data is taken, before the client has confirmed.
    /// The handshake stays until the client is heard, to repeat flight 2.
    // A frame of its own: a kernel's stack has 16 KB.
    #[inline(never)]
    pub(super) fn start_early_session(&mut self, now: Time, index: SessionIndex) {
        let Some(accept) = self.accepts.get_mut(index.0) else {
            return;
        };
        let (path, is_validated) = (accept.path, accept.permitted().is_none());
        let Some(mut early) = accept.take_early() else {
            return;
        };
        // Anybody can send a flight in another's name: no session of others ends for it.
        let is_full = self.sessions.len() >= self.shared.config.sessions_max;
        if is_full && (!is_validated || !self.has_room_for(path.remote.ip())) {
            self.remove_accept(index);
            return;
        }
        let peer = early.unconfirmed.take_peer();
        self.shared.statistics.sessions_resumed += u64::from(peer.is_resumed);
        self.insert_unconfirmed(early.unconfirmed);
        let identity = IdentityHash::of(&peer, self.crypto.library.hash());
        self.shared.events.push_back(Event::Accepted { session: index, path, peer });
        self.accepts_early += 1;
        if let Some(session) = self.sessions.get_mut(index.0) {
            session.limit_until_confirmed(early.permitted);
            session.take_early_data(now, early.bytes.into(), &mut self.shared);
        }
        self.bound_identity(identity, index);
        self.reschedule(index);
    }

    // A frame of its own: a kernel's stack has 16 KB.
    #[inline(never)]
    fn insert_unconfirmed(&mut self, unconfirmed: Box<Unconfirmed>) {
        self.insert_session(unconfirmed.confirmed());
    }

    /// Forgets a handshake that has not come to its end, with the session that has begun early.
    pub(super) fn give_up_accept(&mut self, index: SessionIndex) {
        let accept = self.accepts.get(index.0);
        let has_session = accept.is_some_and(|accept| accept.has_early_session());
        self.remove_accept(index);
        if let Some(session) = self.sessions.get_mut(index.0)
            && has_session
        {
            session.end(SessionEnd::Silent(ACCEPT_LIFE), &mut self.shared);
            self.reschedule(index);
        }
    }

    /// Looks whether a client with an early session was heard: its handshake is over then.
    pub(super) fn finish_early_session(&mut self, index: SessionIndex) {
        if self.accepts_early > 0
            && let Some(session) = self.sessions.get_mut(index.0)
            && session.is_confirmed()
            && self.accepts.contains(index.0)
        {
            session.confirmed_early();
            self.remove_accept(index);
        }
    }
}
