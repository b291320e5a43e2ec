// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The keys of PSP in a device: none before the host has given one.
//!
//! A reset of the device leaves them. With the keys their count of SPIs would be gone, and a host
//! that gave the same key once more would let SPIs be given twice (SPEC [15.3-2]); and peers go on
//! to seal under associations that they were told.

use thiserror::Error;

use super::association::{Association, PspVersion};
use super::master_keys::{MasterKey, MasterKeys, SpisUsedUp};
use crate::engine::Engine;
use crate::nic::Nic;

/// The keys of a device, if it has any.
#[derive(Debug, Default)]
pub(crate) struct DeviceKeys {
    keys: Option<MasterKeys>,
    rotations: u64,
}

/// A device that has no association to give.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum NotAllocated {
    /// The host has given the device no key.
    #[error("the device has no key of PSP: the host has to give it one")]
    NoDeviceKey,
    /// The SPIs under the current key are used up.
    #[error(transparent)]
    SpisUsedUp(#[from] SpisUsedUp),
}

impl DeviceKeys {
    pub(crate) fn rotate(&mut self, fresh: MasterKey) {
        match &mut self.keys {
            None => self.keys = Some(MasterKeys::new(fresh)),
            Some(keys) => {
                keys.rotate(fresh);
                self.rotations += 1;
            }
        }
    }

    pub(crate) fn rotations(&self) -> u64 {
        self.rotations
    }

    pub(crate) fn allocate(&mut self, version: PspVersion) -> Result<Association, NotAllocated> {
        let keys = self.keys.as_mut().ok_or(NotAllocated::NoDeviceKey)?;
        Ok(keys.allocate(version)?)
    }

    pub(crate) fn get(&self) -> Option<&MasterKeys> {
        self.keys.as_ref()
    }
}

impl<E: Engine> Nic<E> {
    /// Gives the device a fresh key of PSP: its first one, or one in the place of the older of two
    /// ([`MasterKeys::rotate`]). From the first on it opens packets of PSP.
    pub fn rotate_psp_key(&mut self, fresh: MasterKey) {
        self.receive.openers.psp.rotate(fresh);
    }

    /// How often the device was given a key of PSP after its first one. An association ends with
    /// the second time after it was allocated.
    #[must_use]
    pub fn psp_rotations(&self) -> u64 {
        self.receive.openers.psp.rotations()
    }

    /// A new association of PSP for packets in.
    ///
    /// # Errors
    /// The device has no key of PSP, or no SPI left under its current one.
    pub fn allocate_psp(&mut self, version: PspVersion) -> Result<Association, NotAllocated> {
        self.receive.openers.psp.allocate(version)
    }
}

impl Clone for DeviceKeys {
    fn clone(&self) -> Self {
        Self { keys: self.keys.as_ref().map(MasterKeys::copied), rotations: self.rotations }
    }
}
