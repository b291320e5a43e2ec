// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The tickets' keys of a server: those that it still answers to.

use std::sync::{Arc, PoisonError, RwLock};

use smt_proto::WallTime;

use super::format::Ticket;
use super::replay::ReplayMemory;
use super::share::StaticKey;

/// The key behind one ticket. It is not `Clone` and cannot be written: it belongs to one process,
/// which alone can know what it has answered by it.
#[derive(Debug)]
pub struct TicketKey {
    pub(super) ticket: Ticket,
    pub(super) hash: [u8; 32],
    pub(super) key: StaticKey,
    /// The early data that was taken by it.
    pub(super) seen: ReplayMemory,
}

impl TicketKey {
    pub(super) fn new(ticket: Ticket, key: StaticKey) -> Self {
        Self {
            hash: ticket.hash(),
            ticket,
            key,
            seen: ReplayMemory::default(),
        }
    }

    /// Whether the ticket is over at `now`, a client's clock that is late allowed for.
    fn is_over(&self, now: WallTime) -> bool {
        now.as_secs() > self.ticket.validity().end().saturating_add(CLOCK_SKEW)
    }
}

/// The keys that a server answers to. Cheap to clone: all clones are one set.
#[derive(Clone, Debug, Default)]
pub struct TicketKeys(Arc<RwLock<Vec<Arc<TicketKey>>>>);

impl TicketKeys {
    /// No keys yet: clients with tickets are told to use TLS.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Answers to a further ticket, and forgets the keys of those that are over.
    ///
    /// At most 64 tickets are answered to: of more, the oldest is forgotten.
    pub fn add(&self, key: TicketKey, now: WallTime) {
        let mut keys = self.0.write().unwrap_or_else(PoisonError::into_inner);
        keys.retain(|key| !key.is_over(now));
        if keys.len() >= KEYS_MAX {
            keys.remove(0);
        }
        keys.push(Arc::new(key));
    }

    /// Answers to none of the tickets any more: they are revoked.
    pub fn clear(&self) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// How many tickets are answered to.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether no ticket is answered to.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key of a ticket by the ticket's hash, if the ticket is good at `now`. Keys of tickets
    /// that are over are erased.
    pub(super) fn get(&self, hash: &[u8], now: WallTime) -> Option<Arc<TicketKey>> {
        let keys = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let is_any_over = keys.iter().any(|key| key.is_over(now));
        let key = keys
            .iter()
            .find(|key| key.hash == hash && !key.is_over(now));
        let key = key.map(Arc::clone);
        drop(keys);
        if is_any_over {
            let mut keys = self.0.write().unwrap_or_else(PoisonError::into_inner);
            keys.retain(|key| !key.is_over(now));
        }
        key
    }
}

/// Seconds that the clocks of client and server may differ.
pub(super) const CLOCK_SKEW: u64 = 60;
/// Tickets are renewed every few minutes at the most often.
const KEYS_MAX: usize = 64;
