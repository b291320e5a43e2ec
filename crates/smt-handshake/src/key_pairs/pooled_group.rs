// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A key exchange group of the TLS library whose key pairs may be ready.

use std::sync::{Arc, Mutex, MutexGuard};

use rustls::crypto::{ActiveKeyExchange, CompletedKeyExchange, SupportedKxGroup};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, ProtocolVersion};

use super::{Shared, recovered};

/// A group with its pool.
#[derive(Debug)]
pub(crate) struct PooledGroup {
    inner: &'static dyn SupportedKxGroup,
    /// Whether an answer to a share is made by a key pair: not by encapsulation.
    is_diffie_hellman: bool,
    pool: Mutex<Pool>,
}

#[derive(Default)]
struct Pool {
    ready: Vec<Box<dyn ActiveKeyExchange>>,
    keepers: Vec<Arc<Shared>>,
}

impl PooledGroup {
    pub(crate) const fn new(inner: &'static dyn SupportedKxGroup, is_diffie_hellman: bool) -> Self {
        let pool = Pool { ready: Vec::new(), keepers: Vec::new() };
        Self { inner, is_diffie_hellman, pool: Mutex::new(pool) }
    }

    /// Tells this keeper of key pairs that are taken.
    pub(super) fn keep(&self, keeper: &Arc<Shared>) {
        self.lock().keepers.push(Arc::clone(keeper));
    }

    /// The keeper is gone; the last one takes the key pairs along.
    pub(super) fn give_up(&self, keeper: &Arc<Shared>) {
        let mut pool = self.lock();
        pool.keepers.retain(|kept| !Arc::ptr_eq(kept, keeper));
        if pool.keepers.is_empty() {
            pool.ready = Vec::new();
        }
    }

    /// Makes key pairs until there are `size`, or until it is told to stop.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub(super) fn fill(&self, size: usize, is_stopped: impl Fn() -> bool) -> Result<(), Error> {
        while self.lock().ready.len() < size && !is_stopped() {
            let pair = self.inner.start()?;
            self.lock().ready.push(pair);
        }
        Ok(())
    }

    fn take(&self) -> Option<Box<dyn ActiveKeyExchange>> {
        let mut pool = self.lock();
        let pair = pool.ready.pop();
        for keeper in &pool.keepers {
            keeper.took();
        }
        pair
    }

    fn lock(&self) -> MutexGuard<'_, Pool> {
        recovered(self.pool.lock())
    }

    pub(super) fn ready(&self) -> usize {
        self.lock().ready.len()
    }
}

impl SupportedKxGroup for PooledGroup {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        self.take().map_or_else(|| self.inner.start(), Ok)
    }

    fn start_and_complete(&self, peer_pub_key: &[u8]) -> Result<CompletedKeyExchange, Error> {
        let ready = match self.is_diffie_hellman {
            true => self.take(),
            false => None,
        };
        let Some(pair) = ready else {
            return self.inner.start_and_complete(peer_pub_key);
        };
        Ok(CompletedKeyExchange {
            group: pair.group(),
            pub_key: pair.pub_key().to_vec(),
            secret: pair.complete(peer_pub_key)?,
        })
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        self.inner.ffdhe_group()
    }

    fn name(&self) -> NamedGroup {
        self.inner.name()
    }

    fn fips(&self) -> bool {
        self.inner.fips()
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        self.inner.usable_for_version(version)
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool")
            .field("ready", &self.ready.len())
            .field("keepers", &self.keepers.len())
            .finish()
    }
}
