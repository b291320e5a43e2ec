// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node that takes the records of its journal.

use smt_attestor::{Attestor, Machine, Replay};
use smt_journal::{Disk, Journal};

use super::{DurableError, Record};
use crate::application::Application;
use crate::message::{decode, encode};
use crate::node::{Node, Output};

/// A node that takes the inputs of its journal, and its host.
pub(super) struct Host<A, F> {
    pub(super) node: Node<A>,
    pub(super) deliver: F,
}

impl<A: Application, F: FnMut(Vec<u8>)> Machine for Host<A, F> {
    type Input = Record;

    fn attestor(&mut self) -> &mut Attestor {
        &mut self.node.device
    }

    fn take_again(&mut self, input: Record) {
        match input {
            Record::Tick => self.node.tick(),
            Record::Local(input) => drop(self.node.local(input)),
            Record::Message(from, bytes) => self.node.receive(from, &bytes),
            Record::Part(_) | Record::Whole | Record::Nonces(_) | Record::Given(_) => {}
        }
        // Messages are said again in time.
        for output in self.node.outputs() {
            if let Output::Deliver(bytes) = output {
                (self.deliver)(bytes);
            }
        }
    }
}

/// The node as the records come.
pub(super) struct Beginning<A, F> {
    host: Host<A, F>,
    replay: Replay<Record>,
    has_begun: bool,
    /// The parts of a snapshot so far.
    parts: Vec<u8>,
    /// Bytes of the snapshot that was whole.
    snapshot: u64,
    inputs: u64,
    failure: Option<DurableError>,
}

/// The node where its journal ends.
pub(super) struct Begun<A> {
    pub(super) node: Node<A>,
    /// The inputs of the journal.
    pub(super) inputs: u64,
    /// Bytes of the snapshot before them.
    pub(super) snapshot: u64,
}

impl<A: Application, F: FnMut(Vec<u8>)> Beginning<A, F> {
    pub(super) fn new(host: Host<A, F>) -> Self {
        let (replay, has_begun) = (Replay::default(), false);
        let (parts, snapshot, inputs, failure) = (Vec::new(), 0, 0, None);
        Self { host, replay, has_begun, parts, snapshot, inputs, failure }
    }

    /// Whether the journal has no record.
    pub(super) fn is_empty(&self) -> bool {
        !self.has_begun && self.failure.is_none()
    }

    pub(super) fn take(&mut self, record: &[u8]) {
        if self.failure.is_none() {
            self.failure = self.step(record).err();
        }
    }

    fn step(&mut self, record: &[u8]) -> Result<(), DurableError> {
        let record = decode(record).ok_or(DurableError::Record)?;
        if !self.has_begun {
            let Record::Nonces(from) = record else {
                return Err(DurableError::Record);
            };
            self.has_begun = true;
            self.host.node.derive_nonces(from);
            return Ok(());
        }
        match record {
            Record::Nonces(_) => return Err(DurableError::Record),
            Record::Part(part) => self.parts.extend(part),
            Record::Whole => return self.restore(),
            Record::Given(given) => self.replay.given(&mut self.host, given),
            input @ (Record::Tick | Record::Local(_) | Record::Message(..)) => {
                self.inputs += 1;
                self.replay.input(&mut self.host, input);
            }
        }
        Ok(())
    }

    fn restore(&mut self) -> Result<(), DurableError> {
        let bytes = std::mem::take(&mut self.parts);
        self.snapshot = bytes.len() as u64;
        let is_whole = self.inputs == 0 && self.host.node.restore(&bytes)?;
        is_whole.then_some(()).ok_or(DurableError::Record)
    }

    pub(super) fn end(self, journal: &mut Journal<impl Disk>) -> Result<Begun<A>, DurableError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        if !self.parts.is_empty() {
            return Err(DurableError::Record);
        }
        let mut host = self.host;
        let finished = self.replay.finish(&mut host, |given| {
            journal.append(&encode(&Record::Given(given)));
            journal.commit().map_err(DurableError::from)
        });
        // The first failure is the cause.
        if let Some(error) = host.node.device_failure() {
            return Err(error.into());
        }
        finished?;
        Ok(Begun { node: host.node, inputs: self.inputs, snapshot: self.snapshot })
    }
}
