// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Crash-tolerant replication inside of TEEs, without failures (paper, §8.3: TEEs-Raft and
//! TEEs-CR). A program that is trusted as a whole needs no attestation, and no signature of a
//! client. Sessions protect what the replicas say.

use serde::{Deserialize, Serialize};
use smt_bft::Output;
use smt_loopback::{Machine, Sender};
use smt_replica::{Counter, KeyValue, Service};

use super::requester::{REPEATED_AFTER, Requester};
use super::{REPLICAS, count_operation, put_operation};
use crate::Failure;

/// A request in the log.
#[derive(Clone, Deserialize, Serialize)]
struct Entry {
    client: u32,
    number: u64,
    operation: Vec<u8>,
}

#[derive(Deserialize, Serialize)]
enum Message {
    Request(Entry),
    /// The leader's log from a place on, and the length that a majority has.
    Append {
        place: u64,
        entries: Vec<Entry>,
        committed: u64,
    },
    /// The sender has the log up to this length.
    Appended {
        length: u64,
    },
    /// The node before has executed these.
    Forward(Vec<Entry>),
    Reply {
        number: u64,
        answer: Vec<u8>,
    },
}

fn encode(message: &Message) -> Vec<u8> {
    // Writing to memory does not fail.
    postcard::to_allocvec(message).unwrap_or_default()
}

fn reply(entry: &Entry, answer: Vec<u8>) -> Output {
    let bytes = encode(&Message::Reply { number: entry.number, answer });
    Output::Client(entry.client, bytes)
}

/// A replica of Raft that nobody replaces: replica 0 leads.
pub(crate) struct Raft {
    own: u32,
    batch: usize,
    service: Counter,
    log: Vec<Entry>,
    waiting: Vec<Entry>,
    lengths: Vec<u64>,
    executed: u64,
    outputs: Vec<Output>,
}

impl Raft {
    pub(crate) fn new(own: u32, batch: usize) -> Self {
        let lengths = vec![0; REPLICAS as usize];
        let (service, log, waiting) = (Counter::default(), Vec::new(), Vec::new());
        Self { own, batch, service, log, waiting, lengths, executed: 0, outputs: Vec::new() }
    }

    fn append(&mut self, place: u64, entries: Vec<Entry>, committed: u64) {
        if place == self.log.len() as u64 {
            self.log.extend(entries);
        }
        let bytes = encode(&Message::Appended { length: self.log.len() as u64 });
        self.outputs.push(Output::Node(0, bytes));
        self.execute(committed);
    }

    fn execute(&mut self, committed: u64) {
        while self.executed < committed.min(self.log.len() as u64) {
            let entry = &self.log[self.executed as usize];
            let answer = self.service.execute(&entry.operation);
            if self.own == 0 {
                self.outputs.push(reply(entry, answer));
            }
            self.executed += 1;
        }
    }

    /// The leader appends what waits: while a batch is under way a full one alone, as BFT does.
    fn lead(&mut self) {
        let mut lengths = self.lengths.clone();
        lengths.sort_unstable();
        self.execute(lengths[REPLICAS as usize / 2]);
        while !self.waiting.is_empty() {
            let is_under_way = self.executed < self.log.len() as u64;
            if is_under_way && self.waiting.len() < self.batch {
                return;
            }
            let rest = self.waiting.split_off(self.batch.min(self.waiting.len()));
            let entries = std::mem::replace(&mut self.waiting, rest);
            let place = self.log.len() as u64;
            self.log.extend(entries.iter().cloned());
            self.lengths[0] = self.log.len() as u64;
            let bytes = encode(&Message::Append { place, entries, committed: self.executed });
            self.outputs.push(Output::Nodes(bytes));
        }
    }
}

impl Machine for Raft {
    type Error = Failure;

    fn receive(&mut self, from: Sender, bytes: &[u8]) {
        match (from, postcard::from_bytes(bytes)) {
            (Sender::Client, Ok(Message::Request(entry))) => self.waiting.push(entry),
            (Sender::Replica(0), Ok(Message::Append { place, entries, committed })) => {
                self.append(place, entries, committed);
            }
            (Sender::Replica(from), Ok(Message::Appended { length })) => {
                if let Some(known) = self.lengths.get_mut(from as usize) {
                    *known = length;
                }
            }
            _ => {}
        }
        if self.own == 0 {
            self.lead();
        }
    }

    fn tick(&mut self) {}

    fn outputs(&mut self) -> Result<Vec<Output>, Failure> {
        Ok(std::mem::take(&mut self.outputs))
    }
}

/// A node of chain replication that nobody replaces: 0 is the head, and the last one replies.
pub(crate) struct Chain {
    own: u32,
    service: KeyValue,
    executed: Vec<Entry>,
    outputs: Vec<Output>,
}

impl Chain {
    pub(crate) fn new(own: u32) -> Self {
        let (service, executed, outputs) = (KeyValue::default(), Vec::new(), Vec::new());
        Self { own, service, executed, outputs }
    }

    fn execute(&mut self, entry: Entry) {
        let answer = self.service.execute(&entry.operation);
        if self.own == REPLICAS - 1 {
            self.outputs.push(reply(&entry, answer));
        } else {
            self.executed.push(entry);
        }
    }
}

impl Machine for Chain {
    type Error = Failure;

    fn receive(&mut self, from: Sender, bytes: &[u8]) {
        match (from, postcard::from_bytes(bytes)) {
            (Sender::Client, Ok(Message::Request(entry))) => self.execute(entry),
            (Sender::Replica(_), Ok(Message::Forward(entries))) => {
                entries.into_iter().for_each(|it| self.execute(it));
            }
            _ => {}
        }
    }

    fn tick(&mut self) {}

    fn outputs(&mut self) -> Result<Vec<Output>, Failure> {
        if !self.executed.is_empty() {
            let bytes = encode(&Message::Forward(std::mem::take(&mut self.executed)));
            self.outputs.push(Output::Node(self.own + 1, bytes));
        }
        Ok(std::mem::take(&mut self.outputs))
    }
}

/// A client that trusts each replica.
pub(crate) struct Caller {
    own: u32,
    number: u64,
    is_counting: bool,
    /// Ticks since the request was sent.
    waited: u32,
    outputs: Vec<Output>,
}

impl Caller {
    pub(crate) fn new(own: u32, is_counting: bool) -> Self {
        Self { own, number: 0, is_counting, waited: 0, outputs: Vec::new() }
    }

    fn send(&mut self) {
        self.waited = 0;
        let operation = match self.is_counting {
            true => count_operation(),
            false => put_operation(self.own, self.number),
        };
        let entry = Entry { client: self.own, number: self.number, operation };
        let bytes = encode(&Message::Request(entry));
        self.outputs.push(Output::Node(0, bytes));
    }
}

impl Requester for Caller {
    fn submit(&mut self) -> u64 {
        self.number += 1;
        self.send();
        self.number
    }

    fn tick(&mut self) {
        self.waited += 1;
        if self.waited >= REPEATED_AFTER {
            self.send();
        }
    }

    fn receive(&mut self, _: u32, bytes: &[u8]) -> Option<u64> {
        match postcard::from_bytes(bytes) {
            Ok(Message::Reply { number, .. }) => Some(number).filter(|it| *it == self.number),
            _ => None,
        }
    }

    fn outputs(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }
}
