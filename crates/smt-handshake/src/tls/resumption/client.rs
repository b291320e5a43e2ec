// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client's tickets as rustls asks for them: by the server's name.
//!
//! rustls itself refuses a ticket under another trust or another identity of the client.

use std::sync::Arc;

use rustls::client::{
    ClientSessionStore, Resumption, TicketRequest, Tls12ClientSessionValue, Tls12Resumption,
    Tls13ClientSessionValue,
};
use rustls::{ClientConfig, NamedGroup};
use rustls_pki_types::ServerName;

use super::{AttemptTickets, Sessions, SessionsPlan, TICKETS, Tickets};
use crate::told_time::ToldTime;

/// A ticket, the secret that goes with it, and the server's certificates.
pub(crate) type ClientValue = Tls13ClientSessionValue;

/// A client's configuration, and the sessions that it may resume.
#[derive(Clone)]
pub(crate) struct ResumingClient {
    config: Arc<ClientConfig>,
    sessions: Arc<Sessions<ClientValue>>,
}

impl ResumingClient {
    pub(crate) fn new(mut config: ClientConfig, plan: SessionsPlan, time: Arc<ToldTime>) -> Self {
        let tickets = if plan.memory == 0 { 0 } else { TICKETS };
        config.resumption = Resumption::disabled();
        config.send_ticket_request =
            Some(TicketRequest { new_session_count: tickets, resumption_count: tickets });
        Self { config: Arc::new(config), sessions: Sessions::new(plan, time) }
    }

    /// The configuration of an attempt that neither resumes a session nor wants a ticket.
    pub(crate) fn without_resumption(&self) -> ClientConfig {
        let mut config = ClientConfig::clone(&self.config);
        config.send_ticket_request = None;
        config
    }

    /// The configuration of an attempt, and its tickets. An attempt after one that has failed
    /// resumes nothing: the session may have been what was wrong with it.
    pub(crate) fn for_attempt(&self, is_retry: bool) -> (Arc<ClientConfig>, Tickets) {
        if self.sessions.is_off() {
            return (Arc::clone(&self.config), Tickets::None);
        }
        let tickets = AttemptTickets::new(&self.sessions, !is_retry);
        let tickets = Arc::new(tickets);
        let mut config = ClientConfig::clone(&self.config);
        let store = Arc::<AttemptTickets<ClientValue>>::clone(&tickets);
        config.resumption = Resumption::store(store).tls12_resumption(Tls12Resumption::Disabled);
        (Arc::new(config), Tickets::Client(tickets))
    }
}

impl ClientSessionStore for AttemptTickets<ClientValue> {
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, name: ServerName<'static>, value: ClientValue) {
        self.collect(key(&name), value, 0);
    }

    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<ClientValue> {
        self.take(&key(name))
    }
}

fn key(name: &ServerName<'_>) -> Vec<u8> {
    name.to_str().as_bytes().to_vec()
}
