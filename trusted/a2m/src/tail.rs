// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Proofs of where a log ends, for clients without a key.

use smt_attestation::{Kind, PUBLIC_KEY_LEN, SIGNATURE_LEN, verify_signature};
use smt_device_client::{End, EntryKind, LogId};

use crate::entry::{Entry, hash};

/// Proof that a log ended with `entry` when the nonce was chosen, for clients without a key.
#[derive(Clone, Debug)]
pub struct Tail {
    /// The entry with the nonce. Its statement has the cumulative digest of all before.
    pub entry: Entry,
    /// The device's signature.
    pub signature: [u8; SIGNATURE_LEN],
}

/// Why a tail proves nothing, or proves that a log was rolled back.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TailError {
    /// The entry is of another log.
    #[error("the tail is of another log")]
    OtherLog,
    /// The entry has another nonce, or is not one with a nonce.
    #[error("the tail has another nonce: it may be an older one")]
    OtherNonce,
    /// The signature is not the device's, or the tail was altered.
    #[error("the signature is not that of the device over this tail")]
    Signature,
    /// The log ends before, or at, an entry that the client knows.
    #[error(
        "the log was rolled back: its tail is entry {tail}, and entry {known} was there before it"
    )]
    RolledBack {
        /// The sequence number of the tail.
        tail: u64,
        /// The sequence number that the client knows.
        known: u64,
    },
    /// The log has another entry under a sequence number that the client knows.
    #[error("the log was forked: another entry {0} was there before")]
    Forked(u64),
}

/// Verifies, by the device's public key alone, where `log` ended after `nonce` was chosen, and
/// returns that end, the tail's own entry included. `known` is an end that was verified before, in
/// this epoch of the device or an earlier one; a nonce is new, so that the tail comes after it.
///
/// All tails of one device for one log are entries of one chain, in all of its epochs. The client
/// who remembers an end needs no trust in the device for what `known` finds out.
///
/// # Errors
/// Any [`TailError`].
pub fn verify_tail(
    public_key: &[u8; PUBLIC_KEY_LEN],
    log: LogId,
    nonce: &[u8],
    tail: &Tail,
    known: Option<End>,
) -> Result<End, TailError> {
    let Tail { entry, signature } = tail;
    let (header, statement) = (entry.attestation.header_bytes(), &entry.statement);
    let claim = entry.attestation.claim().filter(|it| it.kind == Kind::Message);
    let claim = claim.ok_or(TailError::Signature)?;
    if entry.log != log || log.stream() != Some(claim.stream) {
        return Err(TailError::OtherLog);
    }
    if statement.kind != EntryKind::Tail || statement.context_hash != hash(nonce) {
        return Err(TailError::OtherNonce);
    }
    if !verify_signature(public_key, &header, &statement.encode(), signature) {
        return Err(TailError::Signature);
    }
    if let Some(End { sequence: known, digest }) = known {
        if statement.sequence <= known {
            return Err(TailError::RolledBack { tail: statement.sequence, known });
        }
        if statement.sequence - 1 == known && statement.previous != digest {
            return Err(TailError::Forked(known));
        }
    }
    Ok(statement.end())
}
