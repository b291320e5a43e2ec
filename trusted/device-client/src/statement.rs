// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Entries of append-only logs as a device attests them.

use sha2::{Digest, Sha256};
use smt_attestation::StreamId;

/// The number of a log, below [`LogId::COUNT`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LogId(pub u32);

impl LogId {
    /// Numbers of logs that there are: 2^24.
    pub const COUNT: u32 = 1 << 24;

    /// The stream that attests the log, or nothing if no log has that number.
    #[must_use]
    pub fn stream(self) -> Option<StreamId> {
        (self.0 < Self::COUNT).then(|| StreamId(FIRST_STREAM + self.0))
    }
}

/// Whether a stream is that of a log. A device attests nothing there but entries of that log, so
/// no message of a host passes for one.
#[must_use]
pub fn is_of_log(stream: StreamId) -> bool {
    (FIRST_STREAM..FIRST_STREAM + LogId::COUNT).contains(&stream.0)
}

/// The stream of log 0. Those of all logs follow it.
const FIRST_STREAM: u32 = 0xa200_0000;

/// Bytes of a statement.
pub const STATEMENT_LEN: usize = 73;

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

    /// Reads what [`Statement::encode`] wrote. Nothing for a kind that there is not.
    #[must_use]
    pub fn decode(bytes: &[u8; STATEMENT_LEN]) -> Option<Self> {
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

    /// The end of a log whose last entry this is.
    #[must_use]
    pub fn end(&self) -> End {
        End { sequence: self.sequence, digest: self.digest() }
    }
}

/// The end of a log: its last entry.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct End {
    /// The sequence number, 0 for a log without entries.
    pub sequence: u64,
    /// The cumulative digest of all entries, zero for a log without entries.
    pub digest: [u8; 32],
}
