// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The state after a log, and what is left of entries that are left out.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smt_replica::{ClientTable, Digest, Request, Service};

use crate::log::Entry;

/// The places of the executed requests of all clients. The operator has formed their list.
pub(crate) type Table = ClientTable<u64>;

/// Service and exactly-once table.
#[derive(Clone, Debug)]
pub(crate) struct State<S> {
    service: S,
    pub(crate) table: Table,
}

impl<S: Service> State<S> {
    /// Executes the request at a place. Returns its answer, and the places of requests whose
    /// answers are kept no longer.
    pub(crate) fn execute(&mut self, request: &Request, place: u64) -> (Vec<u8>, Vec<u64>) {
        let answer = match request.begins_session() {
            true => Vec::new(),
            false => self.service.execute(&request.operation),
        };
        let dropped = self.table.note(request, place, answer.len());
        (answer, dropped)
    }
}

/// The first entries of a log: the state after them, and the answers that clients may ask for
/// again.
#[derive(Clone, Debug)]
pub(crate) struct Base<S> {
    /// How many there were.
    pub(crate) place: u64,
    /// The hash of the log up to there.
    pub(crate) chain: Digest,
    pub(crate) state: State<S>,
    /// The answers that are kept, by place.
    answers: BTreeMap<u64, Arc<[u8]>>,
}

/// The first entries of a log for a snapshot.
#[derive(Deserialize, Serialize)]
pub(crate) struct WrittenBase {
    place: u64,
    chain: Digest,
    service: Vec<u8>,
    table: Table,
    answers: BTreeMap<u64, Arc<[u8]>>,
}

impl<S: Service + Clone> Base<S> {
    /// No entries.
    pub(crate) fn new(service: S) -> Self {
        let state = State { service, table: Table::default() };
        Self { place: 0, chain: [0; 32], state, answers: BTreeMap::new() }
    }

    /// Takes the next entry.
    pub(crate) fn append(&mut self, entry: &Entry) {
        self.place += 1;
        self.chain = entry.chain;
        let (answer, dropped) = self.state.execute(&entry.request, self.place);
        self.answers.insert(self.place, answer.into());
        dropped.iter().for_each(|place| drop(self.answers.remove(place)));
    }

    /// The answer to the request at a place, if it is kept.
    pub(crate) fn answer(&self, place: u64) -> Option<&[u8]> {
        self.answers.get(&place).map(|it| &**it)
    }

    /// The state after some more entries.
    pub(crate) fn state_after(&self, entries: &[Arc<Entry>]) -> State<S> {
        let mut state = self.state.clone();
        for (place, entry) in (self.place + 1..).zip(entries) {
            state.execute(&entry.request, place);
        }
        state
    }

    pub(crate) fn written(&self) -> WrittenBase {
        WrittenBase {
            place: self.place,
            chain: self.chain,
            service: self.state.service.snapshot(),
            table: self.state.table.clone(),
            answers: self.answers.clone(),
        }
    }

    /// The base of a snapshot. Nothing if the service does not know its state.
    pub(crate) fn read(written: WrittenBase, empty: &S) -> Option<Self> {
        let WrittenBase { place, chain, service: bytes, table, answers } = written;
        let mut service = empty.clone();
        let is_state = service.restore(&bytes);
        is_state.then_some(Self { place, chain, state: State { service, table }, answers })
    }
}
