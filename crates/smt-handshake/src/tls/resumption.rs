// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Resumption of TLS sessions by tickets (SPEC §6.10), for both sides.
//!
//! Flow: 1. a side has its [`Sessions`] in memory, bounded and for an hour at most  2. each attempt
//! has [`AttemptTickets`], TLS's view of them: it takes the session that is resumed, and collects
//! the tickets that come or leave  3. at the attempt's end those are kept for as long as the
//! peer's identity stands: it was proved by the last full handshake, at most an hour ago, and by
//! certificates and revocation lists that have not ended.
//!
//! A server remembers sessions rather than encrypting them into tickets: a ticket is then used
//! once, ends with the server's identity or trust, has 32 bytes whatever certificates the client
//! showed, and there is no key whose loss would let anybody pose as any client.
//! Not here: the tickets of SPEC §6.7, which have nothing to do with these.

mod attempt;
mod client;
mod server;
mod store;

use std::sync::{Arc, Mutex, PoisonError};

use rustls::time_provider::TimeProvider;
use rustls_pki_types::CertificateDer;
use smt_proto::WallTime;

use self::attempt::AttemptTickets;
use self::client::ClientValue;
pub(crate) use self::client::ResumingClient;
pub(crate) use self::server::ResumingServer;
use self::server::ServerValue;
use self::store::Store;
use crate::peer_certificate::not_after;
use crate::told_time::ToldTime;

/// The sessions that one side may resume.
pub(crate) struct Sessions<V> {
    store: Mutex<Store<V>>,
    time: Arc<ToldTime>,
    plan: SessionsPlan,
}

/// The memory of a side's sessions, and how their peers are trusted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionsPlan {
    /// Bytes of memory; 0 if nothing is resumed.
    pub(crate) memory: usize,
    /// Tickets of one name.
    pub(crate) of_name: usize,
    /// Whether the dates of the peer's certificates count: of pinned ones they do not.
    pub(crate) judges_dates: bool,
    /// The last second in which the peer's trust counts, where revocation lists end.
    pub(crate) trust_until: Option<u64>,
}

impl<V> Sessions<V> {
    fn new(plan: SessionsPlan, time: Arc<ToldTime>) -> Arc<Self> {
        Arc::new(Self { store: Mutex::new(Store::new(plan.memory, plan.of_name)), time, plan })
    }

    const fn is_off(&self) -> bool {
        self.plan.memory == 0
    }

    /// Seconds since 1970, if there is a clock.
    fn now(&self) -> Option<u64> {
        self.time.current_time().map(|time| time.as_secs())
    }

    /// Takes the newest session under this name that may still be resumed, and when that ends.
    fn take(&self, name: &[u8]) -> Option<(V, u64)> {
        let now = self.now()?;
        self.lock().take(name, now)
    }

    /// When the identity ends that a peer has proved now by these certificates.
    fn end_of(&self, certificates: &[CertificateDer<'_>]) -> u64 {
        let hour = self.now().map_or(0, |now| now.saturating_add(LIFE));
        if !self.plan.judges_dates {
            return hour;
        }
        // The last second of a certificate that cannot be read is 0.
        let end = |der: &CertificateDer<'_>| not_after(der).map_or(0, WallTime::as_secs);
        certificates.iter().map(end).chain(self.plan.trust_until).fold(hour, u64::min)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Store<V>> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Seconds for which a proof of identity counts (SPEC §6.10).
const LIFE: u64 = 3_600;

/// Tickets that a client asks for, and a server sends: one for each session, used once, so that a
/// client that begins sessions side by side has as many as it had sessions.
const TICKETS: u8 = 1;

/// Tickets of an attempt, of either side.
#[derive(Clone)]
pub(crate) enum Tickets {
    /// Neither taken nor kept.
    None,
    Client(Arc<AttemptTickets<ClientValue>>),
    Server(Arc<AttemptTickets<ServerValue>>),
}

/// How the peer of an attempt has proved its identity.
#[derive(Clone, Copy)]
pub(crate) struct Proof<'a> {
    /// By an earlier session, which this one resumes.
    pub(crate) is_resumed: bool,
    pub(crate) certificates: &'a [CertificateDer<'static>],
    /// Bytes of the flight with the tickets.
    pub(crate) flight: usize,
}

impl Tickets {
    /// Keeps the tickets of an attempt that has come to its end.
    pub(crate) fn keep(&self, proof: Proof<'_>) {
        match self {
            Self::None => {}
            Self::Client(tickets) => {
                // Each ticket has the server's certificates with it.
                let shown = proof.certificates.iter().map(|der| der.len());
                tickets.keep(proof, proof.flight + shown.sum::<usize>());
            }
            Self::Server(tickets) => tickets.keep(proof, 0),
        }
    }
}
