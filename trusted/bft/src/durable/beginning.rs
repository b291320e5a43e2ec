// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A replica that takes the records of its log.

use std::sync::Arc;

use smt_attestor::{Attestor, AttestorError, Machine, OwnDevice, Replay};
use smt_journal::{Disk, Journal, JournalError};

use super::{DurableError, Record};
use crate::group::Group;
use crate::message::{Message, decode, encode};
use crate::replica::{Identity, Replica};
use crate::service::Service;

/// The replica as the records come.
pub(super) struct Beginning<S> {
    /// The parts of the replica, until the log tells its nonce.
    parts: Option<(Arc<Group>, Identity, S)>,
    replica: Option<Logged<S>>,
    replay: Replay<Record>,
    failure: Option<DurableError>,
    /// The parts of a snapshot so far, and bytes of one that was whole.
    bytes: Vec<u8>,
    snapshot: u64,
    /// The inputs of the log.
    inputs: u64,
}

/// The replica where its log ends.
pub(super) struct Begun<S> {
    pub(super) replica: Replica<S>,
    /// The inputs of the log.
    pub(super) inputs: u64,
    /// Bytes of the snapshot before them.
    pub(super) snapshot: u64,
}

impl<S: Service> Beginning<S> {
    pub(super) fn new(group: Arc<Group>, identity: Identity, service: S) -> Self {
        let (parts, bytes) = (Some((group, identity, service)), Vec::new());
        let (replica, replay, failure) = (None, Replay::default(), None);
        Self { parts, replica, replay, failure, bytes, snapshot: 0, inputs: 0 }
    }

    /// Whether the log has no record.
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_some() && self.failure.is_none()
    }

    pub(super) fn take(&mut self, record: &[u8]) {
        if self.failure.is_some() {
            return;
        }
        match (decode(record), &mut self.replica) {
            (Some(Record::Start(nonce)), None) => self.start(nonce),
            (Some(Record::Given(given)), Some(replica)) => self.replay.given(replica, given),
            (Some(input @ (Record::Tick | Record::Message(_))), Some(replica)) => {
                self.inputs += 1;
                self.replay.input(replica, input);
            }
            (Some(Record::Part(part)), Some(_)) if self.inputs == 0 => self.bytes.extend(part),
            (Some(Record::Whole), Some(replica)) if self.inputs == 0 => {
                let bytes = std::mem::take(&mut self.bytes);
                self.snapshot = bytes.len() as u64;
                // Its statements since it began are in the snapshot.
                self.replay = Replay::default();
                match replica.0.restore(&bytes) {
                    Ok(true) => {}
                    Ok(false) => self.failure = Some(JournalError::Unfit.into()),
                    Err(error) => self.failure = Some(error.into()),
                }
            }
            _ => self.failure = Some(JournalError::Unfit.into()),
        }
    }

    fn start(&mut self, nonce: [u8; 16]) {
        let Some((group, mut identity, service)) = self.parts.take() else {
            return;
        };
        match &mut identity.device {
            OwnDevice::Library { start, .. } => start.nonce = nonce,
            OwnDevice::Process { device, .. } if device.own().nonce == nonce => {}
            OwnDevice::Process { .. } => {
                self.failure = Some(AttestorError::Foreign.into());
                return;
            }
        }
        match Replica::silent(group, identity, service) {
            Ok(replica) => {
                let replica = self.replica.insert(Logged(replica));
                self.replay.input(replica, Record::Start(nonce));
            }
            Err(error) => self.failure = Some(error.into()),
        }
    }

    pub(super) fn finish(self, journal: &mut Journal<impl Disk>) -> Result<Begun<S>, DurableError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        // A snapshot is durable before the log has its place.
        if !self.bytes.is_empty() {
            return Err(JournalError::Unfit.into());
        }
        let mut replica = self.replica.ok_or(JournalError::Unfit)?;
        self.replay.finish(&mut replica, |given| {
            journal.append(&encode(&Record::Given(given)));
            journal.commit().map_err(DurableError::from)
        })?;
        Ok(Begun { replica: replica.0, inputs: self.inputs, snapshot: self.snapshot })
    }
}

/// A replica that takes the records of its log.
struct Logged<S>(Replica<S>);

impl<S: Service> Machine for Logged<S> {
    type Input = Record;

    fn attestor(&mut self) -> &mut Attestor {
        &mut self.0.device
    }

    fn take_again(&mut self, input: Record) {
        match input {
            Record::Start(_) => self.0.begin(),
            Record::Tick => self.0.tick(),
            Record::Message(bytes) => {
                if let Some(message) = Message::decode(&bytes) {
                    self.0.take(message);
                }
            }
            Record::Given(_) | Record::Part(_) | Record::Whole => {}
        }
    }

    fn go_on(&mut self) {
        self.0.advance();
    }

    fn drop_outputs(&mut self) {
        self.0.outputs();
    }
}
