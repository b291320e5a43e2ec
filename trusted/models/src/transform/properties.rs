// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The properties of the model, and their twins.

use std::collections::BTreeMap;
use std::sync::Arc;

use smt_transform::counter::{Counter, Entry};
use smt_transform::sim::observe::{self, Observed};
use smt_transform::{Caller, Message, Reply, Request};
use stateright::Property;

use super::lies::{Run, sent};
use super::{Bounds, Transform, steps};
use crate::answers::{Taken, WRONG, lies, takes};
use crate::{Cluster, MessageId, State};

/// The names of the properties.
pub mod names {
    /// No two runs of the protocol that correct nodes follow execute different requests at one
    /// place, the liar's run among them.
    pub const AGREEMENT: &str = "agreement";
    /// All that such a run has executed is in the log of each run that is in a later view.
    pub const NOTHING_IS_LOST: &str = "no_executed_request_is_lost";
    /// A client takes an answer only if a run has executed its request with it, and each once.
    pub const RIGHT_ANSWERS: &str = "a_client_takes_right_answers";
    /// Correct nodes execute what clients have signed.
    pub const SIGNED: &str = "only_signed_requests_are_executed";
    /// A correct node takes no step of a liar but those that the protocol makes.
    pub const PROTOCOL: &str = "steps_that_are_taken_are_the_protocol_s";
    /// No correct node takes another one for faulty.
    pub const NO_ACCUSATION: &str = "no_correct_node_is_taken_for_faulty";
}

/// The names of the twins: each says that a situation is reached that tests a property.
pub mod twins {
    /// Tests [`super::names::AGREEMENT`].
    pub const BOTH: &str = "both correct nodes execute, and follow the liar in it";
    /// Tests [`super::names::NOTHING_IS_LOST`].
    pub const CHANGE: &str = "a view begins with what one node alone had executed";
    /// Tests [`super::names::RIGHT_ANSWERS`].
    pub const ANSWER: &str = "a client takes an answer beside a wrong one";
    /// Tests [`super::names::PROTOCOL`] and [`super::names::SIGNED`].
    pub const FOUND: &str = "a liar is found out by its first step";
    /// Tests [`super::names::NO_ACCUSATION`].
    pub const WAITS: &str = "a step waits for the one that has sent its message";
}

type Of = Cluster<Transform>;

/// The answers that clients can take in a state.
fn answers(of: &Of, state: &State) -> Taken {
    let system = &of.system;
    let told = { of.see(state) }.iter().flat_map(|it| it.1.others.clone()).collect();
    system.answers.after(told, |told| {
        let endorsement = |it: &MessageId| match Message::decode(&of.messages.bytes(*it)) {
            Some(Message::Endorsement(it)) => Some(it),
            _ => None,
        };
        let mut all: Vec<Reply> = told.iter().filter_map(endorsement).collect();
        let nodes = (system.group.size(), &of.liars[..]);
        all.extend(lies(nodes, &system.requests, &all, observe::host_key));
        let encoded = all.into_iter().map(|it| Message::Endorsement(it).encode());
        let messages: Vec<Vec<u8>> = encoded.collect();
        let of_request = |request: &Request| {
            let start = || {
                let mut it = observe::client(&system.group, request.client);
                it.submit(request.operation.clone());
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
        Property::always(names::AGREEMENT, |of: &Of, state| agree(&runs(of, state))),
        Property::always(names::NOTHING_IS_LOST, |of: &Of, state| keep(&runs(of, state))),
        Property::always(names::RIGHT_ANSWERS, answer_rightly),
        Property::always(names::SIGNED, execute_signed),
        Property::always(names::PROTOCOL, takes_the_protocol),
        Property::always(names::NO_ACCUSATION, |of: &Of, state| {
            let is_accused = |it: &Arc<Observed>| faulty(it).any(|it| !of.liars.contains(&it));
            !observed(of, state).iter().any(is_accused)
        }),
        Property::sometimes(twins::ANSWER, |of: &Of, state| {
            answers(of, state).iter().any(|it| it.1 != WRONG)
        }),
        Property::sometimes(twins::FOUND, |of: &Of, state: &State| {
            let said = state.streams.iter().map(|it| it.said.len()).sum::<usize>();
            said == 1 && observed(of, state).iter().all(|it| faulty(it).next().is_some())
        }),
        Property::sometimes(twins::WAITS, |of: &Of, state| {
            let mut followed = observed(of, state).into_iter().flat_map(|it| it.followed.clone());
            followed.any(|it| !it.is_faulty && it.taken < it.held)
        }),
    ];
    if bounds.lies > 1 {
        all.push(Property::sometimes(twins::BOTH, |of: &Of, state| {
            let executed = |it: &Arc<Observed>| {
                let liar = &it.followed[of.liars[0] as usize];
                let correct = (0..).zip(&it.followed).filter(|it| !of.liars.contains(&it.0));
                liar.taken > 0 && { correct }.all(|it| !it.1.machine.executed().is_empty())
            };
            observed(of, state).iter().all(executed)
        }));
    }
    // With one of both leaders a liar it takes more of its steps.
    if bounds.views > 0 && liars == [2] {
        all.push(Property::sometimes(twins::CHANGE, |of: &Of, state| changes(&runs(of, state))));
    }
    all
}

fn observed(of: &Of, state: &State) -> Vec<Arc<Observed>> {
    of.see(state).into_iter().filter_map(|it| it.1.observed.clone()).collect()
}

/// The runs of all nodes, as correct nodes follow them.
fn runs(of: &Of, state: &State) -> Vec<Counter> {
    let followed = observed(of, state).into_iter().flat_map(|it| it.followed.clone());
    followed.filter(|it| !it.is_faulty).map(|it| it.machine).collect()
}

/// The nodes that one takes for faulty.
fn faulty(it: &Observed) -> impl Iterator<Item = u32> {
    (0..).zip(&it.followed).filter(|it| it.1.is_faulty).map(|it| it.0)
}

fn agree(runs: &[Counter]) -> bool {
    let both = |one: &Counter, other: &Counter| {
        one.executed().iter().zip(other.executed()).all(|(one, other)| one == other)
    };
    runs.iter().all(|one| runs.iter().all(|other| both(one, other)))
}

/// Whether all that a run has executed is in each run of a later view.
fn keep(runs: &[Counter]) -> bool {
    let has = |one: &Counter, other: &Counter| {
        other.latest() <= one.latest() || other.log().starts_with(one.executed())
    };
    runs.iter().all(|one| runs.iter().all(|other| has(one, other)))
}

/// One run has executed in the first view, and another has begun a view with it, in which it has
/// not executed it yet.
fn changes(runs: &[Counter]) -> bool {
    let is_first = |it: &&Counter| it.latest() == 0 && !it.executed().is_empty();
    let begins =
        |it: &&Counter| it.latest() > 0 && it.executed().is_empty() && !it.log().is_empty();
    runs.iter().any(|it| is_first(&it)) && runs.iter().any(|it| begins(&it))
}

fn execute_signed(of: &Of, state: &State) -> bool {
    let is_signed = |it: &Entry| {
        let mut signed = of.system.requests.iter();
        signed.any(|request| {
            let added = request.operation.as_slice().try_into().map_or(0, u64::from_be_bytes);
            (Caller::of(request), request.number, added) == *it
        })
    };
    runs(of, state).iter().all(|it| it.executed().iter().all(is_signed))
}

/// The counter after each request of a log, of which each counts once.
fn results(log: &[Entry]) -> BTreeMap<u32, Vec<u8>> {
    let (mut sum, mut results) = (0_u64, BTreeMap::new());
    for (caller, _, added) in log {
        results.entry(caller.client).or_insert_with(|| {
            sum += added;
            sum.to_be_bytes().to_vec()
        });
    }
    results
}

fn answer_rightly(of: &Of, state: &State) -> bool {
    let results: Vec<_> = { runs(of, state) }.iter().map(|it| results(it.executed())).collect();
    let is_right =
        |(client, answer): &(u32, Vec<u8>)| results.iter().any(|it| it.get(client) == Some(answer));
    answers(of, state).iter().all(is_right)
}

/// Whether each step of a liar that a correct node has taken is one that the protocol makes, by
/// another run of it.
fn takes_the_protocol(of: &Of, state: &State) -> bool {
    of.liars.iter().all(|liar| {
        let (steps, sent) = (steps(of, state, *liar), sent(of, state, *liar));
        let mut run = Run::after(*liar, &[]);
        let made = steps.iter().take_while(|it| run.makes(it, &sent)).count() as u64;
        observed(of, state).iter().all(|it| it.followed[*liar as usize].taken <= made)
    })
}
