// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The state after a log, and what is left of entries that are left out.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smt_replica::{ClientTable, Digest, Request, Service};

use crate::log::Entry;
use crate::shared::Shared;

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

/// The first entries of a log: the state after them, and those whose answers clients may ask for
/// again.
#[derive(Clone, Debug)]
pub(crate) struct Base<S> {
    /// How many there were.
    pub(crate) place: u64,
    /// The hash of the log up to there.
    pub(crate) chain: Digest,
    pub(crate) state: State<S>,
    /// Those whose answers are kept, by place.
    pub(crate) answered: BTreeMap<u64, Arc<Entry>>,
}

/// The first entries of a log for a snapshot.
#[derive(Deserialize, Serialize)]
pub(crate) struct WrittenBase {
    place: u64,
    chain: Digest,
    service: Vec<u8>,
    table: Table,
    answered: BTreeMap<u64, u32>,
}

impl<S: Service + Clone> Base<S> {
    /// No entries.
    pub(crate) fn new(service: S) -> Self {
        let state = State { service, table: Table::default() };
        Self { place: 0, chain: [0; 32], state, answered: BTreeMap::new() }
    }

    /// Takes the next entry.
    pub(crate) fn append(&mut self, entry: Arc<Entry>) {
        self.place += 1;
        self.chain = entry.chain;
        let (_, dropped) = self.state.execute(&entry.request, self.place);
        self.answered.insert(self.place, entry);
        dropped.iter().for_each(|place| drop(self.answered.remove(place)));
    }

    /// The state after some more entries.
    pub(crate) fn state_after(&self, entries: &[Arc<Entry>]) -> State<S> {
        let mut state = self.state.clone();
        for (place, entry) in (self.place + 1..).zip(entries) {
            state.execute(&entry.request, place);
        }
        state
    }

    pub(crate) fn written(&self, entries: &mut Shared<Entry>) -> WrittenBase {
        WrittenBase {
            place: self.place,
            chain: self.chain,
            service: self.state.service.snapshot(),
            table: self.state.table.clone(),
            answered: self.answered.iter().map(|it| (*it.0, entries.number(it.1))).collect(),
        }
    }

    pub(crate) fn read(written: WrittenBase, all: &[Arc<Entry>], empty: &S) -> Option<Self> {
        let WrittenBase { place, chain, service: bytes, table, answered } = written;
        let mut service = empty.clone();
        if !service.restore(&bytes) {
            return None;
        }
        let answered =
            { answered.into_iter() }.map(|it| Some((it.0, all.get(it.1 as usize)?.clone())));
        let state = State { service, table };
        Some(Self { place, chain, state, answered: answered.collect::<Option<_>>()? })
    }
}
