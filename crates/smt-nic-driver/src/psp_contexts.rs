// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The contexts of PSP that the device has: one for each association that sends, whatever queue its
//! segments take.
//!
//! The device counts the IVs of a context, and the host an upper bound of them: each packet that is
//! posted has an IV set aside for it ([`KeptAssociation::reserve`]). Those of one context follow
//! each other. Once any others were set aside, for packets that software seals or for another
//! context, no segment is given the old context any more: it was left, and ends below them. Hence
//! no order of queues, refusals or resets lets two packets have one IV.
//!
//! A segment that the device takes up before its context was made is refused, and posted again
//! under the same context. The class of its queue must not be above that of the queue which
//! creates the context: a device of strict priority would refuse such segments for ever, and
//! create nothing. A more urgent segment therefore has a new context, created in its own queue.
//!
//! [`KeptAssociation::reserve`]: crate::associations::KeptAssociation::reserve

use std::collections::BTreeMap;
use std::ops::Range;

use smt_carrier::AssociationHandle;
use smt_nic::descriptor::ContextId;

/// The contexts of PSP as the driver knows them.
#[derive(Debug, Default)]
pub(crate) struct PspContexts {
    contexts: BTreeMap<AssociationHandle, PspContext>,
    /// Segments under associations so far.
    uses: u64,
    /// The device had no room: no context is created before this use.
    full_until: u64,
}

#[derive(Debug)]
struct PspContext {
    named: NamedContext,
    /// Whether the device has answered that it made the context.
    is_made: bool,
    /// The IV behind those that were set aside for packets under it.
    end: u64,
    last_use: u64,
}

impl PspContext {
    /// Whether segments of this class cannot keep the device from making the context: those of a
    /// lower class come behind it, and those of its own class take turns with it.
    fn serves(&self, class: u8) -> bool {
        self.is_made || self.named.class >= class
    }
}

/// A context, and the queue in whose order it was created and is destroyed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct NamedContext {
    pub(crate) id: ContextId,
    pub(crate) queue: usize,
    /// The class of that queue.
    pub(crate) class: u8,
}

/// The means to seal a segment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PspChoice {
    /// The association's context.
    Ready(ContextId),
    /// A context that has to be created, in the place of the other one.
    Create(Option<NamedContext>),
    /// Software: there is no room.
    Software,
}

impl PspContexts {
    /// Chooses for a segment of this class, whose packets have these IVs. Choosing
    /// [`PspChoice::Create`] the caller tells the new context's name ([`Self::add`]).
    pub(crate) fn choose(
        &mut self,
        association: AssociationHandle,
        ivs: Range<u64>,
        class: u8,
        contexts_max: usize,
    ) -> PspChoice {
        self.uses += 1;
        let uses = self.uses;
        if let Some(context) = self.contexts.get_mut(&association)
            && context.end == ivs.start
            && context.serves(class)
        {
            (context.end, context.last_use) = (ivs.end, uses);
            return PspChoice::Ready(context.named.id);
        }
        if uses <= self.full_until {
            return PspChoice::Software;
        }
        if let Some(left) = self.leave(association) {
            return PspChoice::Create(Some(left));
        }
        if self.contexts.len() < contexts_max {
            return PspChoice::Create(None);
        }
        match self.leave_one_at_rest(contexts_max) {
            Some(evicted) => PspChoice::Create(Some(evicted)),
            None => PspChoice::Software,
        }
    }

    /// Notes a context that is being created, for packets with IVs below `end`.
    pub(crate) fn add(&mut self, association: AssociationHandle, named: NamedContext, end: u64) {
        let context = PspContext { named, is_made: false, end, last_use: self.uses };
        self.contexts.insert(association, context);
    }

    /// Takes the device's word that it has made a context.
    pub(crate) fn was_made(&mut self, association: AssociationHandle, id: ContextId) {
        if let Some(context) = self.contexts.get_mut(&association) {
            context.is_made |= context.named.id == id;
        }
    }

    /// Takes the device's word that it has not made a context. It creates none for as many uses as
    /// there may be contexts.
    pub(crate) fn was_refused(
        &mut self,
        association: AssociationHandle,
        id: ContextId,
        contexts_max: usize,
    ) {
        if self.is_context_of(association, id) {
            self.contexts.remove(&association);
        }
        self.full_until = self.uses.saturating_add(contexts_max as u64);
    }

    /// Whether a context is the association's, and the device has not made it yet: segments of
    /// other queues may come before it.
    pub(crate) fn is_being_made(&self, association: AssociationHandle, id: ContextId) -> bool {
        let context = self.contexts.get(&association);
        context.is_some_and(|context| context.named.id == id && !context.is_made)
    }

    /// Gives no segment the association's context any more, and returns it if there is one: it is
    /// to be destroyed.
    pub(crate) fn leave(&mut self, association: AssociationHandle) -> Option<NamedContext> {
        let context = self.contexts.remove(&association)?;
        Some(context.named)
    }

    /// Forgets all contexts, as the device did.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn is_context_of(&self, association: AssociationHandle, id: ContextId) -> bool {
        let context = self.contexts.get(&association);
        context.is_some_and(|context| context.named.id == id)
    }

    /// Leaves a context that rests: others were used as often as there may be contexts since. One
    /// in use is never taken away, or two associations would take it from each other.
    fn leave_one_at_rest(&mut self, contexts_max: usize) -> Option<NamedContext> {
        let (association, context) = self.contexts.iter().min_by_key(|(_, of)| of.last_use)?;
        let is_at_rest = self.uses - context.last_use > contexts_max as u64;
        let association = *association;
        is_at_rest.then(|| self.leave(association)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: AssociationHandle = AssociationHandle(1);
    const TWO: AssociationHandle = AssociationHandle(2);

    fn named(id: u32) -> NamedContext {
        NamedContext { id: ContextId(id), queue: 0, class: 0 }
    }

    #[test]
    fn a_context_goes_on_where_its_ivs_end_and_is_left_once_others_were_set_aside() {
        let mut contexts = PspContexts::default();
        assert_eq!(contexts.choose(ONE, 1..4, 0, 8), PspChoice::Create(None));
        contexts.add(ONE, named(1), 4);
        assert_eq!(contexts.choose(ONE, 4..6, 0, 8), PspChoice::Ready(ContextId(1)));
        // Software had 6.
        let anew = PspChoice::Create(Some(named(1)));
        assert_eq!(contexts.choose(ONE, 7..8, 0, 8), anew);
        contexts.add(ONE, named(2), 8);
        assert_eq!(contexts.choose(ONE, 8..9, 0, 8), PspChoice::Ready(ContextId(2)));
    }

    #[test]
    fn a_context_gives_way_only_at_rest() {
        let mut contexts = PspContexts::default();
        contexts.choose(ONE, 1..2, 0, 1);
        contexts.add(ONE, named(1), 2);
        assert_eq!(contexts.choose(TWO, 1..2, 0, 1), PspChoice::Software);
        let evicted = PspChoice::Create(Some(named(1)));
        assert_eq!(contexts.choose(TWO, 2..3, 0, 1), evicted);
    }

    #[test]
    fn a_full_device_is_asked_again_after_a_while() {
        let mut contexts = PspContexts::default();
        assert_eq!(contexts.choose(ONE, 1..2, 0, 2), PspChoice::Create(None));
        contexts.add(ONE, named(1), 2);
        assert!(contexts.is_being_made(ONE, ContextId(1)));
        contexts.was_refused(ONE, ContextId(1), 2);
        assert!(!contexts.is_being_made(ONE, ContextId(1)));
        let chosen = [2, 3, 4].map(|iv| contexts.choose(ONE, iv..iv + 1, 0, 2));
        let software = PspChoice::Software;
        assert_eq!(chosen, [software, software, PspChoice::Create(None)]);
    }

    #[test]
    fn the_word_about_an_older_context_changes_nothing_of_the_newer_one() {
        let mut contexts = PspContexts::default();
        contexts.choose(ONE, 1..2, 0, 2);
        contexts.add(ONE, named(2), 2);
        contexts.was_made(ONE, ContextId(1));
        assert!(contexts.is_being_made(ONE, ContextId(2)));
        contexts.was_made(ONE, ContextId(2));
        assert!(!contexts.is_being_made(ONE, ContextId(2)));
        assert_eq!(contexts.leave(ONE), Some(named(2)));
        assert_eq!(contexts.leave(ONE), None);
    }

    #[test]
    fn a_segment_above_the_class_that_creates_the_context_has_a_new_one_until_it_is_made() {
        let mut contexts = PspContexts::default();
        let low = named(1);
        let high = NamedContext { id: ContextId(2), queue: 4, class: 1 };
        contexts.choose(ONE, 1..2, 0, 8);
        contexts.add(ONE, low, 2);
        assert_eq!(contexts.choose(ONE, 2..3, 0, 8), PspChoice::Ready(low.id));
        assert_eq!(contexts.choose(ONE, 3..4, 1, 8), PspChoice::Create(Some(low)));
        contexts.add(ONE, high, 4);
        // Those of both classes come after it, or have a turn for it between them.
        let chosen = [(4, 0), (5, 1)].map(|(iv, class)| contexts.choose(ONE, iv..iv + 1, class, 8));
        assert_eq!(chosen, [PspChoice::Ready(high.id); 2]);
        contexts.was_made(ONE, high.id);
        assert_eq!(contexts.choose(ONE, 6..7, 7, 8), PspChoice::Ready(high.id));
    }
}
