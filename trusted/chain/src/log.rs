// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The log of one configuration, and the state after it.
//!
//! A request is executed when it is ordered, before it is committed: its proof needs the answer.
//! Each configuration therefore has a state of its own, and one that is left behind takes what was
//! not committed with it.

use std::collections::BTreeMap;
use std::sync::Arc;

use smt_bft::{Digest, Request, Service};

use crate::configuration::Configuration;
use crate::digest::digest;

/// An executed request.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) request: Request,
    pub(crate) answer: Vec<u8>,
    /// The hash of the answer.
    pub(crate) output: Digest,
    /// The hash of the log up to here.
    chain: Digest,
}

/// Service and exactly-once table.
#[derive(Clone, Debug)]
struct State<S> {
    service: S,
    /// Number and place of each client's last request. The operator has formed the list of clients.
    table: BTreeMap<u32, (u64, u64)>,
}

/// The log of one configuration.
#[derive(Debug)]
pub(crate) struct Log<S> {
    pub(crate) configuration: Configuration,
    /// How many entries it began with.
    pub(crate) start: u64,
    entries: Vec<Arc<Entry>>,
    state: State<S>,
    /// The MACs of the proofs of each place, by node.
    proofs: BTreeMap<(u64, u32), [u8; 32]>,
}

impl<S: Service + Clone> Log<S> {
    /// The log with which the group begins.
    pub(crate) fn first(configuration: Configuration, service: S) -> Self {
        let state = State { service, table: BTreeMap::new() };
        let (entries, proofs) = (Vec::new(), BTreeMap::new());
        Self { configuration, start: 0, entries, state, proofs }
    }

    /// A log that begins with the first `start` entries of this one.
    pub(crate) fn begin(&self, configuration: Configuration, start: u64, empty: S) -> Self {
        let mut next = Self::first(configuration, empty);
        next.start = start;
        if start == self.length() {
            next.state = self.state.clone();
            next.entries.clone_from(&self.entries);
            return next;
        }
        let kept = self.entries.iter().take(usize::try_from(start).unwrap_or(usize::MAX));
        for entry in kept {
            next.state.execute(&entry.request, next.length() + 1);
            next.entries.push(entry.clone());
        }
        next
    }

    /// How many entries there are.
    pub(crate) fn length(&self) -> u64 {
        self.entries.len() as u64
    }

    /// The entry at a place, from 1.
    pub(crate) fn entry(&self, place: u64) -> Option<&Arc<Entry>> {
        self.entries.get(usize::try_from(place.checked_sub(1)?).ok()?)
    }

    /// The hash of how the log began.
    pub(crate) fn opening(&self) -> Digest {
        let chain = self.entry(self.start).map_or([0; 32], |it| it.chain);
        let (number, start) = (self.configuration.number.to_be_bytes(), self.start.to_be_bytes());
        digest("opening", &[&number, &start, &chain])
    }

    /// Whether a request has a higher number than all of its client before.
    pub(crate) fn is_new(&self, request: &Request) -> bool {
        self.state.table.get(&request.client).is_none_or(|last| last.0 < request.number)
    }

    /// The place of a client's last request, if it has this number.
    pub(crate) fn place_of(&self, request: &Request) -> Option<u64> {
        let (number, place) = self.state.table.get(&request.client)?;
        (*number == request.number).then_some(*place)
    }

    /// Executes a request at the next place.
    pub(crate) fn append(&mut self, request: Request) -> &Entry {
        let answer = self.state.execute(&request, self.length() + 1);
        let output = output(&answer);
        let before = self.entries.last().map_or([0; 32], |it| it.chain);
        let chain = digest("chain", &[&before, &request.digest(), &output]);
        self.entries.push(Arc::new(Entry { request, answer, output, chain }));
        &self.entries[self.entries.len() - 1]
    }

    /// The MAC of a node's proof of a place.
    pub(crate) fn proof(&self, place: u64, node: u32) -> Option<[u8; 32]> {
        self.proofs.get(&(place, node)).copied()
    }

    /// Notes a proof. All who take the sender's stream note the same.
    pub(crate) fn note_proof(&mut self, place: u64, node: u32, mac: [u8; 32]) {
        self.proofs.insert((place, node), mac);
    }
}

impl<S: Service> State<S> {
    fn execute(&mut self, request: &Request, place: u64) -> Vec<u8> {
        self.table.insert(request.client, (request.number, place));
        self.service.execute(&request.operation)
    }
}

/// The hash of an answer, which proofs state.
pub(crate) fn output(answer: &[u8]) -> Digest {
    digest("output", &[answer])
}
