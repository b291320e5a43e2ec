// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The associations of a session whose packets the carrier seals (SPEC §15.4).
//!
//! ```text
//!   this side receives                          the peer sends
//!   allocates serial n ── ASSOCIATION{n} ─────▶ installs it, and seals under it
//!   n is told, n - 1 kept ◀── ASSOCIATION_ACK{n}
//!                         ◀── ASSOCIATION_REQUEST{n}: n is nearly used up
//!   allocates serial n + 1 ── ASSOCIATION ─────▶
//! ```
//! Both directions have this, each for itself: `given` are the associations that this side has
//! allocated, `sending` is the one that the peer has told.
//!
//! Not here: the packets that carry it (`send::control`, `receive::control`).

mod given;
mod sending;

use core::time::Duration;

use smt_carrier::{Association, AssociationHandle, AssociationKey, Associations, NotInstalled};
use smt_record::KeyLimits;
use smt_wire::{AssociationFields, Body};

use super::Session;
use crate::establish::association_room::AssociationRoom;
use crate::shared::Shared;
use crate::time::Time;

use given::Given;
use sending::Sending;

/// The associations of a session, in both directions.
pub(crate) struct SessionAssociations {
    version: u8,
    given: Given,
    sending: Sending,
    // Last: it is given back once the association is removed.
    room: AssociationRoom,
}

impl SessionAssociations {
    /// Those of a session that has agreed on this version of PSP. Nothing is allocated yet.
    pub(super) fn new(now: Time, room: AssociationRoom, version: u8, limits: KeyLimits) -> Self {
        Self { version, given: Given::new(now), sending: Sending::new(limits), room }
    }

    fn device(&self) -> &dyn Associations {
        self.room.device().as_ref()
    }

    /// Whether DATA is taken from a packet that the carrier has opened under this SPI.
    pub(super) fn accepts(&self, spi: Option<u32>) -> bool {
        spi.is_some_and(|spi| self.given.has(spi, self.device().rotations()))
    }

    /// The association that packets leave under; `None`: none may leave now.
    pub(super) fn handle(&self) -> Option<AssociationHandle> {
        self.sending.handle()
    }

    /// Packets that may still leave under [`Self::handle`].
    pub(super) fn left(&self) -> usize {
        usize::try_from(self.sending.left()).unwrap_or(usize::MAX)
    }

    /// Counts packets that leave under [`Self::handle`].
    pub(super) fn count(&mut self, packets: usize) {
        self.sending.count(packets);
    }

    /// The key that goes with ASSOCIATION of this serial, while the peer has not acknowledged it.
    pub(super) fn key_of(&self, serial: u32) -> Option<&AssociationKey> {
        self.given.key_of(serial)
    }

    /// The question or word that is due: ASSOCIATION first, then ASSOCIATION_REQUEST.
    fn due_body(&mut self, now: Time, interval: Duration) -> Option<Due> {
        let (device, version) = (self.room.device().as_ref(), self.version);
        if let Some(told) = self.given.tell(now, interval, device, version) {
            return Some(Due { body: Body::Association(told.fields), is_again: told.is_again });
        }
        let asked = self.sending.ask(now, interval)?;
        Some(Due {
            body: Body::AssociationRequest { serial: asked.serial },
            is_again: asked.is_again,
        })
    }

    /// When something is due.
    fn due(&self) -> Option<Time> {
        let [given, sending] = [self.given.due(), self.sending.due()];
        given.into_iter().chain(sending).min()
    }
}

/// A control packet that is due.
struct Due {
    body: Body<'static>,
    /// It has left before, and the peer owes an answer.
    is_again: bool,
}

impl Session {
    /// Whether messages may leave: under an association, if the session has any.
    pub(super) fn may_send_messages(&self) -> bool {
        match &self.associations {
            Some(associations) => associations.handle().is_some(),
            None => self.agreement.psp_version.is_none(),
        }
    }

    /// The association that messages leave under; `None` in a session whose records are sealed.
    pub(crate) fn association(&self) -> Option<AssociationHandle> {
        self.associations.as_ref()?.handle()
    }

    /// Whether DATA is taken from a packet that came under the association of this SPI, or under
    /// none; counts one that is not. Records without a seal count only if their packet had one, by
    /// an association of this session.
    pub(crate) fn takes_data_of(&self, spi: Option<u32>, shared: &mut Shared) -> bool {
        let is_taken = match &self.associations {
            Some(associations) => associations.accepts(spi),
            None => self.agreement.psp_version.is_none(),
        };
        shared.statistics.data_unsealed += u64::from(!is_taken);
        is_taken
    }

    /// Queues what is due about associations, and sets the timer for the rest.
    pub(crate) fn watch_associations(&mut self, now: Time) {
        let Some(associations) = &mut self.associations else {
            return;
        };
        let interval = self.recovery.rto.interval();
        while let Some(due) = associations.due_body(now, interval) {
            if due.is_again {
                self.liveness.asked(now);
            }
            self.lane.control.push(0, due.body);
        }
        self.pass_timer.set_if(associations.due());
    }

    /// Takes ASSOCIATION: packets may leave under it from now on.
    pub(super) fn association_told(
        &mut self,
        fields: AssociationFields,
        key: Option<AssociationKey>,
        shared: &mut Shared,
    ) {
        let (Some(associations), Some(key)) = (&mut self.associations, key) else {
            shared.statistics.violations += 1;
            return;
        };
        let AssociationFields { serial, spi, version } = fields;
        if version != associations.version {
            shared.statistics.violations += 1;
            return;
        }
        let association = Association { version, spi, key };
        let device = associations.room.device();
        let taken = associations.sending.take(serial, association, device);
        shared.statistics.associations_refused += u64::from(taken.is_err());
        match taken {
            Ok(()) => self.lane.control.push(0, Body::AssociationAck { serial }),
            // The peer tells it again.
            Err(NotInstalled::NoRoom) => {}
            // [15.4-13]: it would be refused again.
            Err(NotInstalled::UsedBefore) => {
                self.lane.control.push(0, Body::AssociationRequest { serial });
            }
        }
    }

    /// Takes ASSOCIATION_ACK: the peer has the key.
    pub(super) fn association_acked(&mut self, serial: u32, shared: &mut Shared) {
        match &mut self.associations {
            Some(associations) => associations.given.acknowledged(serial),
            None => shared.statistics.violations += 1,
        }
    }

    /// Takes ASSOCIATION_REQUEST: the peer has nearly used up the association of this serial.
    pub(super) fn association_asked(&mut self, now: Time, serial: u32, shared: &mut Shared) {
        match &mut self.associations {
            Some(associations) => associations.given.asked(now, serial),
            None => shared.statistics.violations += 1,
        }
        self.watch_associations(now);
    }
}
