// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node that takes the records of its log.

use smt_attestor::{Attestor, Machine, Replay};
use smt_bft::Service;
use smt_journal::{Disk, Journal, JournalError};

use super::{DurableError, Record};
use crate::message::{Message, decode, encode};
use crate::node::Node;

/// The node as the records come.
pub(super) struct Beginning<S> {
    node: Logged<S>,
    replay: Replay<Record>,
    failure: Option<DurableError>,
    /// The parts of a snapshot so far, and bytes of one that was whole.
    bytes: Vec<u8>,
    snapshot: u64,
    /// The inputs of the log.
    inputs: u64,
}

/// The node where its log ends.
pub(super) struct Begun<S> {
    pub(super) node: Node<S>,
    /// The inputs of the log.
    pub(super) inputs: u64,
    /// Bytes of the snapshot before them.
    pub(super) snapshot: u64,
}

impl<S: Service + Clone> Beginning<S> {
    pub(super) fn new(node: Node<S>) -> Self {
        let (node, replay, bytes) = (Logged(node), Replay::default(), Vec::new());
        Self { node, replay, failure: None, bytes, snapshot: 0, inputs: 0 }
    }

    pub(super) fn take(&mut self, record: &[u8]) {
        if self.failure.is_none() {
            self.failure = self.step(record).err();
        }
    }

    fn step(&mut self, record: &[u8]) -> Result<(), DurableError> {
        match decode(record).ok_or(JournalError::Unfit)? {
            Record::Given(given) => self.replay.given(&mut self.node, given),
            Record::Part(part) if self.inputs == 0 => self.bytes.extend(part),
            Record::Whole if self.inputs == 0 => {
                let bytes = std::mem::take(&mut self.bytes);
                self.snapshot = bytes.len() as u64;
                if !self.node.0.restore(&bytes)? {
                    return Err(JournalError::Unfit.into());
                }
            }
            Record::Part(_) | Record::Whole => return Err(JournalError::Unfit.into()),
            input @ (Record::Tick | Record::Message(_)) => {
                self.inputs += 1;
                self.replay.input(&mut self.node, input);
            }
        }
        Ok(())
    }

    pub(super) fn finish(self, journal: &mut Journal<impl Disk>) -> Result<Begun<S>, DurableError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        // A snapshot is durable before the log has its place.
        if !self.bytes.is_empty() {
            return Err(JournalError::Unfit.into());
        }
        let mut node = self.node;
        self.replay.finish(&mut node, |given| {
            journal.append(&encode(&Record::Given(given)));
            journal.commit().map_err(DurableError::from)
        })?;
        Ok(Begun { node: node.0, inputs: self.inputs, snapshot: self.snapshot })
    }
}

/// A node that takes the inputs of its log.
struct Logged<S>(Node<S>);

impl<S: Service + Clone> Machine for Logged<S> {
    type Input = Record;

    fn attestor(&mut self) -> &mut Attestor {
        &mut self.0.device
    }

    fn take_again(&mut self, input: Record) {
        match input {
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
