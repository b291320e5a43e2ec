// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The memory for contexts: how many there may be, and how many of them are at hand.
//!
//! A NIC keeps contexts in host memory and a cache of them in its own (autonomous offload). A
//! context that is not in the cache is read back before it is used, which costs
//! [`Counters::context_misses`](crate::Counters).

use alloc::collections::BTreeMap;

use crate::counters::Counters;
use crate::descriptor::ContextId;

/// The bounds of the contexts' memory.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ContextLimits {
    /// Contexts in all.
    pub contexts_max: usize,
    /// Contexts in the device's own memory; at least 1.
    pub cached_max: usize,
}

/// Contexts by their names; the least recently used leaves the cache first.
#[derive(Clone, Debug)]
pub(crate) struct ContextMemory<C> {
    limits: ContextLimits,
    contexts: BTreeMap<ContextId, Slot<C>>,
    /// The cached contexts by their last use.
    cached: BTreeMap<u64, ContextId>,
    uses: u64,
}

#[derive(Clone, Debug)]
struct Slot<C> {
    context: C,
    /// The last use; it is a key of `cached` while the context is there.
    used_at: u64,
}

/// A context cannot be added.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NotAdded {
    /// The name is in use.
    Exists,
    /// The memory is full.
    NoRoom,
}

impl<C> ContextMemory<C> {
    pub(crate) fn new(limits: ContextLimits) -> Self {
        Self { limits, contexts: BTreeMap::new(), cached: BTreeMap::new(), uses: 0 }
    }

    pub(crate) fn add(&mut self, id: ContextId, context: C) -> Result<(), NotAdded> {
        if self.contexts.contains_key(&id) {
            return Err(NotAdded::Exists);
        }
        if self.contexts.len() >= self.limits.contexts_max {
            return Err(NotAdded::NoRoom);
        }
        let used_at = self.cache(id);
        self.contexts.insert(id, Slot { context, used_at });
        Ok(())
    }

    /// Whether there was such a context.
    pub(crate) fn remove(&mut self, id: ContextId) -> bool {
        let slot = self.contexts.remove(&id);
        if let Some(slot) = &slot {
            self.cached.remove(&slot.used_at);
        }
        slot.is_some()
    }

    pub(crate) fn clear(&mut self) {
        self.contexts.clear();
        self.cached.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.contexts.len()
    }

    /// The context, which is in the cache afterwards.
    pub(crate) fn get_mut(&mut self, id: ContextId, counters: &mut Counters) -> Option<&mut C> {
        let used_at = self.contexts.get(&id)?.used_at;
        match self.cached.remove(&used_at) {
            Some(_) => counters.context_hits += 1,
            None => counters.context_misses += 1,
        }
        let used_at = self.cache(id);
        let slot = self.contexts.get_mut(&id)?;
        slot.used_at = used_at;
        Some(&mut slot.context)
    }

    /// The context, looked at by a test or a watcher: no use of it.
    pub(crate) fn peek(&self, id: ContextId) -> Option<&C> {
        self.contexts.get(&id).map(|slot| &slot.context)
    }

    /// The context of a piece of work that has used it before ([`Self::get_mut`]).
    pub(crate) fn peek_mut(&mut self, id: ContextId) -> Option<&mut C> {
        self.contexts.get_mut(&id).map(|slot| &mut slot.context)
    }

    /// Puts a name into the cache; the oldest leaves a full one. Returns the number of the use.
    fn cache(&mut self, id: ContextId) -> u64 {
        self.uses += 1;
        self.cached.insert(self.uses, id);
        while self.cached.len() > self.limits.cached_max.max(1) {
            self.cached.pop_first();
        }
        self.uses
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn memory(contexts_max: usize, cached_max: usize) -> ContextMemory<u64> {
        ContextMemory::new(ContextLimits { contexts_max, cached_max })
    }

    #[test]
    fn a_full_memory_and_a_name_in_use_are_refused() {
        let mut memory = memory(2, 2);
        assert_eq!(memory.add(ContextId(1), 10), Ok(()));
        assert_eq!(memory.add(ContextId(1), 11), Err(NotAdded::Exists));
        assert_eq!(memory.add(ContextId(2), 20), Ok(()));
        assert_eq!(memory.add(ContextId(3), 30), Err(NotAdded::NoRoom));
        assert!(memory.remove(ContextId(1)) && !memory.remove(ContextId(1)));
        assert_eq!(memory.add(ContextId(3), 30), Ok(()));
    }

    #[test]
    fn the_least_recently_used_context_is_read_back() {
        let mut memory = memory(10, 2);
        let mut counters = Counters::default();
        for id in 1..=3 {
            memory.add(ContextId(id), u64::from(id)).unwrap();
        }
        for id in [3, 2, 1, 3, 1, 1] {
            assert_eq!(memory.get_mut(ContextId(id), &mut counters), Some(&mut u64::from(id)));
        }
        // 3 and 2 were cached; 1 displaced 3; 3 displaced 2; 1 stayed.
        assert_eq!((counters.context_hits, counters.context_misses), (4, 2));
    }

    #[test]
    fn a_context_that_was_evicted_keeps_its_state() {
        let mut memory = memory(10, 1);
        let mut counters = Counters::default();
        memory.add(ContextId(1), 0).unwrap();
        *memory.get_mut(ContextId(1), &mut counters).unwrap() = 99;
        memory.add(ContextId(2), 0).unwrap();
        assert_eq!(memory.get_mut(ContextId(1), &mut counters), Some(&mut 99));
        assert_eq!(counters.context_misses, 1);
    }
}
