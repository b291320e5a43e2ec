// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The driver's half of PSP: segments under associations, and the keys of the device.

use std::ops::Range;
use std::sync::Arc;

use smt_carrier::AssociationHandle;
use smt_nic::Nic;
use smt_nic::completion::Status;
use smt_nic::descriptor::ContextId;
use smt_nic::engine::Engine;
use smt_nic::psp::MasterKey;

use crate::associations::{KeptAssociation, NicAssociations};
use crate::config::DriverConfig;
use crate::driver::Driver;
use crate::psp_contexts::{NamedContext, PspChoice, PspContexts};
use crate::segment::Segment;
use crate::software_sealing;

/// The state of a driver that sends under associations; without PSP it has none.
#[derive(Debug)]
pub(crate) struct PspSending {
    associations: Option<Arc<NicAssociations>>,
    pub(crate) contexts: PspContexts,
}

impl PspSending {
    /// A device that is not trusted has no PSP.
    pub(crate) fn new(config: &DriverConfig) -> Self {
        let is_on = config.psp && config.is_trusted;
        Self {
            associations: is_on.then(|| NicAssociations::new(config.psp_associations)),
            contexts: PspContexts::default(),
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.associations.is_some()
    }

    /// Whether associations were removed of which the device has not been told.
    pub(crate) fn has_changes(&self) -> bool {
        let associations = self.associations.as_ref();
        associations.is_some_and(|associations| associations.has_removed())
    }

    fn get(&self, handle: AssociationHandle) -> Option<Arc<KeptAssociation>> {
        self.associations.as_ref()?.get(handle)
    }
}

/// A segment under an association that the device has refused.
pub(crate) struct Refusal {
    pub(crate) association: AssociationHandle,
    pub(crate) context: ContextId,
    pub(crate) status: Status,
}

impl Driver {
    /// The associations of the device; `None` without PSP ([`DriverConfig::psp`]).
    #[must_use]
    pub fn associations(&self) -> Option<Arc<NicAssociations>> {
        self.psp.associations.clone()
    }

    /// Gives the device a fresh key of PSP, which must be random: its first one, or one in the
    /// place of the older of two. Without PSP it gets none.
    pub fn rotate_device_key<E: Engine>(&self, nic: &mut Nic<E>, fresh: MasterKey) {
        if let Some(associations) = &self.psp.associations {
            associations.rotate(|| {
                let before = nic.psp_rotations();
                nic.rotate_psp_key(fresh);
                nic.psp_rotations() > before
            });
        }
        self.refill_associations(nic);
    }

    /// Lets the device allocate associations before anybody asks.
    pub(crate) fn refill_associations<E: Engine>(&self, nic: &mut Nic<E>) {
        if let Some(associations) = &self.psp.associations {
            associations.refill(|version| nic.allocate_psp(version).ok());
        }
    }

    pub(crate) fn leave_removed_associations(&mut self) {
        let removed = self.psp.associations.as_ref().map(|of| of.take_removed());
        for association in removed.into_iter().flatten() {
            self.leave_context(association);
        }
    }

    /// Posts a segment, each packet of which is sealed under an association. Without it nothing
    /// leaves.
    pub(crate) fn post_under_association(
        &mut self,
        queue: usize,
        segment: Segment,
        association: AssociationHandle,
    ) {
        let packets = segment.packets();
        let kept = self.psp.get(association);
        let reserved = kept.and_then(|kept| Some((kept.reserve(packets)?, kept)));
        let Some((first, kept)) = reserved else {
            self.statistics.lost += 1;
            return;
        };
        let ivs = first..first + packets;
        let (class, contexts_max) = (self.class_of(queue), self.config.psp_contexts);
        let chosen = self.psp.contexts.choose(association, ivs.clone(), class, contexts_max);
        let context = match chosen {
            PspChoice::Ready(context) => Some(context),
            PspChoice::Create(other) => self.create_context(queue, &kept, ivs, other),
            PspChoice::Software => None,
        };
        match context {
            Some(context) => {
                self.statistics.segments += 1;
                self.statistics.segments_offloaded += 1;
                self.rings[queue].post_segment(&mut self.memory, segment, Some(context));
            }
            None => self.seal_in_software(queue, &segment, &kept, first),
        }
    }

    /// Creates a context in the place of another one, for packets of these IVs.
    fn create_context(
        &mut self,
        queue: usize,
        kept: &KeptAssociation,
        ivs: Range<u64>,
        other: Option<NamedContext>,
    ) -> Option<ContextId> {
        if let Some(other) = other {
            self.destroy_context(queue, other);
        }
        // No name is given twice: see the contexts of records.
        self.named = self.named.checked_add(1)?;
        let id = ContextId(self.named);
        let named = NamedContext { id, queue, class: self.class_of(queue) };
        self.psp.contexts.add(kept.handle, named, ivs.end);
        let block = kept.block(ivs.start);
        self.rings[queue].post_create(&mut self.memory, id, Some(kept.handle), &block);
        self.statistics.psp_contexts_created += 1;
        Some(id)
    }

    /// Destroys a context in the order of the queue in which it was created. If that is `queue`,
    /// there is room for the descriptor.
    fn destroy_context(&mut self, queue: usize, context: NamedContext) {
        let ring = &mut self.rings[context.queue];
        match context.queue == queue {
            true => ring.post_destroy(&mut self.memory, context.id),
            false => ring.to_destroy.push(context.id),
        }
    }

    /// Gives no segment the association's context any more, and lets the device destroy it.
    fn leave_context(&mut self, association: AssociationHandle) {
        if let Some(NamedContext { id, queue, .. }) = self.psp.contexts.leave(association) {
            self.rings[queue].to_destroy.push(id);
        }
    }

    /// Seals a segment by IVs that were set aside for it. The context of the association is left:
    /// it would go on with these IVs.
    fn seal_in_software(
        &mut self,
        queue: usize,
        segment: &Segment,
        kept: &KeptAssociation,
        first_iv: u64,
    ) {
        self.leave_context(kept.handle);
        let sealed = software_sealing::seal(segment, kept, first_iv, self.config.protocol);
        let Some(packets) = sealed else {
            self.statistics.lost += 1;
            return;
        };
        self.statistics.packets_in_software += packets.len() as u64;
        for packet in packets.into_iter().rev() {
            self.rings[queue].waiting.push_front(packet);
        }
    }

    pub(crate) fn take_psp_creation(
        &mut self,
        association: AssociationHandle,
        context: ContextId,
        is_done: bool,
    ) {
        let contexts = &mut self.psp.contexts;
        if is_done {
            return contexts.was_made(association, context);
        }
        contexts.was_refused(association, context, self.config.psp_contexts);
        self.statistics.psp_contexts_refused += 1;
    }

    /// Sends a segment again that the device has refused, under new IVs: by its context if a queue
    /// has come before the one that creates it, else by software.
    pub(crate) fn take_refused_packets(
        &mut self,
        queue: usize,
        segment: Segment,
        refusal: Refusal,
    ) {
        let Refusal { association, context, status } = refusal;
        let is_early = status == Status::UnknownContext
            && self.psp.contexts.is_being_made(association, context);
        if is_early {
            self.statistics.repeated += 1;
            self.rings[queue].waiting.push_back(segment);
            return;
        }
        let kept = self.psp.get(association);
        let reserved = kept.and_then(|kept| Some((kept.reserve(segment.packets())?, kept)));
        let Some((first, kept)) = reserved else {
            self.statistics.lost += 1;
            return;
        };
        self.statistics.repeated += 1;
        self.seal_in_software(queue, &segment, &kept, first);
    }
}
