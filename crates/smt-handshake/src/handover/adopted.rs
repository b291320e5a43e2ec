// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The values that an endpoint has adopted: those that wait for a session, and those that are used
//! up.
//!
//! ```text
//!   adopt ─▶ waiting ── an attempt begins ─▶ in use ── CONFIRM opens ─▶ used up ─▶ forgotten, when
//!               ▲                              │                                  it is too old
//!               └────── the attempt fails ─────┘                                  to be adopted
//! ```
//! Not here: locks, randomness and the key exchange (`adopter`).

use std::collections::BTreeMap;
use std::sync::Arc;

use smt_proto::WallTime;
use smt_record::Side;

use super::HandoverError;
use super::value::{AdopterId, Handover};
use crate::external_psk::key::RegisteredKey;
use crate::limits::{
    HANDOVER_LIFE_MAX, HANDOVERS_OF_PEER_MAX, HANDOVERS_REMEMBERED_MAX, HANDOVERS_WAITING_MAX,
};

/// The name of a value.
pub(super) type KeyName = [u8; 16];

/// A value as an attempt uses it.
#[derive(Clone, Debug)]
pub(super) struct Adopted {
    pub(super) name: KeyName,
    pub(super) key: Arc<RegisteredKey>,
    pub(super) peer_name: Arc<str>,
    pub(super) credentials_end: Option<WallTime>,
}

/// Why a name gives no key, or no session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Unnamed {
    /// A session has begun by it.
    UsedUp,
    /// A value of this name was never adopted here, or is too old.
    Unknown,
}

/// All that an adopter has adopted.
#[derive(Debug, Default)]
pub(super) struct AdoptedValues {
    waiting: BTreeMap<KeyName, Waiting>,
    /// Until when each that is used up could be adopted.
    used_up: BTreeMap<KeyName, WallTime>,
    serial: u64,
    /// The latest time that was told: a clock that is set back forgets nothing too early.
    latest: Option<WallTime>,
}

#[derive(Debug)]
struct Waiting {
    adopted: Adopted,
    side: Side,
    valid_until: WallTime,
    serial: u64,
    /// Attempts that have begun, and those that have not ended.
    attempts: u32,
    running: u32,
}

impl AdoptedValues {
    /// Takes a value that is for the adopter `own`.
    pub(super) fn adopt(
        &mut self,
        own: AdopterId,
        value: &Handover,
        now: WallTime,
    ) -> Result<(), HandoverError> {
        let now = self.forget_old(Some(now));
        let name = value.shown_name();
        let valid_until = value.terms().valid_until;
        let meant = value.terms().adopter(value.side());
        if meant != own {
            return Err(HandoverError::OtherProcess { name, meant, own });
        }
        if let Some(late) = now.as_secs().checked_sub(valid_until.as_secs()) {
            return Err(HandoverError::Expired { name, late });
        }
        let seconds = valid_until.as_secs() - now.as_secs();
        if seconds > HANDOVER_LIFE_MAX {
            return Err(HandoverError::TooLong { name, seconds });
        }
        if self.waiting.contains_key(value.name()) || self.used_up.contains_key(value.name()) {
            return Err(HandoverError::AdoptedBefore { name });
        }
        let count = self.waiting.len() + self.used_up.len();
        if self.waiting.len() >= HANDOVERS_WAITING_MAX || count >= HANDOVERS_REMEMBERED_MAX {
            return Err(HandoverError::Full { count });
        }
        // One peer that never begins its sessions leaves room for others.
        let of_peer = self.waiting.values().map(|one| &*one.adopted.peer_name);
        let count = of_peer.filter(|name| *name == value.peer_name()).count();
        if count >= HANDOVERS_OF_PEER_MAX {
            let peer_name = value.peer_name().to_owned();
            return Err(HandoverError::FullOfPeer { peer_name, count });
        }
        self.serial += 1;
        let waiting = Waiting {
            adopted: Adopted {
                name: *value.name(),
                key: Arc::new(value.key()?),
                peer_name: value.peer_name().into(),
                credentials_end: value.credentials_end(),
            },
            side: value.side(),
            valid_until,
            serial: self.serial,
            attempts: 0,
            running: 0,
        };
        self.waiting.insert(*value.name(), waiting);
        Ok(())
    }

    /// A value for a client's attempt to reach this peer: the one that was tried least. One that
    /// another attempt is using serves a retry alone, which may be that attempt's own.
    pub(super) fn begin(
        &mut self,
        peer_name: &str,
        is_retry: bool,
        now: Option<WallTime>,
    ) -> Option<Adopted> {
        self.forget_old(now);
        let free = self.waiting.values_mut().filter(|waiting| {
            waiting.side == Side::Client
                && &*waiting.adopted.peer_name == peer_name
                && (waiting.running == 0 || is_retry)
        });
        let best = free.min_by_key(|one| (one.running, one.attempts, one.serial))?;
        best.attempts = best.attempts.saturating_add(1);
        best.running += 1;
        Some(best.adopted.clone())
    }

    /// The value that a client names.
    pub(super) fn answer(
        &mut self,
        name: &[u8],
        now: Option<WallTime>,
    ) -> Result<Adopted, Unnamed> {
        self.forget_old(now);
        let name: &KeyName = name.try_into().map_err(|_| Unnamed::Unknown)?;
        if self.used_up.contains_key(name) {
            return Err(Unnamed::UsedUp);
        }
        let waiting = self.waiting.get(name);
        let waiting = waiting.filter(|waiting| waiting.side == Side::Server);
        Ok(waiting.ok_or(Unnamed::Unknown)?.adopted.clone())
    }

    /// An attempt of a client has come to nothing. It uses nothing up, however often it happens,
    /// since anybody can make one fail.
    pub(super) fn give_up(&mut self, name: &KeyName) {
        if let Some(waiting) = self.waiting.get_mut(name) {
            waiting.running = waiting.running.saturating_sub(1);
        }
    }

    /// The peer has confirmed an attempt: the value is used up.
    ///
    /// # Errors
    /// The value was used before, or has become too old since the attempt began.
    pub(super) fn confirm(&mut self, name: &KeyName) -> Result<(), Unnamed> {
        if self.used_up.contains_key(name) {
            return Err(Unnamed::UsedUp);
        }
        let waiting = self.waiting.remove(name).ok_or(Unnamed::Unknown)?;
        self.used_up.insert(*name, waiting.valid_until);
        Ok(())
    }

    /// How many wait for their session.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Forgets what is too old to be adopted. Returns the time that counts. All is looked through
    /// once a second at most, however many flights come: nothing of them is authentic yet.
    fn forget_old(&mut self, now: Option<WallTime>) -> WallTime {
        if now > self.latest {
            self.latest = now;
            let is_young = |valid_until: &WallTime| Some(*valid_until) > now;
            self.waiting.retain(|_, one| is_young(&one.valid_until));
            self.used_up.retain(|_, valid_until| is_young(valid_until));
        }
        self.latest.unwrap_or(WallTime::from_secs(0))
    }
}

#[cfg(test)]
mod tests;
