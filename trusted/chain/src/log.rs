// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The log of one configuration, and the state after it.
//!
//! A request is executed when it is ordered, before it is committed: its proof needs the answer.
//! Each configuration therefore has a state of its own, and one that is left behind takes what was
//! not committed with it. Entries that nobody can refer to any more are left out, but for the state
//! after them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smt_replica::{Digest, Request, Service};

use crate::configuration::Configuration;
use crate::digest::digest;
use crate::shared::Shared;
use crate::state::{Base, State, Table};

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
    /// The state after the first entries. Logs that begin with the same share it.
    base: Arc<Base<S>>,
    /// The others.
    entries: Vec<Arc<Entry>>,
    state: State<S>,
    /// The MACs of the proofs of each place behind the base, by node.
    proofs: BTreeMap<(u64, u32), [u8; 32]>,
}

/// A log for a snapshot. Its base and its entries are numbers in those of all logs.
#[derive(Deserialize, Serialize)]
pub(crate) struct WrittenLog<'a> {
    configuration: Cow<'a, Configuration>,
    start: u64,
    begun: Digest,
    base: u32,
    entries: Vec<u32>,
    proofs: Cow<'a, BTreeMap<(u64, u32), [u8; 32]>>,
}

impl<S: Service + Clone> Log<S> {
    /// The log with which the group begins.
    pub(crate) fn first(configuration: Configuration, service: S) -> Self {
        let base = Arc::new(Base::new(service));
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

    /// How many of them are left out, but for answers that clients may ask for again.
    pub(crate) fn left_out(&self) -> u64 {
        self.base.place
    }

    /// The entry at a place, from 1, if it is not left out.
    pub(crate) fn entry(&self, place: u64) -> Option<&Arc<Entry>> {
        let behind = place.checked_sub(self.base.place + 1)?;
        self.entries.get(usize::try_from(behind).ok()?)
    }

    /// The answer to the request at a place, from 1, if it is kept.
    pub(crate) fn answer(&self, place: u64) -> Option<&[u8]> {
        let entry = self.entry(place).map(|it| it.answer.as_slice());
        entry.or_else(|| self.base.answer(place))
    }

    /// Leaves out the entries up to a place, which no statement refers to any more. `before` is the
    /// base of the log that has left them out before this one, and becomes that of this one.
    pub(crate) fn leave_out(&mut self, place: u64, before: &mut Option<Arc<Base<S>>>) {
        let place = place.min(self.length());
        let count = usize::try_from(place.saturating_sub(self.base.place)).unwrap_or(0);
        let chain = count.checked_sub(1).map_or(self.base.chain, |it| self.entries[it].chain);
        let left_out = self.entries.drain(..count);
        match before.as_ref().filter(|it| (it.place, it.chain) == (place, chain)) {
            Some(same) => {
                drop(left_out);
                self.base = same.clone();
            }
            None => {
                let base = Arc::make_mut(&mut self.base);
                left_out.for_each(|entry| base.append(&entry));
                *before = Some(self.base.clone());
            }
        }
        self.proofs = self.proofs.split_off(&(self.base.place + 1, 0));
    }

    /// The hash of how the log began.
    pub(crate) fn opening(&self) -> Digest {
        let (number, start) = (self.configuration.number.to_be_bytes(), self.start.to_be_bytes());
        digest("opening", &[&number, &start, &self.begun])
    }

    /// Whether a request was not executed, and may be.
    pub(crate) fn is_new(&self, request: &Request) -> bool {
        self.state.table.is_new(request)
    }

    /// The places of the executed requests of all clients, up to one that is not left out.
    pub(crate) fn table_at(&self, place: u64) -> Table {
        let mut table = self.base.state.table.clone();
        for (at, entry) in (self.base.place + 1..=place).zip(&self.entries) {
            table.note(&entry.request, at, entry.answer.len());
        }
        table
    }

    /// Executes a request at the next place.
    pub(crate) fn append(&mut self, request: Request) -> &Entry {
        let (answer, _) = self.state.execute(&request, self.length() + 1);
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

    /// The log for a snapshot.
    pub(crate) fn written(
        &self,
        bases: &mut Shared<Base<S>>,
        entries: &mut Shared<Entry>,
    ) -> WrittenLog<'_> {
        WrittenLog {
            configuration: Cow::Borrowed(&self.configuration),
            start: self.start,
            begun: self.begun,
            base: bases.number(&self.base),
            entries: self.entries.iter().map(|it| entries.number(it)).collect(),
            proofs: Cow::Borrowed(&self.proofs),
        }
    }

    /// The log of a snapshot with these bases and entries. Nothing if it is none.
    pub(crate) fn read(
        written: WrittenLog<'_>,
        bases: &[Arc<Base<S>>],
        all: &[Arc<Entry>],
    ) -> Option<Self> {
        let WrittenLog { configuration, start, begun, base, entries, proofs } = written;
        let base = bases.get(base as usize)?.clone();
        let entries: Option<Vec<_>> =
            entries.into_iter().map(|it| all.get(it as usize).cloned()).collect();
        let entries = entries?;
        let state = base.state_after(&entries);
        let (configuration, proofs) = (configuration.into_owned(), proofs.into_owned());
        Some(Self { configuration, start, begun, base, entries, state, proofs })
    }
}

/// The hash of an answer, which proofs state.
pub(crate) fn output(answer: &[u8]) -> Digest {
    digest("output", &[answer])
}

#[cfg(all(test, feature = "sim"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::message::encode;
    use smt_replica::sim::client_key;
    use smt_replica::{KeyValue, KeyValueOperation};

    fn request(client: u32, number: u64) -> Request {
        Request::sign(&client_key(1), client, number, ([0; 16], vec![number as u8; 8]))
    }

    fn logs() -> [Log<KeyValue>; 2] {
        let configuration = |number| Configuration::of_number(number, 3);
        let mut first = Log::first(configuration(0), KeyValue::default());
        for number in 1..=4 {
            first.append(request(1, number));
        }
        let second = first.begin(configuration(1), 3).unwrap();
        [first, second]
    }

    // Once, each log had a copy of its own, in memory and in each snapshot.
    #[test]
    fn logs_share_the_state_that_they_begin_with_also_when_more_is_left_out() {
        let [mut first, mut second] = logs();
        for place in [2, 3] {
            let mut before = None;
            for log in [&mut first, &mut second] {
                log.leave_out(place, &mut before);
            }
            assert!(Arc::ptr_eq(&first.base, &second.base), "place {place}");
            assert_eq!((first.left_out(), second.left_out()), (place, place));
        }
        let (mut bases, mut entries) = (Shared::new(), Shared::new());
        let numbers = [&first, &second].map(|it| it.written(&mut bases, &mut entries).base);
        assert_eq!((numbers, bases.into_all().len()), ([0, 0], 1));
        assert_eq!(first.entry(4).map(|it| it.request.number), Some(4));
    }

    // Once, whole entries were kept for their answers: of each client 256 requests, as long as the
    // group permits.
    #[test]
    fn a_request_that_is_left_out_leaves_its_answer_alone() {
        let configuration = Configuration::of_number(0, 3);
        let mut log = Log::first(configuration, KeyValue::default());
        for number in 1..=20 {
            let operation = KeyValueOperation::Get(vec![number as u8; 64 << 10]).encode();
            log.append(Request::sign(&client_key(1), 1, number, ([0; 16], operation)));
        }
        log.leave_out(20, &mut None);
        let (mut bases, mut entries) = (Shared::new(), Shared::new());
        let written = encode(&log.written(&mut bases, &mut entries)).len();
        let bases = bases.into_all();
        let bases: Vec<_> = bases.iter().map(|it| it.written()).collect();
        let bytes = written + encode(&(bases, entries.into_all())).len();
        assert!(bytes < 64 << 10, "{bytes} bytes");
    }

    #[test]
    fn a_log_that_is_shorter_or_has_gone_another_way_keeps_a_state_of_its_own() {
        let [mut first, mut second] = logs();
        let mut before = None;
        for log in [&mut first, &mut second] {
            log.leave_out(4, &mut before);
        }
        assert_eq!((first.left_out(), second.left_out()), (4, 3));
        let [mut first, mut second] = logs();
        second.append(request(2, 1));
        let mut before = None;
        for log in [&mut first, &mut second] {
            log.leave_out(4, &mut before);
        }
        assert!(!Arc::ptr_eq(&first.base, &second.base));
        assert_ne!(first.base.chain, second.base.chain);
    }
}
