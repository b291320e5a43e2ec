// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Statements with their attestations, and those that wait to be verified.

use serde::{Deserialize, Serialize};
use smt_attestation::Attestation;

use crate::attestor::Attestor;

/// Attested bytes.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Attested {
    /// The attestation's header and MAC.
    pub attestation: [[u8; 32]; 2],
    /// A statement of a protocol, or a vote of the device itself.
    pub body: Vec<u8>,
}

impl Attested {
    /// Bytes and the attestation that a device has given for them.
    #[must_use]
    pub fn new(attestation: &Attestation, body: Vec<u8>) -> Self {
        Self { attestation: [attestation.header_bytes(), attestation.mac()], body }
    }

    /// The attestation, which may be anything in a statement of others.
    #[must_use]
    pub fn attestation(&self) -> Attestation {
        Attestation::new(&self.attestation[0], &self.attestation[1])
    }
}

/// Bytes of memory that a statement takes while it waits, beside its body: attestation, places in
/// lists, and the hash by which a caller knows copies of it.
const REST: usize = 256;

/// Statements that have come, and that a device verifies together.
#[derive(Debug, Default)]
pub struct Unverified {
    statements: Vec<Attested>,
    bytes: usize,
}

impl Unverified {
    /// Bytes of memory that all take, and another one with them. An empty body takes some too.
    #[must_use]
    pub fn bytes_with(&self, statement: &Attested) -> usize {
        self.bytes.saturating_add(statement.body.len()).saturating_add(REST)
    }

    /// Takes a statement. The caller bounds their bytes.
    pub fn push(&mut self, statement: Attested) {
        self.bytes = self.bytes_with(&statement);
        self.statements.push(statement);
    }

    /// Takes all out in their order, each with whether a device of the group has attested it.
    pub fn verify(&mut self, device: &Attestor) -> impl Iterator<Item = (Attested, bool)> + use<> {
        self.bytes = 0;
        let statements = std::mem::take(&mut self.statements);
        let headers = device.check_all(&statements);
        statements.into_iter().zip(headers).map(|(it, header)| (it, header.is_some()))
    }
}
