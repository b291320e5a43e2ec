// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Statements that have come, and that a device verifies together.

use smt_attestor::{Attested, Attestor};

/// Bytes of memory that a statement takes while it waits, beside its body: attestation, places in
/// lists, and the hash by which copies of it are known.
const REST: usize = 256;

/// Messages that are statements and wait to be verified.
pub(super) struct Unverified<M> {
    messages: Vec<M>,
    bytes: usize,
}

impl<M> Default for Unverified<M> {
    fn default() -> Self {
        Self { messages: Vec::new(), bytes: 0 }
    }
}

impl<M> Unverified<M> {
    /// Bytes of memory that all take, and another one with them. An empty body takes some too.
    pub(super) fn bytes_with(&self, statement: &Attested) -> usize {
        self.bytes.saturating_add(statement.body.len()).saturating_add(REST)
    }

    /// Takes a message, with which all take so many bytes.
    pub(super) fn push(&mut self, message: M, bytes: usize) {
        self.bytes = bytes;
        self.messages.push(message);
    }

    /// Takes out, in their order, those that a device of the group has attested. `statement` gives
    /// the statement that a message is.
    pub(super) fn verify(
        &mut self,
        device: &Attestor,
        statement: fn(&M) -> Option<&Attested>,
    ) -> impl Iterator<Item = M> + use<M> {
        self.bytes = 0;
        let messages = std::mem::take(&mut self.messages);
        let statements: Vec<_> = messages.iter().filter_map(statement).collect();
        let headers = device.check_all(&statements);
        let verified = messages.into_iter().zip(headers).filter(|it| it.1.is_some());
        verified.map(|it| it.0)
    }
}
