// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server's sessions as rustls asks for them: by the ticket, which is 32 random bytes.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::{NoServerSessionStorage, StoresServerSessions};
use zeroize::Zeroizing;

use super::{AttemptTickets, Sessions, SessionsPlan, TICKETS, Tickets};
use crate::told_time::ToldTime;

/// A session as rustls writes it: its secret, and the client's certificates.
pub(crate) type ServerValue = Zeroizing<Vec<u8>>;

/// A server's configuration, and the sessions that may be resumed under it: they end with it.
#[derive(Clone)]
pub(crate) struct ResumingServer {
    config: Arc<ServerConfig>,
    sessions: Arc<Sessions<ServerValue>>,
}

impl ResumingServer {
    pub(crate) fn new(mut config: ServerConfig, plan: SessionsPlan, time: Arc<ToldTime>) -> Self {
        let tickets = if plan.memory == 0 { 0 } else { TICKETS };
        config.session_storage = Arc::new(NoServerSessionStorage {});
        // To a client that says how many it wants (RFC 9149), and to one that does not.
        config.max_tls13_tickets = usize::from(tickets);
        config.send_tls13_tickets = usize::from(tickets);
        Self { config: Arc::new(config), sessions: Sessions::new(plan, time) }
    }

    /// The configuration of an attempt, and its tickets.
    pub(crate) fn for_attempt(&self) -> (Arc<ServerConfig>, Tickets) {
        if self.sessions.is_off() {
            return (Arc::clone(&self.config), Tickets::None);
        }
        let tickets = Arc::new(AttemptTickets::new(&self.sessions, true));
        let mut config = ServerConfig::clone(&self.config);
        config.session_storage = Arc::<AttemptTickets<ServerValue>>::clone(&tickets);
        (Arc::new(config), Tickets::Server(tickets))
    }
}

impl StoresServerSessions for AttemptTickets<ServerValue> {
    fn put(&self, ticket: Vec<u8>, session: Vec<u8>) -> bool {
        let bytes = session.len();
        self.collect(ticket, Zeroizing::new(session), bytes)
    }

    /// TLS 1.2 alone asks so.
    fn get(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn take(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        Self::take(self, ticket).map(|mut session| std::mem::take(&mut *session))
    }

    fn can_cache(&self) -> bool {
        true
    }
}
