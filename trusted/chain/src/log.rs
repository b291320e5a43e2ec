// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The log of one configuration, and the state after it.
//!
//! A request is executed when it is ordered, before it is committed: its proof needs the answer.
//! Each configuration therefore has a state of its own, and one that is left behind takes what was
//! not committed with it. Entries that nobody can refer to any more are left out, but for the state
//! after them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smt_bft::{Digest, Request, Service};

use crate::configuration::Configuration;
use crate::digest::digest;
use crate::state::{Base, State, WrittenBase};

/// An executed request.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Entry {
    pub(crate) request: Request,
    pub(crate) answer: Vec<u8>,
    /// The hash of the answer.
    pub(crate) output: Digest,
    /// The hash of the log up to here.
    pub(crate) chain: Digest,
}

/// The log of one configuration.
#[derive(Debug)]
pub(crate) struct Log<S> {
    pub(crate) configuration: Configuration,
    /// How many entries it began with.
    pub(crate) start: u64,
    /// The hash of those.
    begun: Digest,
    /// The state after the first entries.
    base: Base<S>,
    /// The others.
    entries: Vec<Arc<Entry>>,
    state: State<S>,
    /// The MACs of the proofs of each place behind the base, by node.
    proofs: BTreeMap<(u64, u32), [u8; 32]>,
}

/// A log for a snapshot. Its entries are numbers in those of all logs.
#[derive(Deserialize, Serialize)]
pub(crate) struct WrittenLog {
    configuration: Configuration,
    start: u64,
    begun: Digest,
    base: WrittenBase,
    entries: Vec<u32>,
    proofs: BTreeMap<(u64, u32), [u8; 32]>,
}

impl<S: Service + Clone> Log<S> {
    /// The log with which the group begins.
    pub(crate) fn first(configuration: Configuration, service: S) -> Self {
        let base = Base::new(service);
        let (begun, state) = (base.chain, base.state.clone());
        let (entries, proofs) = (Vec::new(), BTreeMap::new());
        Self { configuration, start: 0, begun, base, entries, state, proofs }
    }

    /// A log that begins with the first `start` entries of this one; nothing if some of those are
    /// left out that are not kept.
    pub(crate) fn begin(&self, configuration: Configuration, start: u64) -> Option<Self> {
        let count = usize::try_from(start.checked_sub(self.base.place)?).ok()?;
        let entries = self.entries.get(..count)?.to_vec();
        let state = match start == self.length() {
            true => self.state.clone(),
            false => self.base.state_after(&entries),
        };
        let begun = entries.last().map_or(self.base.chain, |it| it.chain);
        let (base, proofs) = (self.base.clone(), BTreeMap::new());
        Some(Self { configuration, start, begun, base, entries, state, proofs })
    }

    /// How many entries there are.
    pub(crate) fn length(&self) -> u64 {
        self.base.place + self.entries.len() as u64
    }

    /// How many of them are left out, but for the last one of each client.
    pub(crate) fn left_out(&self) -> u64 {
        self.base.place
    }

    /// The entry at a place, from 1, if it is kept.
    pub(crate) fn entry(&self, place: u64) -> Option<&Arc<Entry>> {
        match place.checked_sub(self.base.place + 1) {
            Some(behind) => self.entries.get(usize::try_from(behind).ok()?),
            None => self.base.last.get(&place),
        }
    }

    /// Leaves out the entries up to a place, which no statement refers to any more.
    pub(crate) fn leave_out(&mut self, place: u64) {
        let count = place.min(self.length()).saturating_sub(self.base.place);
        for entry in self.entries.drain(..usize::try_from(count).unwrap_or(0)) {
            self.base.append(entry);
        }
        self.proofs = self.proofs.split_off(&(self.base.place + 1, 0));
    }

    /// The hash of how the log began.
    pub(crate) fn opening(&self) -> Digest {
        let (number, start) = (self.configuration.number.to_be_bytes(), self.start.to_be_bytes());
        digest("opening", &[&number, &start, &self.begun])
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
        let before = self.entries.last().map_or(self.base.chain, |it| it.chain);
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

    /// The log for a snapshot, with the number of each entry.
    pub(crate) fn written(&self, mut number: impl FnMut(&Arc<Entry>) -> u32) -> WrittenLog {
        WrittenLog {
            configuration: self.configuration.clone(),
            start: self.start,
            begun: self.begun,
            base: self.base.written(&mut number),
            entries: self.entries.iter().map(number).collect(),
            proofs: self.proofs.clone(),
        }
    }

    /// The log of a snapshot, whose service has nothing of its own in `empty`. Nothing if it is
    /// none.
    pub(crate) fn read(written: WrittenLog, all: &[Arc<Entry>], empty: &S) -> Option<Self> {
        let WrittenLog { configuration, start, begun, base, entries, proofs } = written;
        let base = Base::read(base, all, empty)?;
        let entries: Option<Vec<_>> =
            entries.into_iter().map(|it| all.get(it as usize).cloned()).collect();
        let entries = entries?;
        let state = base.state_after(&entries);
        Some(Self { configuration, start, begun, base, entries, state, proofs })
    }
}

/// The hash of an answer, which proofs state.
pub(crate) fn output(answer: &[u8]) -> Digest {
    digest("output", &[answer])
}
