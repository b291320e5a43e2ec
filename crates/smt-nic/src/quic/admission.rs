// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which connections get an entry, and which one gives up its own.
//!
//! An entry costs memory of the device and writes to it (NiQUIC §3.3): a short transfer is over
//! before it pays. The host says what its software has seen of a connection; the device knows which
//! of its entries was used least recently.

use thiserror::Error;

use super::connection::ConnectionKeys;
use super::{Handle, QuicEngine};

/// The rule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AdmissionPolicy {
    /// Bytes of a connection that software must have seen. 0: each connection is offloaded at once.
    pub bytes_min: u64,
    /// A full device gives up the connection that was used least recently, if so many packets of
    /// others have come since its last one. A batch that is sealed and a connection that is added
    /// count as one packet. `None`: a full device takes no more.
    ///
    /// A small number makes a device whose connections are all in use exchange them all the time.
    pub evicted_after: Option<u64>,
}

impl AdmissionPolicy {
    /// Every connection, as long as there is room.
    pub const ALL: Self = Self { bytes_min: 0, evicted_after: None };
}

/// A connection that has an entry now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Admitted {
    /// Its handle.
    pub connection: Handle,
    /// The connection that gave up its entry: the host's software goes on with it.
    pub evicted: Option<(Handle, Removed)>,
}

/// The state of a connection that the device has no more. Limits are one for device and host
/// (RFC 9001 §6.6): software counts on from here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Removed {
    /// The key phase that packets were opened in last.
    pub generation: u64,
    /// The largest number that was opened.
    pub largest: Option<u64>,
    /// Packets that did not open, in the device and as software has told.
    pub failures: u64,
    /// Packets sealed by the present key, by the device and as software has told.
    pub sealed: u64,
}

/// Why a connection stays in software.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum NotAdmitted {
    /// Too little of it has been seen.
    #[error("the connection has had too few bytes to be worth an entry")]
    TooShort,
    /// All entries are in use.
    #[error("the device has no room, and no connection has been idle for long enough")]
    NoRoom,
}

impl QuicEngine {
    /// Adds a connection by a rule. It has no ids yet.
    ///
    /// # Errors
    /// [`NotAdmitted`]; then nothing has changed.
    pub fn admit(
        &mut self,
        policy: &AdmissionPolicy,
        keys: &ConnectionKeys,
        bytes_seen: u64,
    ) -> Result<Admitted, NotAdmitted> {
        if bytes_seen < policy.bytes_min {
            return Err(NotAdmitted::TooShort);
        }
        let evicted = match self.connections.has_room() {
            true => None,
            false => Some(self.evict(policy).ok_or(NotAdmitted::NoRoom)?),
        };
        let connection = self.add(keys).map_err(|_| NotAdmitted::NoRoom)?;
        Ok(Admitted { connection, evicted })
    }

    /// Makes room, if the policy lets the connection go that was used least recently.
    fn evict(&mut self, policy: &AdmissionPolicy) -> Option<(Handle, Removed)> {
        let (oldest, packets) = self.connections.oldest()?;
        let is_idle = policy.evicted_after.is_some_and(|of| packets >= of);
        // A place whose lives are used up would make no room.
        if !is_idle || !oldest.has_next_life() {
            return None;
        }
        Some((oldest, self.remove(oldest)?))
    }
}
