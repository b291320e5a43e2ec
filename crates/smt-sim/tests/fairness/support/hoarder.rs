// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A greedy client: it has as many sessions as the server gives it, and asks for more.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use smt_carrier::Path;
use smt_proto::{ConnectId, Endpoint, Event, Time};
use smt_sim::net::Application;
use smt_wire::SessionIndex;

use super::SERVER;

pub(crate) struct Hoarder {
    /// How many sessions it would like.
    wants: usize,
    /// It sends an empty one-way message in each session so often, or none.
    sends_every: Option<Duration>,
    sessions: BTreeSet<SessionIndex>,
    connecting: BTreeSet<ConnectId>,
    /// Sessions that it had and that have ended.
    pub(crate) lost: usize,
    tries: Time,
    sends: Time,
}

impl Hoarder {
    pub(crate) fn new(wants: usize, sends_every: Option<Duration>) -> Self {
        let begins = Time::from_nanos(1_000_000_000);
        Self {
            wants,
            sends_every,
            sessions: BTreeSet::new(),
            connecting: BTreeSet::new(),
            lost: 0,
            tries: begins,
            sends: begins,
        }
    }

    /// Connects until it has what it wants, one after the other.
    fn connect(&mut self, now: Time, endpoint: &mut Endpoint) {
        if self.sessions.len() < self.wants && self.connecting.is_empty() {
            let path = Path::to(SERVER.address());
            let connect = endpoint.connect(now, path, "host-0.sim", CONNECT_DEADLINE);
            self.connecting.extend(connect);
        }
    }
}

impl Application for Hoarder {
    fn handle(&mut self, now: Time, event: Event, endpoint: &mut Endpoint) {
        match event {
            Event::Connected { connect, session, .. } => {
                self.connecting.remove(&connect);
                self.sessions.insert(session);
                self.connect(now, endpoint);
            }
            Event::ConnectFailed { connect, .. } => {
                self.connecting.remove(&connect);
            }
            Event::SessionEnded { session, .. } => {
                self.lost += usize::from(self.sessions.remove(&session));
                self.connect(now, endpoint);
            }
            _ => {}
        }
    }

    fn handle_timeout(&mut self, now: Time, endpoint: &mut Endpoint) {
        if self.tries <= now {
            self.tries = now + TRIES_EVERY;
            self.connect(now, endpoint);
        }
        if let Some(every) = self.sends_every
            && self.sends <= now
        {
            self.sends = now + every;
            for session in &self.sessions {
                // A session that has just ended takes none.
                let _ = endpoint.send_one_way(now, *session, Bytes::new(), None);
            }
        }
    }

    fn next_timeout(&self) -> Option<Time> {
        let sends = self.sends_every.map(|_| self.sends);
        sends.into_iter().chain([self.tries]).min()
    }
}

const CONNECT_DEADLINE: Duration = Duration::from_secs(5);
/// When it was refused it tries again.
const TRIES_EVERY: Duration = Duration::from_secs(1);
