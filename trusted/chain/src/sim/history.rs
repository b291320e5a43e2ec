// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A record of what clients and correct nodes have seen, and the properties that it must have.

use std::collections::{BTreeMap, BTreeSet};

use smt_replica::{Completion, Digest, KeyValueOperation, Request, session_of};

use crate::message::{decode, encode};

/// A property that does not hold.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Violation {
    /// Two correct nodes committed different requests at this place.
    Differ(u64),
    /// A correct client's request was executed that the client never made.
    Invented(u32, u64),
    /// A correct client accepted a wrong answer to this request of its own, or it was refused.
    WrongAnswer(u32, u64),
    /// A correct client has an answer to a request that no correct node has committed.
    Lost(u32, u64),
    /// An operation stands after one that began only when it had ended.
    Order(u32, u64),
    /// A correct node was taken for a liar.
    Slandered(u32),
    /// A liar that leaves proof was not found.
    NotFound(u32),
    /// A request had no answer long after the network became honest.
    Stuck(u32, u64),
}

/// A correct client's operation.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) client: u32,
    pub(super) number: u64,
    pub(super) digest: Digest,
    pub(super) begun: u64,
    pub(super) ended: Option<(u64, Vec<u8>)>,
}

/// All that is compared.
#[derive(Default)]
pub(super) struct History {
    pub(super) operations: Vec<Operation>,
    log: BTreeMap<u64, (Request, Vec<u8>)>,
    violations: Vec<Violation>,
}

impl History {
    /// A correct node has committed a request, with its answer.
    pub(super) fn committed(&mut self, place: u64, request: &Request, answer: &[u8]) {
        let entry = (request.clone(), answer.to_vec());
        if *self.log.entry(place).or_insert_with(|| entry.clone()) != entry {
            self.violate(Violation::Differ(place));
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

    pub(super) fn violate(&mut self, violation: Violation) {
        if !self.violations.contains(&violation) {
            self.violations.push(violation);
        }
    }

    pub(super) fn is_violated(&self) -> bool {
        !self.violations.is_empty()
    }

    /// Checks all properties. The log of the correct nodes is the order that must explain each
    /// answer in a model of the store, reads included; it also keeps the order in time, which
    /// together is linearizability.
    pub(super) fn judge(mut self) -> Vec<Violation> {
        let mut made = BTreeMap::<u32, BTreeSet<Digest>>::new();
        for it in &self.operations {
            made.entry(it.client).or_default().insert(it.digest);
        }
        let mut values = BTreeMap::<Vec<u8>, Vec<u8>>::new();
        let mut of_sessions = BTreeMap::<(u32, u64), Vec<u64>>::new();
        let mut executed = BTreeMap::<(u32, u64), (u64, Vec<u8>)>::new();
        let mut found = Vec::new();
        for (place, (request, _)) in &self.log {
            let (client, number) = (request.client, request.number);
            if made.get(&client).is_some_and(|it| !it.contains(&request.digest())) {
                found.push(Violation::Invented(client, number));
            }
            // A request that stands twice is executed once, and one that is far below others of its
            // session not at all. No run has as many sessions of a client as are open at once.
            let of_session = of_sessions.entry((client, session_of(number))).or_default();
            if of_session.contains(&number) || of_session.iter().any(|it| number + 32 <= *it) {
                continue;
            }
            of_session.push(number);
            let answer = match decode(&request.operation) {
                None => Vec::new(),
                Some(KeyValueOperation::Get(key)) => encode(&values.get(&key)),
                Some(KeyValueOperation::Put(key, value)) => encode(&values.insert(key, value)),
                Some(KeyValueOperation::Delete(key)) => encode(&values.remove(&key)),
            };
            executed.insert((client, number), (*place, answer));
        }
        let mut ended = Vec::new();
        for it in &self.operations {
            let Some((at, answer)) = &it.ended else {
                found.push(Violation::Stuck(it.client, it.number));
                continue;
            };
            match executed.get(&(it.client, it.number)) {
                None => found.push(Violation::Lost(it.client, it.number)),
                Some((_, right)) if right != answer => {
                    found.push(Violation::WrongAnswer(it.client, it.number));
                }
                Some((place, _)) => ended.push((it, *at, *place)),
            }
        }
        for (one, at, place) in &ended {
            if ended.iter().any(|(other, _, later)| at < &other.begun && place > later) {
                found.push(Violation::Order(one.client, one.number));
            }
        }
        self.violations.extend(found);
        self.violations
    }
}
