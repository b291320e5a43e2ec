// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An entry of a log.

use sha2::{Digest, Sha256};
use smt_attestation::{ATTESTATION_LEN, Attestation};
use smt_device_client::{EntryKind, LogId, STATEMENT_LEN, Statement};

/// The log of what was truncated.
pub const MANIFEST: LogId = LogId(0);

/// The longest context, in bytes: 16 MiB.
pub const CONTEXT_LEN_MAX: usize = 1 << 24;

/// An entry as it is stored and handed out.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// The log.
    pub log: LogId,
    /// The attested part.
    pub statement: Statement,
    /// The attestation of the statement.
    pub attestation: Attestation,
    /// The application's bytes.
    pub context: Vec<u8>,
}

impl Entry {
    /// Log (4 bytes, big-endian), attestation, statement, context.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FIXED_LEN + self.context.len());
        bytes.extend(self.log.0.to_be_bytes());
        bytes.extend(self.attestation.0);
        bytes.extend(self.statement.encode());
        bytes.extend(&self.context);
        bytes
    }

    /// Reads what [`Entry::encode`] wrote. Verifies nothing.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (log, rest) = bytes.split_first_chunk::<4>()?;
        let (attestation, rest) = rest.split_first_chunk::<ATTESTATION_LEN>()?;
        let (statement, context) = rest.split_first_chunk::<STATEMENT_LEN>()?;
        Some(Self {
            log: LogId(u32::from_be_bytes(*log)),
            statement: Statement::decode(statement)?,
            attestation: Attestation(*attestation),
            context: context.to_vec(),
        })
    }

    /// Log and lowest sequence number that this entry of the manifest states.
    pub(crate) fn truncation(&self) -> Option<(LogId, u64)> {
        let (log, rest) = self.context.split_first_chunk::<4>()?;
        let (head, _) = rest.split_first_chunk::<8>()?;
        let is_truncation = self.log == MANIFEST && self.statement.kind == EntryKind::Truncate;
        is_truncation.then(|| (LogId(u32::from_be_bytes(*log)), u64::from_be_bytes(*head)))
    }
}

pub(crate) fn hash(context: &[u8]) -> [u8; 32] {
    Sha256::digest(context).into()
}

/// Bytes of an entry without its context.
pub(crate) const FIXED_LEN: usize = 4 + ATTESTATION_LEN + STATEMENT_LEN;
