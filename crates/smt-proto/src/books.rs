// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory for messages on their way in, over all sessions: what they hold, and what they were promised (SPEC §9.2).
//!
//! A message may come to hold all that its sender was allowed to send, in any order: its last record makes room for
//! all before it. Promises therefore count like bytes that are held; else many messages that have just begun could
//! grow far beyond the bound together.

use crate::incoming::Incoming;

/// The books.
#[derive(Debug, Default)]
pub(crate) struct Books {
    held: usize,
    promised: usize,
}

impl Books {
    /// A message has begun.
    pub(crate) fn enter(&mut self, incoming: &Incoming) {
        self.held += incoming.memory();
        self.promised += incoming.promised();
    }

    /// A message is over.
    pub(crate) fn leave(&mut self, incoming: &Incoming) {
        self.held -= incoming.memory();
        self.promised -= incoming.promised();
    }

    /// Changes a message; what it holds and was promised follows.
    pub(crate) fn change<T>(
        &mut self,
        incoming: &mut Incoming,
        change: impl FnOnce(&mut Incoming) -> T,
    ) -> T {
        self.leave(incoming);
        let outcome = change(incoming);
        self.enter(incoming);
        outcome
    }

    /// Whether nothing more is to be begun with this much memory.
    pub(crate) fn are_full(&self, most: usize) -> bool {
        self.held.max(self.promised) >= most
    }

    /// Bytes held.
    pub(crate) fn held(&self) -> usize {
        self.held
    }
}
