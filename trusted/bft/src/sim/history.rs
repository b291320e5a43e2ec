// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A record of what clients and correct replicas have seen, and the properties that it must have.

use std::collections::{BTreeMap, BTreeSet};

use smt_replica::{Completion, Digest, KeyValueOperation, Request, ServiceKind, session_of};

use crate::message::{Batch, decode, encode};

/// A property that does not hold.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Violation {
    /// Two correct replicas executed different batches at this place.
    Differ(u64),
    /// Two correct replicas have different states after this place.
    State(u64),
    /// A correct client's request was executed that the client never made.
    Invented(u32, u64),
    /// A correct client accepted a wrong answer to this request of its own, or it was refused.
    WrongAnswer(u32, u64),
    /// A correct client has an answer to a request that no correct replica has executed.
    Lost(u32, u64),
    /// An operation stands after one that began only when it had ended.
    Order(u32, u64),
    /// A replica that was killed could not go on from its log.
    LogRefused(u32),
    /// A request had no answer long after the network became honest.
    Stuck(u32, u64),
    /// A correct replica had not caught up with the others long after the network became honest.
    Behind(u32),
}

/// A correct client's operation.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) client: u32,
    pub(crate) number: u64,
    pub(crate) digest: Digest,
    pub(crate) begun: u64,
    pub(crate) ended: Option<(u64, Vec<u8>)>,
}

/// All that is compared.
#[derive(Default)]
pub(crate) struct History {
    pub(crate) operations: Vec<Operation>,
    batches: BTreeMap<u64, Digest>,
    log: BTreeMap<u64, Batch>,
    states: BTreeMap<u64, Digest>,
    violations: Vec<Violation>,
}

impl History {
    /// A correct replica has executed a batch.
    pub(crate) fn executed(&mut self, place: u64, batch: &Batch) {
        let digest = crate::ledger::extend(&[0; 32], batch);
        if *self.batches.entry(place).or_insert(digest) != digest {
            self.violations.push(Violation::Differ(place));
        }
        self.log.entry(place).or_insert_with(|| batch.clone());
    }

    /// A correct replica has this state.
    pub(crate) fn state(&mut self, place: u64, state: Digest) {
        if *self.states.entry(place).or_insert(state) != state {
            self.violations.push(Violation::State(place));
        }
    }

    /// A correct client has the end of a request.
    pub(crate) fn completed(&mut self, client: u32, it: Completion, now: u64) {
        let of_client = self.operations.iter_mut().rev().filter(|it| it.client == client);
        let operation = of_client.into_iter().find(|operation| operation.number == it.number);
        match (operation, it.result) {
            (Some(operation), Ok(answer)) => operation.ended = Some((now, answer)),
            _ => self.violations.push(Violation::WrongAnswer(client, it.number)),
        }
    }

    /// A replica's log was refused after a crash of its disk.
    pub(crate) fn log_refused(&mut self, device: u32) {
        self.violations.push(Violation::LogRefused(device));
    }

    /// A correct replica has not caught up.
    pub(crate) fn behind(&mut self, device: u32) {
        self.violations.push(Violation::Behind(device));
    }

    pub(crate) fn is_violated(&self) -> bool {
        !self.violations.is_empty()
    }

    /// Checks all properties. The log of the correct replicas is the order that must explain each
    /// answer; it also keeps the order in time, which together is linearizability.
    pub(crate) fn judge(mut self, kind: ServiceKind) -> Vec<Violation> {
        let mut model = Model::new(kind);
        let mut correct = BTreeMap::<u32, BTreeSet<Digest>>::new();
        for it in &self.operations {
            correct.entry(it.client).or_default().insert(it.digest);
        }
        let mut executed = BTreeMap::<(u32, u64), (u64, Vec<u8>)>::new();
        let mut order = 0;
        for request in self.log.values().flat_map(|batch| batch.iter()) {
            let (client, number) = (request.client, request.number);
            if correct.get(&client).is_some_and(|it| !it.contains(&request.digest())) {
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

/// The services once more, in the plainest form, with each request executed once.
struct Model {
    kind: ServiceKind,
    sum: u64,
    values: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The requests that were executed, by client and session.
    executed: BTreeMap<(u32, u64), Vec<u64>>,
}

impl Model {
    fn new(kind: ServiceKind) -> Self {
        Self { kind, sum: 0, values: BTreeMap::new(), executed: BTreeMap::new() }
    }

    fn execute(&mut self, request: &Request) -> Option<Vec<u8>> {
        // No run has as many sessions of a client as are open at once.
        let session = (request.client, session_of(request.number));
        let executed = self.executed.entry(session).or_default();
        let is_too_low = |it: &u64| request.number + 32 <= *it;
        if executed.contains(&request.number) || executed.iter().any(is_too_low) {
            return None;
        }
        executed.push(request.number);
        Some(match self.kind {
            ServiceKind::Counter => match request.operation.as_slice().try_into() {
                Err(_) => Vec::new(),
                Ok(added) => {
                    self.sum = self.sum.wrapping_add(u64::from_be_bytes(added));
                    self.sum.to_be_bytes().to_vec()
                }
            },
            ServiceKind::KeyValue => match decode(&request.operation) {
                None => Vec::new(),
                Some(KeyValueOperation::Get(key)) => encode(&self.values.get(&key)),
                Some(KeyValueOperation::Put(key, value)) => encode(&self.values.insert(key, value)),
                Some(KeyValueOperation::Delete(key)) => encode(&self.values.remove(&key)),
            },
        })
    }
}
