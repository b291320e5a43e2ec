// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The properties of the model, and their twins.

use std::collections::BTreeMap;
use std::sync::Arc;

use smt_bft::sim::observe::{self, Observed};
use smt_bft::{Batch, Message, Statement};
use smt_replica::{Reply, Request};
use stateright::Property;

use super::{Bft, Bounds, statement};
use crate::answers::{Taken, WRONG, lies, takes};
use crate::{Cluster, MessageId, State};

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

type Of = Cluster<Bft>;

/// The answers that clients can take in a state.
fn answers(of: &Of, state: &State) -> Taken {
    let system = &of.system;
    let told = { of.see(state) }.iter().flat_map(|it| it.1.others.clone()).collect();
    system.answers.after(told, |told| {
        let reply = |it: &MessageId| match Message::decode(&of.messages.bytes(*it)) {
            Some(Message::Reply(reply)) => Some(reply),
            _ => None,
        };
        let mut replies: Vec<Reply> = told.iter().filter_map(reply).collect();
        replies.extend(lies(&of.liars, &system.requests, &replies, observe::host_key));
        let encoded = replies.into_iter().map(|it| Message::Reply(it).encode());
        let messages: Vec<Vec<u8>> = encoded.collect();
        let of_request = |request: &Request| {
            let start = || {
                let mut it = observe::client(&system.group, request.client);
                it.submit(request.nonce, request.operation.clone());
                it
            };
            let client = request.client;
            let answers = takes(&messages, start, |it, bytes| it.receive(bytes)?.result.ok());
            answers.into_iter().map(move |it| (client, it)).collect::<Vec<_>>()
        };
        system.requests.iter().flat_map(of_request).collect()
    })
}

pub(super) fn all(bounds: Bounds, liars: &[u32]) -> Vec<Property<Of>> {
    let mut all = vec![
        Property::always(names::AGREEMENT, |of: &Of, state| agree(&observed(of, state))),
        Property::always(names::NOTHING_IS_LOST, |of: &Of, state| keep(&observed(of, state))),
        Property::always(names::RIGHT_ANSWERS, answer_rightly),
        Property::always(names::SIGNED, execute_signed),
        Property::always(names::NO_ACCUSATION, |of: &Of, state| {
            { observed(of, state) }
                .iter()
                .all(|it| !takes_for_faulty(it, |it| !of.liars.contains(&it)))
        }),
        Property::sometimes(twins::ANSWER, |of: &Of, state| {
            answers(of, state).iter().any(|it| it.1 != WRONG)
        }),
    ];
    if liars == [0] && bounds.orders && bounds.lies > 1 {
        all.extend([
            Property::sometimes(twins::CONTRADICTION, |of: &Of, state| {
                let seen = observed(of, state);
                seen.iter().all(|it| !it.executed.is_empty())
                    && seen.iter().any(|it| takes_for_faulty(it, |it| it == 0))
            }),
            Property::sometimes(twins::UNSIGNED, |of: &Of, state: &State| {
                let told = &state.streams[0].said;
                let faulty = |it: &Arc<Observed>| takes_for_faulty(it, |it| it == 0);
                told.len() == 1
                    && is_unsigned(of, told[0])
                    && observed(of, state).iter().all(faulty)
            }),
        ]);
    }
    if bounds.views > 0 {
        all.push(Property::sometimes(twins::CHANGE, |of: &Of, state| {
            changes(&observed(of, state))
        }));
    }
    if bounds.views > 1 || (bounds.views == 1 && liars != [1]) {
        all.push(Property::sometimes(twins::WITHOUT_LIAR, |of: &Of, state: &State| {
            let silent = state.streams.iter().all(|it| it.said.is_empty());
            let in_later = |it: &Arc<Observed>| it.decided > 0 && !it.executed.is_empty();
            silent && observed(of, state).iter().all(in_later)
        }));
    }
    if bounds.restarts {
        all.push(Property::sometimes(twins::ADMITTED, |of: &Of, state| {
            observed(of, state).iter().any(|it| it.has_admitted)
        }));
    }
    all
}

fn observed(of: &Of, state: &State) -> Vec<Arc<Observed>> {
    of.see(state).into_iter().filter_map(|it| it.1.observed.clone()).collect()
}

fn takes_for_faulty(it: &Observed, is_one: impl Fn(u32) -> bool) -> bool {
    it.streams.iter().any(|(key, it)| is_one(key.0) && it.is_faulty)
}

fn is_unsigned(of: &Of, said: MessageId) -> bool {
    let signed = &of.system.requests;
    match statement(&of.messages.bytes(said)) {
        Some((_, Statement::Prepare { batch, .. })) => batch.iter().any(|it| !signed.contains(it)),
        _ => false,
    }
}

fn agree(seen: &[Arc<Observed>]) -> bool {
    let both = |one: &[Batch], other: &[Batch]| one.iter().zip(other).all(|(a, b)| a == b);
    seen.iter().all(|one| seen.iter().all(|other| both(&one.executed, &other.executed)))
}

/// Whether all that one has executed is in each later view that any of them knows.
fn keep(seen: &[Arc<Observed>]) -> bool {
    let begins_with = |log: &[Option<Batch>], places: &[Batch]| {
        let is_it = |(one, it): (&Option<Batch>, &Batch)| one.as_ref() == Some(it);
        log.len() >= places.len() && log.iter().zip(places).all(is_it)
    };
    let has = |executed: &Observed, knows: &Observed| {
        let mut later = knows.views.range(executed.decided + 1..);
        later.all(|(_, log)| begins_with(log, &executed.executed))
    };
    seen.iter().all(|one| seen.iter().all(|other| has(one, other)))
}

/// One has executed what the other has not, and a view begins with it.
fn changes(seen: &[Arc<Observed>]) -> bool {
    let is_alone = |it: &Arc<Observed>| it.executed.is_empty() && it.promised > 0;
    let begins = |it: &Arc<Observed>| it.views.range(1..).any(|it| !it.1.is_empty());
    seen.iter().any(is_alone) && seen.iter().any(begins)
}

fn execute_signed(of: &Of, state: &State) -> bool {
    let signed = &of.system.requests;
    let is_signed = |batch: &Batch| batch.iter().all(|it| signed.contains(it));
    observed(of, state).iter().all(|it| it.executed.iter().all(is_signed))
}

/// The counter after each request of a log, of which each counts once.
fn results(log: &[Batch]) -> BTreeMap<u32, Vec<u8>> {
    let (mut sum, mut results) = (0_u64, BTreeMap::new());
    for request in log.iter().flat_map(|it| it.iter()) {
        results.entry(request.client).or_insert_with(|| {
            sum += request.operation.as_slice().try_into().map_or(0, u64::from_be_bytes);
            sum.to_be_bytes().to_vec()
        });
    }
    results
}

fn answer_rightly(of: &Of, state: &State) -> bool {
    let results: Vec<_> = { observed(of, state) }.iter().map(|it| results(&it.executed)).collect();
    let is_right =
        |(client, answer): &(u32, Vec<u8>)| results.iter().any(|it| it.get(client) == Some(answer));
    answers(of, state).iter().all(is_right)
}
