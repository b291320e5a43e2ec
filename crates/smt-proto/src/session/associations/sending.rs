// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The association that the peer has told, for sending.

use alloc::sync::Arc;
use core::time::Duration;

use smt_carrier::{Association, AssociationHandle, Associations, NotInstalled};
use smt_record::KeyLimits;

use crate::limits::RESEND_INTERVAL_MAX;
use crate::recovery::retry_timer::RetryTimer;
use crate::time::Time;

/// The association in use, and what is left of it.
pub(super) struct Sending {
    limits: KeyLimits,
    /// The serial of the one in use; 0 before the first.
    serial: u32,
    installed: Option<Installed>,
    /// Packets that have left under it.
    packets: u64,
    /// ASSOCIATION_REQUEST, until the next one comes.
    request: Option<RetryTimer>,
}

/// An association at the carrier, which forgets it when this is dropped.
struct Installed {
    device: Arc<dyn Associations>,
    handle: AssociationHandle,
}

impl Drop for Installed {
    fn drop(&mut self) {
        self.device.remove(self.handle);
    }
}

/// ASSOCIATION_REQUEST that is due.
pub(super) struct Asked {
    pub(super) serial: u32,
    /// It has left before.
    pub(super) is_again: bool,
}

impl Sending {
    pub(super) fn new(limits: KeyLimits) -> Self {
        Self { limits, serial: 0, installed: None, packets: 0, request: None }
    }

    /// Takes the association of this serial, if it is newer than the one in use.
    ///
    /// The one in use makes room for it.
    ///
    /// # Errors
    /// The carrier does not take it. Nothing leaves until the peer tells it again, or the next one.
    pub(super) fn take(
        &mut self,
        serial: u32,
        association: Association,
        device: &Arc<dyn Associations>,
    ) -> Result<(), NotInstalled> {
        if serial <= self.serial {
            return Ok(());
        }
        self.installed = None;
        self.request = None;
        let handle = device.install(association)?;
        self.installed = Some(Installed { device: Arc::clone(device), handle });
        self.serial = serial;
        self.packets = 0;
        Ok(())
    }

    /// The handle of the one in use, if packets are left of it.
    pub(super) fn handle(&self) -> Option<AssociationHandle> {
        let installed = self.installed.as_ref()?;
        (self.left() > 0).then_some(installed.handle)
    }

    /// Packets that may still leave under it.
    pub(super) fn left(&self) -> u64 {
        self.limits.records().saturating_sub(self.packets)
    }

    pub(super) fn count(&mut self, packets: usize) {
        self.packets += packets as u64;
    }

    /// The ASSOCIATION_REQUEST that is due, the first time or again.
    pub(super) fn ask(&mut self, now: Time, interval: Duration) -> Option<Asked> {
        if self.installed.is_none() || self.packets < self.limits.update_at() {
            return None;
        }
        let is_again = match &mut self.request {
            None => {
                self.request = Some(RetryTimer::new(now, interval));
                false
            }
            Some(retry) if retry.due <= now => {
                retry.ask(now, RESEND_INTERVAL_MAX);
                true
            }
            Some(_) => return None,
        };
        let serial = self.serial;
        Some(Asked { serial, is_again })
    }

    /// When [`Self::ask`] has something to repeat.
    pub(super) fn due(&self) -> Option<Time> {
        self.request.map(|retry| retry.due)
    }
}

#[cfg(test)]
mod tests;
