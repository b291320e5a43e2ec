// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node that takes the records of its log.

use smt_attestor::{Attestor, Machine, Replay};
use smt_journal::{Disk, Journal, JournalError};

use super::error::LoggedError;
use super::record::Record;
use crate::encoding::{decode, encode};
use crate::node::{Node, Statements};

/// The node as the records come.
pub(super) struct Reading<N: Node, F, A> {
    /// Makes the node, when the log tells its start; and what gets its outputs then.
    start: Option<(F, A)>,
    node: Option<(Replayed<N, A>, N::Start)>,
    replay: Replay<Record<N::Start>>,
    failure: Option<LoggedError<N::Error>>,
    /// The parts of a snapshot so far, and bytes of one that was whole.
    parts: Vec<u8>,
    snapshot: u64,
    /// The inputs of the log.
    inputs: u64,
}

/// The node where its log ends.
pub(super) struct Read<N: Node> {
    pub(super) node: N,
    /// The random bytes of the node's start.
    pub(super) start: N::Start,
    /// The inputs of the log.
    pub(super) inputs: u64,
    /// Bytes of the snapshot before them.
    pub(super) snapshot: u64,
    /// The statements of which the log knows.
    pub(super) noted: Statements,
    /// The outputs that leave again.
    pub(super) outputs: Vec<N::Output>,
}

impl<N, F, A> Reading<N, F, A>
where
    N: Node,
    F: FnOnce(N::Start) -> Result<N, LoggedError<N::Error>>,
    A: FnMut(&mut Vec<N::Output>),
{
    pub(super) fn new(start: F, again: A) -> Self {
        let (start, parts) = (Some((start, again)), Vec::new());
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

    fn step(&mut self, record: &[u8]) -> Result<(), LoggedError<N::Error>> {
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
            // They are compared when the inputs before were taken.
            statements @ Record::Statements(_) => self.replay.input(node, statements),
            Record::Part(part) if self.inputs == 0 => self.parts.extend(part),
            Record::Whole if self.inputs == 0 => {
                let bytes = std::mem::take(&mut self.parts);
                self.snapshot = bytes.len() as u64;
                // Its statements since it began are in the snapshot.
                self.replay = Replay::default();
                if !node.node.restore(&bytes)? {
                    return Err(JournalError::Unfit.into());
                }
            }
            Record::Start(_) | Record::Part(_) | Record::Whole => {
                return Err(JournalError::Unfit.into());
            }
        }
        node.failure().map_or(Ok(()), Err)
    }

    fn begin(&mut self, record: Record<N::Start>) -> Result<(), LoggedError<N::Error>> {
        let (Record::Start(bytes), Some((start, again))) = (record, self.start.take()) else {
            return Err(JournalError::Unfit.into());
        };
        let node =
            Replayed { node: start(bytes)?, again, noted: Statements::default(), other: None };
        let (node, _) = self.node.insert((node, bytes));
        self.replay.input(node, Record::Start(bytes));
        Ok(())
    }

    pub(super) fn finish(
        self,
        journal: &mut Journal<impl Disk>,
    ) -> Result<Read<N>, LoggedError<N::Error>> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        // A snapshot is durable before the log has its place.
        if !self.parts.is_empty() {
            return Err(JournalError::Unfit.into());
        }
        let (mut node, start) = self.node.ok_or(JournalError::Unfit)?;
        node.node.go_live();
        let finished = self.replay.finish(&mut node, |given| {
            journal.append(&encode(&Record::<N::Start>::Given(given)));
            journal.commit().map_err(LoggedError::from)
        });
        // The first failure is the cause.
        node.failure().map_or(Ok(()), Err)?;
        finished?;
        let outputs = node.outputs();
        let Replayed { node, noted, .. } = node;
        Ok(Read { node, start, inputs: self.inputs, snapshot: self.snapshot, noted, outputs })
    }
}

/// A node that takes the inputs of its log.
struct Replayed<N, A> {
    node: N,
    /// Gets the outputs.
    again: A,
    /// The statements of which the log knows.
    noted: Statements,
    /// The last statement up to which the node has made others than before.
    other: Option<u64>,
}

impl<N: Node, A: FnMut(&mut Vec<N::Output>)> Replayed<N, A> {
    fn failure(&mut self) -> Option<LoggedError<N::Error>> {
        let other = self.other.map(LoggedError::OtherStatements);
        self.node.failure().or(other)
    }

    fn outputs(&mut self) -> Vec<N::Output> {
        let mut outputs = self.node.outputs();
        (self.again)(&mut outputs);
        outputs
    }
}

impl<N: Node, A: FnMut(&mut Vec<N::Output>)> Machine for Replayed<N, A> {
    type Input = Record<N::Start>;

    fn attestor(&mut self) -> &mut Attestor {
        self.node.device_mut()
    }

    fn take_again(&mut self, input: Record<N::Start>) {
        match input {
            Record::Start(_) => self.node.begin(),
            Record::Tick => self.node.tick(),
            Record::Message(bytes) => {
                if let Some(message) = decode(&bytes) {
                    self.node.take(message);
                }
            }
            Record::Statements(noted) if self.node.statements() == noted => self.noted = noted,
            Record::Statements(noted) => self.other = self.other.or(Some(noted.count)),
            Record::Given(_) | Record::Part(_) | Record::Whole => {}
        }
    }

    fn go_on(&mut self) {
        self.node.advance();
    }

    fn drop_outputs(&mut self) {
        self.outputs();
    }
}
