// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The tickets' keys of a server: those that it still answers to.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use smt_proto::WallTime;

use super::eraser::Eraser;
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
        Self { hash: ticket.hash(), ticket, key, seen: ReplayMemory::default() }
    }

    /// Whether the ticket is over at `now`, a client's clock that is late allowed for.
    fn is_over(&self, now: WallTime) -> bool {
        now.as_secs() > self.last_second()
    }

    fn last_second(&self) -> u64 {
        self.ticket.validity().end().saturating_add(CLOCK_SKEW)
    }
}

/// The keys that a server answers to. Cheap to clone: all clones are one set.
///
/// The key of a ticket that is over is erased a minute later, also if no client comes: a thread
/// waits for it as long as there are keys.
#[derive(Clone, Debug, Default)]
pub struct TicketKeys(Arc<Set>);

#[derive(Debug, Default)]
struct Set {
    keys: RwLock<Vec<Held>>,
    eraser: Eraser,
}

/// A key with the moment of its end, which holds whatever becomes of the host's clock.
#[derive(Debug)]
struct Held {
    key: Arc<TicketKey>,
    until: Option<Instant>,
}

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
        let left = key.last_second().saturating_sub(now.as_secs());
        self.add_for(key, now, Duration::from_secs(left));
    }

    fn add_for(&self, key: TicketKey, now: WallTime, left: Duration) {
        let until = Instant::now().checked_add(left);
        let mut keys = self.0.write();
        keys.retain(|held| !held.key.is_over(now));
        if keys.len() >= KEYS_MAX {
            keys.remove(0);
        }
        let key = Arc::new(key);
        keys.push(Held { key, until });
        drop(keys);
        let Some(until) = until else {
            return;
        };
        let set = Arc::downgrade(&self.0);
        self.0.eraser.at(until, move || {
            if let Some(set) = set.upgrade() {
                let now = Instant::now();
                set.write().retain(|held| held.until.is_none_or(|until| until > now));
            }
        });
    }

    /// Answers to none of the tickets any more: they are revoked.
    pub fn clear(&self) {
        self.0.write().clear();
    }

    /// How many tickets are answered to.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.read().len()
    }

    /// Whether no ticket is answered to.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key of a ticket by the ticket's hash, if the ticket is good at `now`. Keys of tickets
    /// that are over are erased.
    pub(super) fn get(&self, hash: &[u8], now: WallTime) -> Option<Arc<TicketKey>> {
        let keys = self.0.read();
        let is_any_over = keys.iter().any(|held| held.key.is_over(now));
        let mut good = keys.iter().filter(|held| !held.key.is_over(now));
        let key = good.find(|held| held.key.hash == hash);
        let key = key.map(|held| Arc::clone(&held.key));
        drop(keys);
        if is_any_over {
            self.0.write().retain(|held| !held.key.is_over(now));
        }
        key
    }
}

impl Set {
    fn read(&self) -> RwLockReadGuard<'_, Vec<Held>> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Vec<Held>> {
        self.keys.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Seconds that the clocks of client and server may differ.
pub(super) const CLOCK_SKEW: u64 = 60;
/// Tickets are renewed every few minutes at the most often.
const KEYS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ticket::format::{Requirements, TicketContent};
    use crate::ticket::signature::Signature;
    use crate::tls::algorithms::Group;
    use smt_record::Suite;

    const NOW: u64 = 1_800_000_000;

    /// A key of a ticket that is good for an hour from now on, signed by nobody.
    fn key() -> TicketKey {
        let key = StaticKey::generate(Group::X25519).expect("random bytes");
        let content = TicketContent {
            group: Group::X25519,
            suites: vec![Suite::Aes128Gcm],
            id: [7; 16],
            not_before: NOW,
            not_after: NOW + 3_600,
            requires: Requirements { forward_secrecy: false, client_certificate: false },
            takes_early_data: false,
            share: key.share().to_vec(),
            names: vec!["a.example".to_owned()],
            chain_hash: [7; 32],
        };
        let signature = Signature { scheme: 0x0807, bytes: vec![7; 64] };
        TicketKey::new(Ticket::signed(content, signature).expect("a ticket"), key)
    }

    // SMT [6.7-2]
    #[test]
    fn a_key_is_erased_at_its_end_though_no_client_comes() {
        let (keys, now) = (TicketKeys::new(), WallTime::from_secs(NOW));
        keys.add(key(), now);
        keys.add_for(key(), now, Duration::from_millis(1));
        while keys.len() > 1 {
            std::thread::yield_now();
        }
        assert_eq!(keys.len(), 1, "the other is good for an hour");
    }

    // SMT [6.7-2]
    #[test]
    fn a_key_is_good_until_a_minute_after_its_ticket() {
        let (keys, key) = (TicketKeys::new(), key());
        let hash = key.hash;
        keys.add(key, WallTime::from_secs(NOW));
        let at = |seconds| keys.get(&hash, WallTime::from_secs(NOW + seconds));
        assert!(at(3_660).is_some());
        assert!(at(3_661).is_none() && keys.is_empty());
    }
}
