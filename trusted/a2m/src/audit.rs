// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The rules by which an entry of a log follows another.

use std::collections::BTreeMap;

use smt_attestation::{Epoch, Header, Kind, StreamId};
use smt_device_client::{Device, DeviceError, End, LogId};

use crate::entry::{Entry, hash};
use crate::error::{A2mError, Refused};

/// A log from its first entry to its last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chain {
    /// The lowest sequence number that is not forgotten.
    pub(crate) lowest: u64,
    /// The last entry.
    pub(crate) end: End,
    /// The sequence numbers at which the kernel's counter does not follow the one before, each with
    /// its place: where an epoch begins, and behind entries that were discarded. They tell the
    /// places of all other entries.
    runs: BTreeMap<u64, Place>,
}

/// The epoch and the counter of an entry.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Place {
    epoch: Epoch,
    counter: u64,
}

impl Place {
    fn of(header: Header) -> Self {
        Self { epoch: header.epoch, counter: header.counter }
    }
}

impl Chain {
    /// Whether `entry` is what the device attested at its place: the kernel gives a counter once.
    pub(crate) fn verify(&self, device: &impl Device, entry: &Entry) -> Result<(), A2mError> {
        let header = genuine(device, entry)?;
        let (log, sequence) = (entry.log.0, entry.statement.sequence);
        if sequence <= self.end.sequence && self.place(sequence) == Some(Place::of(header)) {
            Ok(())
        } else {
            Err(A2mError::Misplaced { log, sequence })
        }
    }

    /// The epoch of the last entry.
    pub(crate) fn epoch(&self) -> Option<Epoch> {
        self.runs.last_key_value().map(|(_, place)| place.epoch)
    }

    /// Takes the entry that comes next, if the device has attested it. Where the device has not
    /// sealed it, no counter may be left out: the kernel's counters alone tell then which of two
    /// entries has the place.
    pub(crate) fn push(
        &mut self,
        device: &impl Device,
        entry: &Entry,
        is_sealed: bool,
    ) -> Result<(), A2mError> {
        let header = genuine(device, entry)?;
        self.follows(entry, header)?;
        let next = self
            .place(entry.statement.sequence)
            .map_or(1, |place| if place.epoch == header.epoch { place.counter } else { 1 });
        if !is_sealed && header.counter != next {
            let (log, sequence) = (entry.log.0, entry.statement.sequence);
            return Err(A2mError::Misplaced { log, sequence });
        }
        self.take(entry, header);
        Ok(())
    }

    /// Whether an entry has its place behind all before.
    pub(crate) fn follows(&self, entry: &Entry, header: Header) -> Result<(), A2mError> {
        let statement = &entry.statement;
        let (log, sequence) = (entry.log.0, statement.sequence);
        let is_next = sequence == self.end.sequence + 1 && statement.previous == self.end.digest;
        let is_later = self.place(self.end.sequence).is_none_or(|last| last < Place::of(header));
        if is_next && is_later { Ok(()) } else { Err(A2mError::Misplaced { log, sequence }) }
    }

    /// Takes an entry that follows.
    pub(crate) fn take(&mut self, entry: &Entry, header: Header) {
        let statement = &entry.statement;
        if self.place(statement.sequence) != Some(Place::of(header)) {
            self.runs.insert(statement.sequence, Place::of(header));
        }
        self.lowest = self.lowest.max(1);
        self.end = statement.end();
    }

    /// The place of an entry, if no run begins between it and the run before.
    fn place(&self, sequence: u64) -> Option<Place> {
        let (first, place) = self.runs.range(..=sequence).next_back()?;
        let counter = place.counter.checked_add(sequence - first)?;
        Some(Place { counter, ..*place })
    }
}

/// The stream of a log.
pub(crate) fn stream_of(log: LogId) -> Result<StreamId, A2mError> {
    log.stream().ok_or(A2mError::NoLog(log.0))
}

/// Whether the device has attested this entry, whatever its place.
fn genuine(device: &impl Device, entry: &Entry) -> Result<Header, A2mError> {
    let altered = |why| A2mError::altered(entry.log, entry.statement.sequence, why);
    let stream = stream_of(entry.log)?;
    let is_older = |header: Header| header.stream == StreamId(entry.log.0);
    if entry.attestation.claim().is_some_and(is_older) {
        return Err(A2mError::OlderVersion);
    }
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
