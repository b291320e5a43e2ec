// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node that takes the records of its log.

use smt_attestor::{Attestor, Machine, Replay};
use smt_journal::{Disk, Journal, JournalError};

use super::{LoggedError, Record};
use crate::encoding::{decode, encode};
use crate::node::Node;

/// The node as the records come.
pub(super) struct Reading<N, F> {
    /// Makes the node, when the log tells its nonce.
    start: Option<F>,
    node: Option<(Replayed<N>, [u8; 16])>,
    replay: Replay<Record>,
    failure: Option<LoggedError>,
    /// The parts of a snapshot so far, and bytes of one that was whole.
    parts: Vec<u8>,
    snapshot: u64,
    /// The inputs of the log.
    inputs: u64,
}

/// The node where its log ends.
pub(super) struct Read<N> {
    pub(super) node: N,
    /// The nonce of the device's start.
    pub(super) nonce: [u8; 16],
    /// The inputs of the log.
    pub(super) inputs: u64,
    /// Bytes of the snapshot before them.
    pub(super) snapshot: u64,
}

impl<N: Node, F: FnOnce([u8; 16]) -> Result<N, LoggedError>> Reading<N, F> {
    pub(super) fn new(start: F) -> Self {
        let (start, parts) = (Some(start), Vec::new());
        let (node, replay, failure) = (None, Replay::default(), None);
        Self { start, node, replay, failure, parts, snapshot: 0, inputs: 0 }
    }

    /// Whether the log has no record.
    pub(super) fn is_empty(&self) -> bool {
        self.start.is_some() && self.failure.is_none()
    }

    pub(super) fn take(&mut self, record: &[u8]) {
        if self.failure.is_none() {
            self.failure = self.step(record).err();
        }
    }

    fn step(&mut self, record: &[u8]) -> Result<(), LoggedError> {
        let record = decode(record).ok_or(JournalError::Unfit)?;
        let Some((node, _)) = &mut self.node else {
            return self.begin(record);
        };
        match record {
            Record::Given(given) => self.replay.given(node, given),
            input @ (Record::Tick | Record::Message(_)) => {
                self.inputs += 1;
                self.replay.input(node, input);
            }
            Record::Part(part) if self.inputs == 0 => self.parts.extend(part),
            Record::Whole if self.inputs == 0 => {
                let bytes = std::mem::take(&mut self.parts);
                self.snapshot = bytes.len() as u64;
                // Its statements since it began are in the snapshot.
                self.replay = Replay::default();
                if !node.0.restore(&bytes)? {
                    return Err(JournalError::Unfit.into());
                }
            }
            Record::Start(_) | Record::Part(_) | Record::Whole => {
                return Err(JournalError::Unfit.into());
            }
        }
        Ok(())
    }

    fn begin(&mut self, record: Record) -> Result<(), LoggedError> {
        let (Record::Start(nonce), Some(start)) = (record, self.start.take()) else {
            return Err(JournalError::Unfit.into());
        };
        let (node, _) = self.node.insert((Replayed(start(nonce)?), nonce));
        self.replay.input(node, Record::Start(nonce));
        Ok(())
    }

    pub(super) fn finish(self, journal: &mut Journal<impl Disk>) -> Result<Read<N>, LoggedError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        // A snapshot is durable before the log has its place.
        if !self.parts.is_empty() {
            return Err(JournalError::Unfit.into());
        }
        let (mut node, nonce) = self.node.ok_or(JournalError::Unfit)?;
        self.replay.finish(&mut node, |given| {
            journal.append(&encode(&Record::Given(given)));
            journal.commit().map_err(LoggedError::from)
        })?;
        Ok(Read { node: node.0, nonce, inputs: self.inputs, snapshot: self.snapshot })
    }
}

/// A node that takes the inputs of its log.
struct Replayed<N>(N);

impl<N: Node> Machine for Replayed<N> {
    type Input = Record;

    fn attestor(&mut self) -> &mut Attestor {
        self.0.device_mut()
    }

    fn take_again(&mut self, input: Record) {
        match input {
            Record::Start(_) => self.0.begin(),
            Record::Tick => self.0.tick(),
            Record::Message(bytes) => {
                if let Some(message) = N::decode(&bytes) {
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
