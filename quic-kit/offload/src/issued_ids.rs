// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connection ids as quinn issues them: its events about them are private, its generator is not.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quinn_proto::{ConnectionId, ConnectionIdGenerator};
use smt_nic::quic::ID_BYTES_MAX;

/// The ids that were issued since they were last asked for. Copies share them.
#[derive(Clone, Debug, Default)]
pub struct IssuedIds(Arc<Mutex<Vec<ConnectionId>>>);

impl IssuedIds {
    /// Takes them. The caller knows which connection it has just turned: they are of that one.
    #[must_use]
    pub fn take(&self) -> Vec<ConnectionId> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A generator of random ids that writes them down here.
    #[must_use]
    pub fn generator(&self, length: usize, lifetime: Option<Duration>) -> IdGenerator {
        IdGenerator { issued: self.clone(), length, lifetime }
    }
}

/// A generator of random ids.
#[derive(Debug)]
pub struct IdGenerator {
    issued: IssuedIds,
    length: usize,
    lifetime: Option<Duration>,
}

impl ConnectionIdGenerator for IdGenerator {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut bytes = [0; ID_BYTES_MAX];
        // An id without randomness is one that the peer can guess, and no worse; the system gives
        // randomness or does not start programs.
        let _ = getrandom::fill(&mut bytes[..self.length]);
        let id = ConnectionId::new(&bytes[..self.length]);
        let mut issued = self.issued.0.lock().unwrap_or_else(PoisonError::into_inner);
        issued.push(id);
        id
    }

    fn cid_len(&self) -> usize {
        self.length
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        self.lifetime
    }
}
