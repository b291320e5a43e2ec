// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The properties of the model, and their twins.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use smt_bft::sim::observe;
use smt_bft::{Batch, Group, Message, Reply, Request, Rule};
use stateright::Property;

use super::replica::Seen;
use super::{Bft, REPLICAS, State};
use crate::MessageId;

/// The names of the properties.
pub mod names {
    /// No two correct replicas execute different requests at one place.
    pub const AGREEMENT: &str = "agreement";
    /// All that a correct replica has executed in a view is in the log of each later view that a
    /// correct replica knows.
    pub const NOTHING_IS_LOST: &str = "no_executed_request_is_lost";
    /// A client takes an answer only if a correct replica has executed its request with it, and
    /// each request once.
    pub const RIGHT_ANSWERS: &str = "a_client_takes_right_answers";
    /// Correct replicas execute what clients have signed.
    pub const SIGNED: &str = "only_signed_requests_are_executed";
    /// No correct replica takes another one for faulty.
    pub const NO_ACCUSATION: &str = "no_correct_replica_is_taken_for_faulty";
}

/// The names of the twins: each says that a situation is reached that tests a property.
pub mod twins {
    /// Tests [`super::names::AGREEMENT`]: both correct replicas have executed, and one of them has
    /// heard more of a liar that contradicts itself.
    pub const CONTRADICTION: &str = "a liar is found out after both have executed";
    /// Tests [`super::names::NOTHING_IS_LOST`]: a view begins with what one correct replica alone
    /// had executed when it was opened.
    pub const CHANGE: &str = "a view is opened after one replica alone has executed";
    /// Tests [`super::names::RIGHT_ANSWERS`].
    pub const ANSWER: &str = "a client takes an answer beside a wrong one";
    /// Tests [`super::names::SIGNED`].
    pub const UNSIGNED: &str = "a leader is found out that orders what no client has signed";
    /// Tests [`super::names::NO_ACCUSATION`]: a view was opened by correct replicas alone.
    pub const WITHOUT_LIAR: &str = "correct replicas open a view, and execute in it";
    /// Tests [`super::names::NOTHING_IS_LOST`] where the liar's device restarts.
    pub const ADMITTED: &str = "a view is opened in which the liar's new epoch is a member";
}

/// An answer that no service gives.
const WRONG: &[u8] = b"wrong";

/// The answers that clients can take.
pub(super) struct Answers {
    group: Arc<Group>,
    lacking: Option<Rule>,
    /// By the replies of correct replicas.
    known: RwLock<HashMap<BTreeSet<MessageId>, Taken>>,
}

/// Answers by client.
type Taken = Arc<BTreeSet<(u32, Vec<u8>)>>;

impl Answers {
    pub(super) fn new(group: Arc<Group>, lacking: Option<Rule>) -> Self {
        Self { group, lacking, known: RwLock::default() }
    }

    pub(super) fn group(&self) -> &Group {
        &self.group
    }

    fn remembered(&self, told: &BTreeSet<MessageId>) -> Option<Taken> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(told).cloned()
    }

    /// All that the shipped client of each request may take of replies, in whatever order they
    /// come.
    fn taken(&self, requests: &[Request], replies: &[Reply]) -> Taken {
        let replies: Vec<Vec<u8>> = replies.iter().map(encoded).collect();
        let mut taken = BTreeSet::new();
        for request in requests {
            for order in orders(&replies) {
                let mut client = observe::client(&self.group, request.client, self.lacking);
                client.submit(request.nonce, request.operation.clone());
                let answer = order.iter().find_map(|it| client.receive(it));
                taken.extend(answer.map(|it| (request.client, it)));
            }
        }
        Arc::new(taken)
    }
}

fn encoded(reply: &Reply) -> Vec<u8> {
    Message::Reply(reply.clone()).encode()
}

/// The pairs of messages in each order: two replies are enough for an answer, and a client forgets
/// none that it has.
fn orders(messages: &[Vec<u8>]) -> Vec<[&Vec<u8>; 2]> {
    messages.iter().flat_map(|one| messages.iter().map(move |other| [one, other])).collect()
}

impl Bft {
    fn signed(&self) -> Vec<Request> {
        let decoded = self.requests.iter().map(|it| Message::decode(&self.messages.bytes(*it)));
        let request = |it| match it {
            Some(Message::Request(request)) => Some(request),
            _ => None,
        };
        decoded.filter_map(request).collect()
    }

    /// All replies that clients may get beside these of correct replicas: of each liar the same, and
    /// a wrong one to each request; and wrong ones in the name of correct replicas.
    fn lies_to_clients(&self, correct: &[Reply]) -> Vec<Reply> {
        let wrong = self.signed().into_iter().map(|it| Reply {
            replica: 0,
            view: 0,
            client: it.client,
            number: it.number,
            request: it.digest(),
            result: WRONG.to_vec(),
            signature: [[0; 32]; 2],
        });
        let told: Vec<Reply> = correct.iter().cloned().chain(wrong).collect();
        let mut lies = Vec::new();
        for liar in &self.liars {
            let key = observe::host_key(*liar);
            let signed = |it: &Reply, replica| Reply { replica, view: 0, ..it.clone() }.sign(&key);
            lies.extend(told.iter().map(|it| signed(it, *liar)));
            for name in (0..REPLICAS).filter(|it| !self.liars.contains(it)) {
                let wrong = told.iter().filter(|it| it.result == WRONG);
                lies.extend(wrong.map(|it| signed(it, name)));
            }
        }
        lies
    }

    /// The answers that clients can take in a state.
    fn answers(&self, state: &State) -> Taken {
        let told = { self.see(state) }.iter().flat_map(|it| it.1.replies.clone()).collect();
        if let Some(taken) = self.answers.remembered(&told) {
            return taken;
        }
        let reply = |it: &MessageId| match Message::decode(&self.messages.bytes(*it)) {
            Some(Message::Reply(reply)) => Some(reply),
            _ => None,
        };
        let mut replies: Vec<Reply> = told.iter().filter_map(reply).collect();
        replies.extend(self.lies_to_clients(&replies));
        let taken = self.answers.taken(&self.signed(), &replies);
        let mut known = self.answers.known.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(told, taken.clone());
        taken
    }
}

pub(super) fn all(model: &Bft) -> Vec<Property<Bft>> {
    let mut all = vec![
        Property::always(names::AGREEMENT, |model: &Bft, state| agree(&model.see(state))),
        Property::always(names::NOTHING_IS_LOST, |model: &Bft, state| keep(&model.see(state))),
        Property::always(names::RIGHT_ANSWERS, answer_rightly),
        Property::always(names::SIGNED, execute_signed),
        Property::always(names::NO_ACCUSATION, |model: &Bft, state| {
            model.see(state).iter().all(|it| !it.1.takes_for_faulty(|it| !model.liars.contains(&it)))
        }),
    ];
    if model.liars == [0] {
        all.extend([
            Property::sometimes(twins::CONTRADICTION, |model: &Bft, state| {
                let seen = model.see(state);
                seen.iter().all(|it| !it.1.observed.executed.is_empty())
                    && seen.iter().any(|it| it.1.takes_for_faulty(|it| it == 0))
            }),
            Property::sometimes(twins::UNSIGNED, |model: &Bft, state: &State| {
                let faulty = |it: &(u32, Arc<Seen>)| it.1.takes_for_faulty(|it| it == 0);
                let told = &state.streams[0].said;
                told.len() == 1 && model.is_unsigned(told[0]) && model.see(state).iter().all(faulty)
            }),
        ]);
    }
    if model.bounds.views > 0 {
        all.extend([
            Property::sometimes(twins::CHANGE, |model: &Bft, state| changes(&model.see(state))),
            Property::sometimes(twins::WITHOUT_LIAR, |model: &Bft, state: &State| {
                let silent = state.streams.iter().all(|it| it.said.is_empty());
                let in_later = |it: &Seen| it.observed.decided > 0 && !it.observed.executed.is_empty();
                silent && model.see(state).iter().all(|it| in_later(&it.1))
            }),
        ]);
    }
    if model.bounds.restarts {
        all.push(Property::sometimes(twins::ADMITTED, |model: &Bft, state| {
            model.see(state).iter().any(|it| it.1.observed.has_admitted)
        }));
    }
    all.push(Property::sometimes(twins::ANSWER, |model: &Bft, state| {
        model.answers(state).iter().any(|it| it.1 != WRONG)
    }));
    all
}

impl Seen {
    fn takes_for_faulty(&self, is_one: impl Fn(u32) -> bool) -> bool {
        self.observed.streams.iter().any(|(key, it)| is_one(key.0) && it.is_faulty)
    }
}

impl Bft {
    fn is_unsigned(&self, said: MessageId) -> bool {
        let signed = self.signed();
        match super::statement(&self.messages.bytes(said)) {
            Some((_, smt_bft::Statement::Prepare { batch, .. })) => {
                batch.iter().any(|it| !signed.contains(it))
            }
            _ => false,
        }
    }
}

fn agree(seen: &[(u32, Arc<Seen>)]) -> bool {
    let logs = |it: &(u32, Arc<Seen>)| it.1.observed.executed.clone();
    let logs: Vec<Vec<Batch>> = seen.iter().map(logs).collect();
    let both = |one: &[Batch], other: &[Batch]| one.iter().zip(other).all(|(a, b)| a == b);
    logs.iter().all(|one| logs.iter().all(|other| both(one, other)))
}

fn keep(seen: &[(u32, Arc<Seen>)]) -> bool {
    let has = |executed: &Seen, knows: &Seen| {
        let later = knows.observed.views.range(executed.observed.decided + 1..);
        let places = &executed.observed.executed;
        { later }.all(|(_, log)| {
            log.len() >= places.len() && log.iter().zip(places).all(|(one, it)| one.as_ref() == Some(it))
        })
    };
    seen.iter().all(|one| seen.iter().all(|other| has(&one.1, &other.1)))
}

/// One has executed in a view that the other has left without, and the next view has it.
fn changes(seen: &[(u32, Arc<Seen>)]) -> bool {
    let is_alone = |it: &Seen| it.observed.executed.is_empty() && it.observed.promised > 0;
    let begins = |it: &Seen| it.observed.views.range(1..).any(|it| !it.1.is_empty());
    seen.iter().any(|one| is_alone(&one.1)) && seen.iter().any(|it| begins(&it.1))
}

fn execute_signed(model: &Bft, state: &State) -> bool {
    let signed = model.signed();
    let seen = model.see(state);
    let mut executed = seen.iter().flat_map(|it| it.1.observed.executed.iter());
    executed.all(|batch| batch.iter().all(|it| signed.contains(it)))
}

/// The counter after each request of a log, of which each counts once.
fn results(log: &[Batch]) -> BTreeMap<u32, Vec<u8>> {
    let (mut sum, mut results) = (0_u64, BTreeMap::new());
    for request in log.iter().flat_map(|it| it.iter()) {
        results.entry(request.client).or_insert_with(|| {
            let added = request.operation.as_slice().try_into().map_or(0, u64::from_be_bytes);
            sum += added;
            sum.to_be_bytes().to_vec()
        });
    }
    results
}

fn answer_rightly(model: &Bft, state: &State) -> bool {
    let seen = model.see(state);
    let results: Vec<_> = seen.iter().map(|it| results(&it.1.observed.executed)).collect();
    let answers = model.answers(state);
    let is_right = |(client, answer): &(u32, Vec<u8>)| {
        results.iter().any(|it| it.get(client) == Some(answer))
    };
    answers.iter().all(is_right)
}
