// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An entry of a log.

use sha2::{Digest, Sha256};
use smt_attestation::{ATTESTATION_LEN, Attestation};

/// The number of a log, which is its stream's. 0 is [`MANIFEST`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LogId(pub u32);

/// The log of what was truncated.
pub const MANIFEST: LogId = LogId(0);

/// Bytes of a statement.
pub const STATEMENT_LEN: usize = 73;

/// The longest context, in bytes: 16 MiB.
pub const CONTEXT_LEN_MAX: usize = 1 << 24;

/// The kind of an entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EntryKind {
    /// A context of the application.
    Data,
    /// The first entry of a log in an epoch of the device. It has no context.
    Begin,
    /// A nonce, attested to prove where the log ends.
    Tail,
    /// In the manifest: a log (4 bytes), its new lowest sequence number (8 bytes), and the
    /// attestation of the log's tail with the nonce of who truncated.
    Truncate,
}

/// The attested part of an entry. Its size is fixed, so that a chain is verified without contexts.
///
/// | offset | bytes | field |
/// |---|---|---|
/// | 0 | 1 | kind |
/// | 1 | 8 | sequence number in the log, from 1, big-endian |
/// | 9 | 32 | SHA-256 of the context |
/// | 41 | 32 | cumulative digest of all entries before, zero before the first |
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Statement {
    /// The kind.
    pub kind: EntryKind,
    /// The sequence number. All kinds count.
    pub sequence: u64,
    /// SHA-256 of the context.
    pub context_hash: [u8; 32],
    /// The cumulative digest of the entry before.
    pub previous: [u8; 32],
}

impl Statement {
    /// The attested bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; STATEMENT_LEN] {
        let mut bytes = [0; STATEMENT_LEN];
        bytes[0] = self.kind as u8;
        bytes[1..9].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[9..41].copy_from_slice(&self.context_hash);
        bytes[41..].copy_from_slice(&self.previous);
        bytes
    }

    fn decode(bytes: &[u8; STATEMENT_LEN]) -> Option<Self> {
        let kind = match bytes[0] {
            0 => EntryKind::Data,
            1 => EntryKind::Begin,
            2 => EntryKind::Tail,
            3 => EntryKind::Truncate,
            _ => return None,
        };
        Some(Self {
            kind,
            sequence: u64::from_be_bytes(bytes[1..9].try_into().ok()?),
            context_hash: bytes[9..41].try_into().ok()?,
            previous: bytes[41..].try_into().ok()?,
        })
    }

    /// The cumulative digest with this entry: SHA-256 over a label and the statement, which has the
    /// digest before, the sequence number and the context's hash.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        Sha256::new()
            .chain_update(b"SMT a2m chain v1")
            .chain_update(self.encode())
            .finalize()
            .into()
    }
}

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
