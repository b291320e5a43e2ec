// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The rules by which an entry of a log follows another.

use std::collections::BTreeMap;

use smt_attestation::{Epoch, Header, Kind, StreamId};
use smt_device_client::{Device, DeviceError};

use crate::entry::{Entry, EntryKind, hash};
use crate::error::{A2mError, Refused};

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
    pub(crate) fn verify(&self, device: &impl Device, entry: &Entry) -> Result<Header, A2mError> {
        let header = genuine(device, entry)?;
        let (log, sequence) = (entry.log.0, entry.statement.sequence);
        let first = self.epochs.get(&header.epoch);
        let place = first.and_then(|first| first.checked_add(header.counter - 1));
        if place == Some(sequence) {
            Ok(header)
        } else {
            Err(A2mError::Misplaced { log, sequence })
        }
    }

    /// The counter of the last entry in an epoch, 0 if there is none.
    pub(crate) fn counter_in(&self, epoch: Epoch) -> u64 {
        self.epochs.get(&epoch).map_or(0, |first| self.highest + 1 - first)
    }

    /// Takes the entry that comes next, if the device has attested it.
    pub(crate) fn push(&mut self, device: &impl Device, entry: &Entry) -> Result<(), A2mError> {
        let header = genuine(device, entry)?;
        self.follows(entry, header)?;
        self.take(entry, header);
        Ok(())
    }

    /// Whether an entry has its place behind all before.
    pub(crate) fn follows(&self, entry: &Entry, header: Header) -> Result<(), A2mError> {
        let statement = &entry.statement;
        let (log, sequence) = (entry.log.0, statement.sequence);
        let is_next = sequence == self.highest + 1 && statement.previous == self.digest;
        let newest = self.epochs.last_key_value();
        let has_its_counter = if statement.kind == EntryKind::Begin {
            header.counter == 1 && newest.is_none_or(|(epoch, _)| *epoch < header.epoch)
        } else {
            newest.is_some_and(|(epoch, first)| {
                *epoch == header.epoch && first.checked_add(header.counter - 1) == Some(sequence)
            })
        };
        if is_next && has_its_counter { Ok(()) } else { Err(A2mError::Misplaced { log, sequence }) }
    }

    /// Takes an entry that follows.
    pub(crate) fn take(&mut self, entry: &Entry, header: Header) {
        let statement = &entry.statement;
        if statement.kind == EntryKind::Begin {
            self.epochs.insert(header.epoch, statement.sequence);
        }
        self.lowest = self.lowest.max(1);
        self.highest = statement.sequence;
        self.digest = statement.digest();
    }
}

/// Whether the device has attested this entry, whatever its place.
fn genuine(device: &impl Device, entry: &Entry) -> Result<Header, A2mError> {
    let altered = |why| A2mError::altered(entry.log, entry.statement.sequence, why);
    let stream = StreamId(entry.log.0);
    let checked = device.check(stream, &entry.attestation, &entry.statement.encode());
    let header = checked.map_err(|error| match error {
        DeviceError::Refused(why) => altered(Refused::Attestation(why)),
        other => A2mError::Device(other),
    })?;
    if header.kind != Kind::Message || hash(&entry.context) != entry.statement.context_hash {
        return Err(altered(Refused::Context));
    }
    Ok(header)
}
