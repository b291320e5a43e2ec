// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The rules by which an entry of a log follows another.

use std::collections::BTreeMap;

use smt_attestation::{Epoch, Header, Kind};

use crate::entry::{Entry, EntryKind, hash};
use crate::error::{A2mError, Refused};

/// The kernel's streams: each log, and the manifest.
pub(crate) type Device = smt_attestation::Kernel<64, 1, 4>;
pub(crate) type LogStream = smt_attestation::Stream<1, 4>;

/// A log from its first entry to its last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chain {
    /// The lowest sequence number that is not forgotten.
    pub(crate) lowest: u64,
    /// The highest sequence number, 0 for an empty log.
    pub(crate) highest: u64,
    /// The cumulative digest of all entries.
    pub(crate) digest: [u8; 32],
    /// The epochs in which the log was written, with the sequence number of the first entry of
    /// each. The kernel's counter in an epoch tells all others.
    pub(crate) epochs: BTreeMap<Epoch, u64>,
}

impl Chain {
    /// Whether `entry` is what the device attested at its place: `sequence` follows from the
    /// kernel's counter, which is given once.
    pub(crate) fn verify(&self, stream: &LogStream, entry: &Entry) -> Result<Header, A2mError> {
        let header = genuine(stream, entry)?;
        let (log, sequence) = (entry.log.0, entry.statement.sequence);
        let first = self.epochs.get(&header.epoch);
        let place = first.and_then(|first| first.checked_add(header.counter - 1));
        if place == Some(sequence) {
            Ok(header)
        } else {
            Err(A2mError::Misplaced { log, sequence })
        }
    }

    /// Takes the entry that comes next.
    pub(crate) fn push(&mut self, stream: &LogStream, entry: &Entry) -> Result<(), A2mError> {
        let header = genuine(stream, entry)?;
        let statement = &entry.statement;
        let (log, sequence) = (entry.log.0, statement.sequence);
        let misplaced = A2mError::Misplaced { log, sequence };
        let begins = statement.kind == EntryKind::Begin;
        if begins {
            if header.counter != 1 {
                return Err(misplaced);
            }
            self.epochs.insert(header.epoch, sequence);
        }
        let is_next = sequence == self.highest + 1 && statement.previous == self.digest;
        // In the newest epoch, also if this entry begins one.
        let in_last = self.epochs.last_key_value().is_some_and(|(epoch, first)| {
            *epoch == header.epoch && first.checked_add(header.counter - 1) == Some(sequence)
        });
        if !is_next || !in_last {
            return Err(misplaced);
        }
        self.lowest = self.lowest.max(1);
        self.highest = sequence;
        self.digest = statement.digest();
        Ok(())
    }
}

/// Whether the device has attested this entry, whatever its place.
fn genuine(stream: &LogStream, entry: &Entry) -> Result<Header, A2mError> {
    let altered = |why| A2mError::altered(entry.log, entry.statement.sequence, why);
    let checked = stream.check(&entry.attestation, &entry.statement.encode());
    let header = checked.map_err(|why| altered(Refused::Attestation(why)))?;
    if header.kind != Kind::Message || hash(&entry.context) != entry.statement.context_hash {
        return Err(altered(Refused::Context));
    }
    Ok(header)
}
