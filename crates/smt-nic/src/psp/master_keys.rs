// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The two keys of a device, and the SPIs under them.

use core::fmt;
use thiserror::Error;
use zeroize::Zeroize;

use super::association::{Association, DerivedKey, PspVersion};

/// A key of a device, from which keys of associations are derived. It is erased when it is dropped.
#[derive(Clone)]
pub struct MasterKey([u8; MASTER_KEY_BYTES]);

impl MasterKey {
    /// A key of these bytes, which must be random and secret.
    #[must_use]
    pub fn new(bytes: [u8; MASTER_KEY_BYTES]) -> Self {
        Self(bytes)
    }

    pub(super) fn bytes(&self) -> &[u8; MASTER_KEY_BYTES] {
        &self.0
    }
}

impl Drop for MasterKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// No byte of the key.
impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MasterKey").finish_non_exhaustive()
    }
}

/// The keys of a device: the current one, and the one before it.
#[derive(Debug)]
pub struct MasterKeys {
    /// By the top bit of the SPIs under them.
    keys: [Option<MasterKey>; 2],
    /// The top bit of SPIs that are allocated now.
    current: usize,
    /// The low bits of the SPI that was allocated last under the current key; 0 is none.
    allocated: u32,
}

/// All SPIs of the current device key were allocated: it is time for a new one.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("all SPIs of the device's current key are used up: rotate its keys")]
pub struct SpisUsedUp;

impl MasterKeys {
    /// A device with one key.
    #[must_use]
    pub fn new(first: MasterKey) -> Self {
        Self { keys: [Some(first), None], current: 0, allocated: 0 }
    }

    /// Puts a fresh key in the place of the older one, and makes it the current one. Associations
    /// of the older key end; those of the key that was current go on until the next rotation.
    pub fn rotate(&mut self, fresh: MasterKey) {
        self.current = 1 - self.current;
        self.keys[self.current] = Some(fresh);
        self.allocated = 0;
    }

    /// A new association, whose key the host tells the peer that will send under it.
    ///
    /// # Errors
    /// [`SpisUsedUp`], after 2^31 - 1 associations under one device key: no SPI is given twice.
    pub fn allocate(&mut self, version: PspVersion) -> Result<Association, SpisUsedUp> {
        let low = self.allocated + 1;
        if low & KEY_BIT != 0 {
            return Err(SpisUsedUp);
        }
        let top = if self.current == 1 { KEY_BIT } else { 0 };
        let spi = top | low;
        let key = self.derive(spi, version).ok_or(SpisUsedUp)?;
        self.allocated = low;
        Ok(Association { spi, version, key })
    }

    /// The key of an SPI. `None`: the device has no key for its top bit. Keys of SPIs that were
    /// never allocated are as good as random to those who do not have the device's.
    pub(super) fn derive(&self, spi: u32, version: PspVersion) -> Option<DerivedKey> {
        let master = self.keys[usize::from(spi & KEY_BIT != 0)].as_ref()?;
        Some(DerivedKey::derive(master, spi, version))
    }

    /// The keys of the copy of a device, which gives the same SPIs again: for tests that try
    /// several orders from one state on.
    pub(super) fn copied(&self) -> Self {
        Self { keys: self.keys.clone(), ..*self }
    }

    #[cfg(test)]
    pub(super) fn skip_to(&mut self, allocated: u32) {
        self.allocated = allocated;
    }
}

/// Bytes of a device key.
pub(super) const MASTER_KEY_BYTES: usize = 32;
/// The bit of an SPI that names the device key.
pub(super) const KEY_BIT: u32 = 1 << 31;
