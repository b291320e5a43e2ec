// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The addresses of a network in memory, and the end that is reached at each.

use super::mailbox::Mailbox;
use super::{MemoryCarrier, MemoryOptions};
use smt_carrier::Path;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};

/// A network in memory that any number of carriers may join. Clones are the same network.
#[derive(Clone, Debug, Default)]
pub struct MemoryNetwork {
    options: MemoryOptions,
    mailboxes: Arc<RwLock<BTreeMap<SocketAddr, Arc<Mailbox>>>>,
}

impl MemoryNetwork {
    /// A network without ends.
    #[must_use]
    pub fn new(options: MemoryOptions) -> Self {
        Self { options, mailboxes: Arc::default() }
    }

    /// Joins the network at `address`, until the carrier is dropped.
    ///
    /// # Panics
    /// If the address is taken.
    pub fn bind(&self, address: SocketAddr) -> MemoryCarrier {
        let address = Path::to(address).remote;
        let mailbox = Arc::new(Mailbox::new(self.options));
        self.register(address, &mailbox);
        MemoryCarrier::new(self.clone(), mailbox, address)
    }

    pub(super) const fn options(&self) -> &MemoryOptions {
        &self.options
    }

    pub(super) fn mailbox(&self, address: SocketAddr) -> Option<Arc<Mailbox>> {
        let mailboxes = self.mailboxes.read().unwrap_or_else(PoisonError::into_inner);
        mailboxes.get(&address).cloned()
    }

    pub(super) fn register(&self, address: SocketAddr, mailbox: &Arc<Mailbox>) {
        let mut mailboxes = self.mailboxes.write().unwrap_or_else(PoisonError::into_inner);
        assert!(!mailboxes.contains_key(&address), "the address {address} is taken");
        mailboxes.insert(address, Arc::clone(mailbox));
    }

    pub(super) fn unregister(&self, address: &SocketAddr) {
        self.mailboxes.write().unwrap_or_else(PoisonError::into_inner).remove(address);
    }
}
