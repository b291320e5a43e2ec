// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A key that the carrier has too: the carrier seals or opens records with it itself.

use alloc::sync::Arc;
use core::fmt;

use smt_carrier::{KeyHandle, KeyStore, ReceivingKey};

use crate::suite::Suite;

/// A key in the carrier's store. The carrier forgets it when this is dropped.
pub(crate) struct CarrierKey {
    store: Arc<dyn KeyStore>,
    pub(crate) handle: KeyHandle,
}

impl CarrierKey {
    /// Gives the carrier a key. `None`: the store does not take it, and records are sealed here.
    pub(crate) fn install(
        store: &Arc<dyn KeyStore>,
        suite: Suite,
        key: &[u8],
        iv: [u8; 12],
    ) -> Option<Self> {
        let handle = store.install(suite.code(), key, iv).ok()?;
        Some(Self { store: Arc::clone(store), handle })
    }

    /// Gives the carrier a receiving key. `None`: the store does not take it, and records are
    /// opened here.
    pub(crate) fn install_receiving(
        store: &Arc<dyn KeyStore>,
        key: &ReceivingKey<'_>,
    ) -> Option<Self> {
        let handle = store.install_receiving(key).ok()?;
        Some(Self { store: Arc::clone(store), handle })
    }
}

impl Drop for CarrierKey {
    fn drop(&mut self) {
        self.store.remove(self.handle);
    }
}

impl fmt::Debug for CarrierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CarrierKey").field(&self.handle).finish()
    }
}
