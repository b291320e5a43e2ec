// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The associations that this side has given to the peer, for receiving.

use core::time::Duration;

use smt_carrier::{Association, AssociationKey, Associations};
use smt_wire::AssociationFields;

use crate::limits::{ASSOCIATION_INTERVAL_MIN, RESEND_INTERVAL_MAX};
use crate::recovery::retry_timer::RetryTimer;
use crate::time::Time;

/// The associations of one side, of which two are taken at a time: packets of the former one may
/// still be under way.
pub(super) struct Given {
    /// The serial of the newest; 0 before the first.
    serial: u32,
    /// The newest and the one before.
    taken: [Option<GivenSpi>; 2],
    /// When the newest was allocated.
    allocated_at: Time,
    /// The newest, until the peer has acknowledged it.
    unacknowledged: Option<Unacknowledged>,
    /// When to allocate the next.
    next_at: Option<Time>,
}

/// The SPI of an association, and how often the device had replaced its keys when it was allocated.
#[derive(Clone, Copy)]
struct GivenSpi {
    spi: u32,
    rotations: u64,
}

impl GivenSpi {
    /// Whether it is this SPI, and the device still has the key that it is of. After two rotations
    /// the device gives the same SPI again, perhaps to another peer.
    fn is(&self, spi: u32, rotations: u64) -> bool {
        self.spi == spi && rotations.wrapping_sub(self.rotations) < 2
    }
}

struct Unacknowledged {
    fields: AssociationFields,
    key: AssociationKey,
    /// When ASSOCIATION leaves, the first time or again.
    retry: Option<RetryTimer>,
}

/// ASSOCIATION that is due.
pub(super) struct Told {
    pub(super) fields: AssociationFields,
    /// It has left before.
    pub(super) is_again: bool,
}

impl Given {
    /// Nothing is given yet, and the first is due at once.
    pub(super) fn new(now: Time) -> Self {
        Self {
            serial: 0,
            taken: [None; 2],
            allocated_at: now,
            unacknowledged: None,
            next_at: Some(now),
        }
    }

    /// Whether this side has given the association of this SPI to the peer, lately. `rotations`
    /// says how often the device has replaced its keys.
    pub(super) fn has(&self, spi: u32, rotations: u64) -> bool {
        let mut taken = self.taken.iter().flatten();
        taken.any(|given| given.is(spi, rotations))
    }

    /// The key of this serial, while the peer has not acknowledged it.
    pub(super) fn key_of(&self, serial: u32) -> Option<&AssociationKey> {
        let told = self.unacknowledged.as_ref()?;
        (told.fields.serial == serial).then_some(&told.key)
    }

    /// The peer has the association of this serial.
    pub(super) fn acknowledged(&mut self, serial: u32) {
        self.unacknowledged.take_if(|told| told.fields.serial == serial);
    }

    /// The peer asks for the association after this serial. A new one comes no sooner than
    /// [`ASSOCIATION_INTERVAL_MIN`] after the one before: the device has 2^31 of them for all
    /// peers.
    pub(super) fn asked(&mut self, now: Time, serial: u32) {
        if serial != self.serial {
            return;
        }
        let soonest = self.allocated_at + ASSOCIATION_INTERVAL_MIN;
        self.next_at.get_or_insert_with(|| now.max(soonest));
    }

    /// The ASSOCIATION that is due: of a new association, or again of one that the peer has not
    /// acknowledged. A carrier without room is asked again after `interval`.
    pub(super) fn tell(
        &mut self,
        now: Time,
        interval: Duration,
        device: &dyn Associations,
        version: u8,
    ) -> Option<Told> {
        // The newest ends when its key is replaced, and others come from the current key.
        let rotations = device.rotations();
        let is_outdated = |newest: GivenSpi| newest.rotations != rotations;
        if self.taken[0].is_some_and(is_outdated) {
            self.next_at.get_or_insert(now);
        }
        if self.next_at.is_some_and(|at| at <= now) {
            match device.allocate(version) {
                Ok(association) => self.put(now, rotations, association),
                Err(smt_carrier::NoRoom) => self.next_at = Some(now + interval),
            }
        }
        let told = self.unacknowledged.as_mut()?;
        let fields = told.fields;
        match &mut told.retry {
            None => {
                told.retry = Some(RetryTimer::new(now, interval));
                let is_again = false;
                Some(Told { fields, is_again })
            }
            Some(retry) if retry.due <= now => {
                retry.ask(now, RESEND_INTERVAL_MAX);
                let is_again = true;
                Some(Told { fields, is_again })
            }
            Some(_) => None,
        }
    }

    fn put(&mut self, now: Time, rotations: u64, association: Association) {
        let Association { version, spi, key } = association;
        self.serial = self.serial.wrapping_add(1);
        self.taken = [Some(GivenSpi { spi, rotations }), self.taken[0]];
        self.allocated_at = now;
        self.next_at = None;
        let fields = AssociationFields { serial: self.serial, spi, version };
        self.unacknowledged = Some(Unacknowledged { fields, key, retry: None });
    }

    /// When [`Self::tell`] has something to do.
    pub(super) fn due(&self) -> Option<Time> {
        let retry = self.unacknowledged.as_ref().and_then(|told| told.retry);
        let again = retry.map(|retry| retry.due);
        self.next_at.into_iter().chain(again).min()
    }
}

#[cfg(test)]
mod tests;
