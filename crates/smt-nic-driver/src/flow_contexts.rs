// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The flow contexts of one queue: which one seals a segment, and what it takes to use it.

use smt_carrier::KeyHandle;
use smt_nic::descriptor::ContextId;

/// The flow contexts of one queue, as the driver knows them.
#[derive(Debug, Default)]
pub(crate) struct FlowContexts {
    contexts: Vec<FlowContext>,
    /// Segments that were given a context so far.
    uses: u64,
    /// The device had no room: no context is created before this use.
    full_until: u64,
}

#[derive(Debug)]
struct FlowContext {
    id: ContextId,
    key: KeyHandle,
    /// The number that the context will give the next record, once all that was posted is done.
    next: u64,
    last_use: u64,
}

/// The bounds of a queue's contexts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContextBounds {
    pub(crate) per_flow: usize,
    pub(crate) per_queue: usize,
}

/// The records of a segment, all under one key, with numbers one after the other.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct RecordRun {
    pub(crate) key: KeyHandle,
    pub(crate) first: u64,
    pub(crate) records: u64,
}

/// The step that a segment's context needs before the segment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Preparation {
    /// Nothing: the context is at the right number.
    Ready(ContextId),
    /// The context counts on from another number.
    Resync(ContextId),
    /// The context is new, and gets its number with its key; the other one gives way to it.
    Create(ContextId, Option<ContextId>),
}

impl FlowContexts {
    /// Chooses the context for a segment. A new one is named `fresh`. `None`: the segment is sealed
    /// in software.
    pub(crate) fn choose(
        &mut self,
        run: RecordRun,
        bounds: ContextBounds,
        fresh: ContextId,
    ) -> Option<Preparation> {
        let next = run.first.checked_add(run.records)?;
        self.uses += 1;
        let of_flow = || self.contexts.iter().filter(|of| of.key == run.key);
        let ready = of_flow().find(|of| of.next == run.first).map(|of| of.id);
        let oldest = of_flow().min_by_key(|of| of.last_use).map(|of| of.id);
        let is_creating = of_flow().count() < bounds.per_flow && self.uses > self.full_until;
        let preparation = match (ready, oldest) {
            (Some(id), _) => Preparation::Ready(id),
            (None, _) if is_creating && self.contexts.len() < bounds.per_queue => {
                Preparation::Create(fresh, None)
            }
            (None, Some(id)) => Preparation::Resync(id),
            (None, None) if is_creating => {
                let evicted = self.at_rest(bounds)?;
                Preparation::Create(fresh, Some(evicted))
            }
            (None, None) => return None,
        };
        self.note(preparation, run.key, next);
        Some(preparation)
    }

    /// A context that rests: the queue has used others as often as it has contexts since. A context
    /// in use is never taken away, or two sessions would take it from each other.
    fn at_rest(&self, bounds: ContextBounds) -> Option<ContextId> {
        let oldest = self.contexts.iter().min_by_key(|of| of.last_use)?;
        let is_at_rest = self.uses - oldest.last_use > bounds.per_queue as u64;
        is_at_rest.then_some(oldest.id)
    }

    fn note(&mut self, preparation: Preparation, key: KeyHandle, next: u64) {
        let last_use = self.uses;
        match preparation {
            Preparation::Ready(id) | Preparation::Resync(id) => {
                for of in self.contexts.iter_mut().filter(|of| of.id == id) {
                    (of.next, of.last_use) = (next, last_use);
                }
            }
            Preparation::Create(id, evicted) => {
                self.contexts.retain(|of| Some(of.id) != evicted);
                self.contexts.push(FlowContext { id, key, next, last_use });
            }
        }
    }

    /// Forgets the contexts of a key, and returns their names.
    pub(crate) fn remove_key(&mut self, key: KeyHandle) -> Vec<ContextId> {
        let of_key = self.contexts.iter().filter(|of| of.key == key);
        let ids = of_key.map(|of| of.id).collect();
        self.contexts.retain(|of| of.key != key);
        ids
    }

    /// Forgets a context that the device does not have, or whose number is not known any more.
    pub(crate) fn forget(&mut self, id: ContextId) {
        self.contexts.retain(|of| of.id != id);
    }

    /// Creates none for as many uses as there may be contexts: the device has no room.
    pub(crate) fn device_is_full(&mut self, bounds: ContextBounds) {
        self.full_until = self.uses.saturating_add(bounds.per_queue as u64);
    }

    /// Forgets all contexts, as the device did.
    pub(crate) fn clear(&mut self) {
        self.contexts.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scene {
        contexts: FlowContexts,
        bounds: ContextBounds,
        named: u32,
    }

    impl Scene {
        fn new(per_flow: usize, per_queue: usize) -> Self {
            Self {
                contexts: FlowContexts::default(),
                bounds: ContextBounds { per_flow, per_queue },
                named: 0,
            }
        }

        fn choose(&mut self, key: u64, first: u64, records: u64) -> Option<Preparation> {
            let run = RecordRun { key: KeyHandle(key), first, records };
            let fresh = ContextId(self.named + 1);
            let chosen = self.contexts.choose(run, self.bounds, fresh);
            self.named += u32::from(matches!(chosen, Some(Create(..))));
            chosen
        }
    }

    use Preparation::{Create, Ready, Resync};

    fn create(id: u32) -> Option<Preparation> {
        Some(Create(ContextId(id), None))
    }

    #[test]
    fn records_in_a_row_need_no_resync_and_others_do() {
        let mut scene = Scene::new(1, 8);
        assert_eq!(scene.choose(1, 100, 3), create(1));
        assert_eq!(scene.choose(1, 103, 2), Some(Ready(ContextId(1))));
        assert_eq!(scene.choose(1, 103, 2), Some(Resync(ContextId(1))));
        assert_eq!(scene.choose(1, 105, 1), Some(Ready(ContextId(1))));
    }

    #[test]
    fn two_contexts_of_a_session_serve_messages_that_alternate() {
        let mut scene = Scene::new(2, 8);
        assert_eq!(scene.choose(1, 100, 1), create(1));
        assert_eq!(scene.choose(1, 200, 1), create(2));
        assert_eq!(scene.choose(1, 101, 1), Some(Ready(ContextId(1))));
        assert_eq!(scene.choose(1, 201, 1), Some(Ready(ContextId(2))));
        assert_eq!(scene.choose(1, 300, 1), Some(Resync(ContextId(1))));
    }

    #[test]
    fn a_full_queue_takes_the_place_of_a_session_at_rest_alone() {
        let mut scene = Scene::new(1, 2);
        assert_eq!(scene.choose(1, 0, 1), create(1));
        assert_eq!(scene.choose(2, 0, 1), create(2));
        assert_eq!(scene.choose(3, 0, 1), None);
        assert_eq!(scene.choose(3, 0, 1), Some(Create(ContextId(3), Some(ContextId(1)))));
        assert_eq!(scene.choose(2, 1, 1), Some(Ready(ContextId(2))));
        assert_eq!(scene.choose(1, 1, 1), None);
    }

    #[test]
    fn a_device_without_room_is_asked_again_later() {
        let mut scene = Scene::new(1, 2);
        assert_eq!(scene.choose(1, 0, 1), create(1));
        scene.contexts.forget(ContextId(1));
        scene.contexts.device_is_full(scene.bounds);
        assert_eq!(scene.choose(1, 0, 1), None);
        assert_eq!(scene.choose(1, 0, 1), None);
        assert_eq!(scene.choose(1, 0, 1), create(2));
    }

    #[test]
    fn the_contexts_of_a_key_go_with_it() {
        let mut scene = Scene::new(2, 8);
        scene.choose(1, 0, 1);
        scene.choose(1, 9, 1);
        scene.choose(2, 0, 1);
        let removed = scene.contexts.remove_key(KeyHandle(1));
        assert_eq!(removed, [ContextId(1), ContextId(2)]);
        assert_eq!(scene.choose(2, 1, 1), Some(Ready(ContextId(3))));
    }
}
