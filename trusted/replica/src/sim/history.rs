// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A record of what clients and correct nodes have seen, and the properties that it must have.

use std::collections::{BTreeMap, BTreeSet};

use crate::client::Completion;
use crate::digest::Digest;
use crate::request::Request;
use crate::sim::model::Model;

/// A property that does not hold. Nodes and clients have numbers, and so have the requests of a
/// client.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Violation {
    /// Two correct nodes executed different requests at this place.
    Differ(u64),
    /// Two correct nodes have different states after this place.
    State(u64),
    /// A correct client's request was executed that the client never made.
    Invented(u32, u64),
    /// A correct client's request was executed twice.
    Twice(u32, u64),
    /// A correct client accepted a wrong answer to this request of its own, or it was refused.
    WrongAnswer(u32, u64),
    /// A correct client has an answer to a request that no correct node has executed.
    Lost(u32, u64),
    /// An operation stands after one that began only when it had ended.
    Order(u32, u64),
    /// A correct node was taken for a liar.
    Slandered(u32),
    /// A correct node stopped.
    Stopped(u32),
    /// A liar that leaves proof was not found.
    NotFound(u32),
    /// A node that was killed could not go on from its log.
    LogRefused(u32),
    /// A request had no answer long after the network became honest.
    Stuck(u32, u64),
    /// A correct node had not caught up with the others long after the network became honest.
    Behind(u32),
}

impl Violation {
    /// Whether a client or a node has seen what must not be, and not only waits.
    #[must_use]
    pub fn is_of_safety(&self) -> bool {
        !matches!(self, Self::Stuck(..) | Self::NotFound(_) | Self::Behind(_))
    }
}

/// A correct client's operation.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The client.
    pub client: u32,
    /// The number of its request.
    pub number: u64,
    /// The digest of its request.
    pub digest: Digest,
    /// When it began.
    pub begun: u64,
    /// When it ended, and the answer.
    pub ended: Option<(u64, Vec<u8>)>,
}

/// A request in the log of the correct nodes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// The client.
    pub client: u32,
    /// The number of the request.
    pub number: u64,
    /// Its digest.
    pub digest: Digest,
    /// Its operation.
    pub operation: Vec<u8>,
}

impl From<&Request> for Entry {
    fn from(it: &Request) -> Self {
        let operation = it.operation.clone();
        Self { client: it.client, number: it.number, digest: it.digest(), operation }
    }
}

/// All that is compared.
#[derive(Default)]
pub struct History {
    /// The operations that correct clients have begun, in order.
    pub operations: Vec<Operation>,
    log: BTreeMap<u64, Vec<Entry>>,
    states: BTreeMap<u64, Digest>,
    violations: Vec<Violation>,
}

impl History {
    /// A correct node has executed requests at a place.
    pub fn executed<E: Into<Entry>>(&mut self, place: u64, requests: impl IntoIterator<Item = E>) {
        let entries: Vec<Entry> = requests.into_iter().map(E::into).collect();
        match self.log.get(&place) {
            None => {
                self.log.insert(place, entries);
            }
            Some(known) if *known == entries => {}
            Some(_) => self.violate(Violation::Differ(place)),
        }
    }

    /// A correct node has this state after a place.
    pub fn state(&mut self, place: u64, state: Digest) {
        if *self.states.entry(place).or_insert(state) != state {
            self.violate(Violation::State(place));
        }
    }

    /// A correct client has the end of a request.
    pub(super) fn completed(&mut self, client: u32, it: Completion, now: u64) {
        let of_client = self.operations.iter_mut().rev().filter(|it| it.client == client);
        let operation = of_client.into_iter().find(|operation| operation.number == it.number);
        match (operation, it.result) {
            (Some(operation), Ok(answer)) => operation.ended = Some((now, answer)),
            _ => self.violate(Violation::WrongAnswer(client, it.number)),
        }
    }

    /// Notes a violation, once.
    pub fn violate(&mut self, violation: Violation) {
        if !self.violations.contains(&violation) {
            self.violations.push(violation);
        }
    }

    /// Whether a property does not hold.
    #[must_use]
    pub fn is_violated(&self) -> bool {
        !self.violations.is_empty()
    }

    /// Checks all properties. The log of the correct nodes is the order that must explain each
    /// answer; it also keeps the order in time, which together is linearizability.
    pub(super) fn judge(mut self, mut model: Model) -> Vec<Violation> {
        let mut made = BTreeMap::<u32, BTreeSet<Digest>>::new();
        for it in &self.operations {
            made.entry(it.client).or_default().insert(it.digest);
        }
        let mut executed = BTreeMap::<(u32, u64), (u64, Vec<u8>)>::new();
        let mut order = 0;
        for request in self.log.values().flatten() {
            let (client, number) = (request.client, request.number);
            if made.get(&client).is_some_and(|it| !it.contains(&request.digest)) {
                self.violations.push(Violation::Invented(client, number));
            }
            if let Some(answer) = model.execute(request) {
                order += 1;
                executed.insert((client, number), (order, answer));
            }
        }
        let mut ended = Vec::new();
        for it in &self.operations {
            let Some((at, answer)) = &it.ended else {
                self.violations.push(Violation::Stuck(it.client, it.number));
                continue;
            };
            match executed.get(&(it.client, it.number)) {
                None => self.violations.push(Violation::Lost(it.client, it.number)),
                Some((_, right)) if right != answer => {
                    self.violations.push(Violation::WrongAnswer(it.client, it.number));
                }
                Some((order, _)) => ended.push((it, *at, *order)),
            }
        }
        for (one, at, order) in &ended {
            if ended.iter().any(|(other, _, later)| at < &other.begun && order > later) {
                self.violations.push(Violation::Order(one.client, one.number));
            }
        }
        self.violations
    }
}
