// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The receive contexts as the driver knows them: which key each has, and what is to be told the
//! device.
//!
//! A context's name is never given twice until the device is reset. An arrival that a removed
//! context has opened therefore names no key, and is dropped.

use std::collections::{BTreeMap, VecDeque};

use smt_carrier::KeyHandle;
use smt_nic::descriptor::ContextId;

/// The receive contexts of a device.
#[derive(Debug, Default)]
pub(crate) struct ReceiveContextNames {
    keys: BTreeMap<ContextId, KeyHandle>,
    contexts: BTreeMap<KeyHandle, ContextId>,
    named: u32,
    /// Changes that the device has not been told, in their order.
    pub(crate) waiting: VecDeque<ReceiveChange>,
}

/// A change that the device is to be told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ReceiveChange {
    Create(ContextId, KeyHandle),
    Destroy(ContextId),
}

impl ReceiveContextNames {
    /// Names a context for a key, if there are fewer than `contexts_max`.
    pub(crate) fn add(&mut self, key: KeyHandle, contexts_max: usize) -> bool {
        let Some(named) = self.named.checked_add(1) else {
            return false;
        };
        if self.keys.len() >= contexts_max {
            return false;
        }
        self.named = named;
        let context = ContextId(named);
        self.keys.insert(context, key);
        self.contexts.insert(key, context);
        self.waiting.push_back(ReceiveChange::Create(context, key));
        true
    }

    /// Lets the context of a key be destroyed, if it has one.
    pub(crate) fn remove(&mut self, key: KeyHandle) {
        if let Some(context) = self.contexts.remove(&key) {
            self.keys.remove(&context);
            self.waiting.push_back(ReceiveChange::Destroy(context));
        }
    }

    /// Forgets a context that the device does not have.
    pub(crate) fn forget(&mut self, context: ContextId) {
        if let Some(key) = self.keys.remove(&context) {
            self.contexts.remove(&key);
        }
    }

    /// The key of a context.
    pub(crate) fn key(&self, context: ContextId) -> Option<KeyHandle> {
        self.keys.get(&context).copied()
    }

    /// Forgets all, as the device did.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_given_once_and_changes_keep_their_order() {
        let mut names = ReceiveContextNames::default();
        assert!(names.add(KeyHandle(7), 1));
        assert!(!names.add(KeyHandle(8), 1), "there is room for one");
        names.remove(KeyHandle(7));
        assert!(names.add(KeyHandle(8), 1));
        let changes: Vec<_> = names.waiting.drain(..).collect();
        let (first, second) = (ContextId(1), ContextId(2));
        let expected = [
            ReceiveChange::Create(first, KeyHandle(7)),
            ReceiveChange::Destroy(first),
            ReceiveChange::Create(second, KeyHandle(8)),
        ];
        assert_eq!(changes, expected);
        assert_eq!((names.key(first), names.key(second)), (None, Some(KeyHandle(8))));
        names.forget(second);
        assert_eq!(names.key(second), None);
        assert!(names.add(KeyHandle(9), 1));
    }
}
