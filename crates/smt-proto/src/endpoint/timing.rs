// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Timers of an endpoint, and the books that every change ends with.

use smt_wire::SessionIndex;

use super::{Endpoint, Sender};
use crate::connect::Progress;
use crate::event::{ConnectId, Event};
use crate::setup::Maker;
use crate::time::Time;

impl Endpoint {
    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        while let Some((due, sender)) = self.timers.first().copied() {
            if due > now {
                return;
            }
            self.timers.pop_first();
            match sender {
                Sender::Session(index) => self.time_session(now, index),
                Sender::Connect(id) => self.time_connect(now, id),
                Sender::Accept(index) => self.remove_accept(index),
            }
        }
    }

    /// Brings the books of a session up to date after any change: its place in the queue of senders, its
    /// timer, and its end.
    pub(super) fn settle(&mut self, index: SessionIndex) {
        let Some(session) = self.sessions.get_mut(index.0) else {
            return;
        };
        if session.has_output(&self.shared) {
            let (rank, sender) = (session.rank(), Sender::Session(index));
            if session.ready.is_none_or(|(waiting, _)| rank < waiting) {
                if let Some(place) = session.ready {
                    self.ready.remove(place, sender);
                }
                session.ready = Some(self.ready.insert(rank, sender));
            }
        } else if session.has_ended() {
            self.remove_session(index);
            return;
        }
        let due = session.due();
        if due == session.timer {
            return;
        }
        let before = std::mem::replace(&mut session.timer, due);
        self.move_timer(Sender::Session(index), before, due);
    }

    pub(super) fn move_timer(&mut self, sender: Sender, before: Option<Time>, after: Option<Time>) {
        if let Some(before) = before {
            self.timers.remove(&(before, sender));
        }
        if let Some(after) = after {
            self.timers.insert((after, sender));
        }
    }

    /// What has come of a connect: a session, another attempt, an error.
    pub(super) fn progress(&mut self, now: Time, id: ConnectId, progress: Progress) {
        match progress {
            Progress::Waiting => self.settle_connect(id),
            Progress::Restart => self.restart(now, id),
            Progress::Live(session, peer) => {
                self.remove_connect(id);
                let index = session.index;
                self.insert_session(session);
                self.shared.events.push_back(Event::Connected {
                    connect: id,
                    session: index,
                    peer,
                });
                self.settle(index);
            }
            Progress::Failed(error) => {
                self.remove_connect(id);
                self.shared
                    .events
                    .push_back(Event::ConnectFailed { connect: id, error });
            }
        }
    }

    pub(super) fn insert_session(&mut self, session: Box<crate::session::Session>) {
        let index = session.index;
        tracing::debug!(%index, path = %session.path, side = ?session.side(), "session is live");
        self.by_remote
            .insert((session.path.remote, session.remote_index, index));
        self.shared.statistics.sessions_begun += 1;
        self.sessions.insert(index.0, session);
    }

    pub(super) fn remove_connect(&mut self, id: ConnectId) {
        let Some(connect) = self.connects.remove(id.0) else {
            return;
        };
        self.connect_of.remove(&connect.index());
        self.move_timer(Sender::Connect(id), connect.timer, None);
    }

    pub(super) fn remove_accept(&mut self, index: SessionIndex) {
        let Some(accept) = self.accepts.remove(index.0) else {
            return;
        };
        self.accept_of.remove(&(accept.path.remote, accept.remote));
        self.move_timer(Sender::Accept(index), accept.timer, None);
        if accept.has_cookie() {
            return;
        }
        self.accepts_without_cookie -= 1;
        let prefix = super::receive::prefix_of(accept.path.remote.ip());
        if let Some(count) = self.prefixes.get_mut(&prefix) {
            *count -= 1;
            if *count == 0 {
                self.prefixes.remove(&prefix);
            }
        }
    }

    fn remove_session(&mut self, index: SessionIndex) {
        let Some(session) = self.sessions.remove(index.0) else {
            return;
        };
        tracing::debug!(%index, path = %session.path, "session has ended");
        self.by_remote
            .remove(&(session.path.remote, session.remote_index, index));
        self.move_timer(Sender::Session(index), session.timer, None);
    }

    fn time_session(&mut self, now: Time, index: SessionIndex) {
        let Some(session) = self.sessions.get_mut(index.0) else {
            return;
        };
        session.timer = None;
        session.handle_timeout(now, &mut self.shared);
        self.settle(index);
    }

    fn time_connect(&mut self, now: Time, id: ConnectId) {
        let Some(connect) = self.connects.get_mut(id.0) else {
            return;
        };
        connect.timer = None;
        let progress = connect.handle_timeout(now);
        self.progress(now, id, progress);
    }

    fn restart(&mut self, now: Time, id: ConnectId) {
        self.shared.statistics.handshakes_failed += 1;
        let Some(path) = self.connects.get(id.0).map(|connect| connect.path) else {
            return;
        };
        let Some(first) = self.issue_index(path) else {
            return;
        };
        let maker = Maker {
            config: &self.shared.config,
            setup: &self.setup,
        };
        let Some(connect) = self.connects.get_mut(id.0) else {
            return;
        };
        self.connect_of.remove(&connect.index());
        let progress = connect.restart(now, first, &maker);
        self.connect_of.insert(connect.index(), id);
        self.progress(now, id, progress);
    }
}
