// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The verified tickets of a client, by server name.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smt_proto::WallTime;

use super::verify::VerifiedTicket;

/// The tickets of a client. Cheap to clone: all clones are one store.
#[derive(Clone, Debug, Default)]
pub struct TicketStore(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    by_name: Mutex<BTreeMap<String, Arc<VerifiedTicket>>>,
    handshakes: AtomicU64,
}

impl TicketStore {
    /// A store without tickets: every session begins by TLS.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps a ticket for the server that it was verified for, in place of an earlier one.
    ///
    /// A store has tickets of 4,096 servers; further ones take the place of the ticket that is over
    /// first.
    pub fn insert(&self, ticket: VerifiedTicket) {
        let mut tickets = self.lock();
        let name = ticket.server_name().to_ascii_lowercase();
        if tickets.len() >= SERVERS_MAX && !tickets.contains_key(&name) {
            let ends = |ticket: &VerifiedTicket| *ticket.ticket().validity().end();
            let first = tickets.iter().min_by_key(|(_, ticket)| ends(ticket));
            if let Some(first) = first.map(|(name, _)| name.clone()) {
                tickets.remove(&first);
            }
        }
        tickets.insert(name, Arc::new(ticket));
    }

    /// The ticket of a server, if there is one that is good at `now`.
    #[must_use]
    pub fn get(&self, server_name: &str, now: WallTime) -> Option<Arc<VerifiedTicket>> {
        let mut tickets = self.lock();
        let name = server_name.to_ascii_lowercase();
        let ticket = tickets.get(&name)?;
        if ticket.is_good(now) {
            return Some(Arc::clone(ticket));
        }
        if ticket.is_over(now) {
            tickets.remove(&name);
        }
        None
    }

    /// Forgets all tickets: those for which another trust has been decided on, for example.
    pub fn clear(&self) {
        self.lock().clear();
    }

    /// Forgets the ticket of this hash: the server does not take it.
    pub(super) fn remove(&self, ticket: &VerifiedTicket) {
        let mut tickets = self.lock();
        let name = ticket.server_name().to_ascii_lowercase();
        if tickets.get(&name).is_some_and(|of| of.hash == ticket.hash) {
            tickets.remove(&name);
        }
    }

    /// A server has proved that it has the key of one of the tickets.
    pub(super) fn count_handshake(&self) {
        self.0.handshakes.fetch_add(1, Ordering::Relaxed);
    }

    /// How many handshakes went by tickets of this store so far: those in which the server proved
    /// that it has the ticket's key. A client that had a ticket and shows none here went by TLS.
    #[must_use]
    pub fn handshakes(&self) -> u64 {
        self.0.handshakes.load(Ordering::Relaxed)
    }

    /// How many servers there are tickets of.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether there is no ticket.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<VerifiedTicket>>> {
        let by_name = &self.0.by_name;
        by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Servers of which tickets are kept.
const SERVERS_MAX: usize = 4_096;
