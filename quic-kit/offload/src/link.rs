// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The place where the keys of one connection and the device tell each other things.
//!
//! Keys are called by quinn, on whichever thread turns the connection; the device looks at its
//! links between packets. A link that has something to tell calls, and each call is heard once.
//! Locks are taken in the order device, notes, calls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::mark::MarkSecret;
use crate::notes::{Notes, Unsealed};

/// The links of a device. Copies share them.
#[derive(Clone, Debug, Default)]
pub struct Links(Arc<Mutex<Calls>>);

/// The links that want something.
#[derive(Debug, Default)]
struct Calls {
    next: u64,
    links: BTreeMap<u64, Weak<Link>>,
    called: Vec<u64>,
    /// Links with packets that quinn has built and nothing has sealed.
    unsealed: BTreeSet<u64>,
    /// Packets that quinn has taken from the engine, of connections that have gone.
    taken: u64,
}

/// The link of a connection.
pub struct Link {
    /// Which one of its device's.
    pub(crate) key: u64,
    /// The secret of packets that the engine has opened.
    pub(crate) up: MarkSecret,
    /// The secret of packets that the engine is to seal.
    pub(crate) down: MarkSecret,
    links: Links,
    is_calling: AtomicBool,
    notes: Mutex<Notes>,
}

impl Links {
    /// The link of a connection that has no entry in the engine: quinn opens and seals all its
    /// packets.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub(crate) fn make(&self) -> Result<Arc<Link>, getrandom::Error> {
        let (up, down) = (MarkSecret::random()?, MarkSecret::random()?);
        let mut calls = self.lock();
        let key = calls.next;
        calls.next += 1;
        let link = Arc::new(Link {
            key,
            up,
            down,
            links: self.clone(),
            is_calling: AtomicBool::new(false),
            notes: Mutex::default(),
        });
        calls.links.insert(key, Arc::downgrade(&link));
        Ok(link)
    }

    /// The link of a key, while its connection is there.
    pub(crate) fn find(&self, key: u64) -> Option<Arc<Link>> {
        self.lock().links.get(&key).and_then(Weak::upgrade)
    }

    /// The key of the link that is made next.
    pub(crate) fn next_key(&self) -> u64 {
        self.lock().next
    }

    /// The keys of links that have called since.
    pub(crate) fn take_called(&self) -> Vec<u64> {
        std::mem::take(&mut self.lock().called)
    }

    /// Packets that quinn has taken from the engine on connections that have gone since.
    pub(crate) fn take_taken(&self) -> u64 {
        std::mem::take(&mut self.lock().taken)
    }

    /// The links with packets that nothing has sealed yet.
    pub(crate) fn unsealed(&self) -> Vec<Arc<Link>> {
        let calls = self.lock();
        let keys = calls.unsealed.iter();
        keys.filter_map(|key| calls.links.get(key)?.upgrade()).collect()
    }

    /// Whether a link is one of these.
    pub(crate) fn has(&self, link: &Link) -> bool {
        Arc::ptr_eq(&self.0, &link.links.0)
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Link {
    pub(crate) fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the device to look at the notes.
    pub(crate) fn call(&self) {
        if !self.is_calling.swap(true, Ordering::AcqRel) {
            self.links.lock().called.push(self.key);
        }
    }

    /// The device looks at the notes now: what is told from here on is another call.
    pub(crate) fn is_heard(&self) {
        self.is_calling.store(false, Ordering::Release);
    }

    /// Takes the packets that quinn has left unsealed.
    pub(crate) fn take_unsealed(&self) -> Vec<Unsealed> {
        let unsealed = std::mem::take(&mut self.notes().unsealed);
        if !unsealed.is_empty() {
            self.links.lock().unsealed.remove(&self.key);
        }
        unsealed
    }

    /// Puts packets back that did not leave: quinn will offer the same buffer again.
    pub(crate) fn put_back(&self, unsealed: Vec<Unsealed>) {
        self.notes().unsealed = unsealed;
        self.has_unsealed();
    }

    /// Packets are there that nothing has sealed yet.
    pub(crate) fn has_unsealed(&self) {
        self.links.lock().unsealed.insert(self.key);
    }
}

/// The device removes the entry of a connection that is over.
impl Drop for Link {
    fn drop(&mut self) {
        let taken = self.notes().taken;
        let mut calls = self.links.lock();
        calls.links.remove(&self.key);
        calls.taken += taken;
        calls.unsealed.remove(&self.key);
        calls.called.push(self.key);
    }
}

/// No secret.
impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("key", &self.key).finish_non_exhaustive()
    }
}
