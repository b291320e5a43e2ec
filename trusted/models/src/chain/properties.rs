// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The properties of the model, and their twins.

use std::collections::BTreeMap;
use std::sync::Arc;

use smt_chain::sim::observe::{self, Observed};
use smt_chain::{Message, Statement};
use smt_replica::{Reply, Request};
use stateright::Property;

use super::{Bounds, Chain, lies, statement};
use crate::answers::{self, Taken, WRONG, takes};
use crate::{Cluster, MessageId, State};

/// The names of the properties.
pub mod names {
    /// No two correct nodes commit different requests or answers at one place.
    pub const AGREEMENT: &str = "agreement";
    /// All that a correct node has committed in a configuration is in the log of each later one
    /// that a correct node knows to be opened.
    pub const NOTHING_IS_LOST: &str = "no_committed_request_is_lost";
    /// A client takes an answer only if a correct node has committed its request with it, and each
    /// request once.
    pub const RIGHT_ANSWERS: &str = "a_client_takes_right_answers";
    /// Correct nodes commit what clients have signed.
    pub const SIGNED: &str = "only_signed_requests_are_committed";
    /// No correct node takes another one for a liar.
    pub const NO_ACCUSATION: &str = "no_correct_node_is_taken_for_a_liar";
    /// No correct node takes a statement with an answer that no log gives, or with another MAC than
    /// that of the proof before. Where the node before has gone on to a later configuration without
    /// a proof, there is none to compare with.
    pub const PROOFS: &str = "proofs_have_the_right_output_and_the_mac_before";
}

/// The names of the twins: each says that a situation is reached that tests a property.
pub mod twins {
    /// Tests [`super::names::AGREEMENT`].
    pub const CONTRADICTION: &str = "a liar is found out after both have committed";
    /// Tests [`super::names::NOTHING_IS_LOST`].
    pub const CHANGE: &str = "a configuration is opened after one node alone has committed";
    /// Tests [`super::names::RIGHT_ANSWERS`].
    pub const ANSWER: &str = "a client takes an answer beside a wrong one";
    /// Tests [`super::names::SIGNED`] and [`super::names::PROOFS`].
    pub const FOUND: &str = "a liar is found out by its first statement";
    /// Tests [`super::names::NO_ACCUSATION`].
    pub const WITHOUT_LIAR: &str = "correct nodes open a configuration, and commit in it";
}

type Of = Cluster<Chain>;

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
        replies.extend(answers::lies(&of.liars, &system.requests, &replies, observe::host_key));
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
        Property::always(names::SIGNED, commit_signed),
        Property::always(names::PROOFS, |of: &Of, state| {
            observed(of, state).iter().all(|it| takes_right_proofs(of, state, it))
        }),
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
    ];
    if bounds.lies > 1 {
        all.push(Property::sometimes(twins::CONTRADICTION, |of: &Of, state| {
            let seen = observed(of, state);
            seen.iter().all(|it| !it.committed.is_empty())
                && seen.iter().any(|it| faulty(it).next().is_some())
        }));
    }
    // A head that lies is the head of the next configuration too. It opens that one behind its own
    // FREEZE, so the situation takes a third lie.
    let is_within = bounds.lies > 2 || liars != [0];
    if bounds.configurations > 0 && is_within {
        all.push(Property::sometimes(twins::CHANGE, |of: &Of, state| {
            changes(&observed(of, state))
        }));
    }
    let heads = 0..=bounds.configurations;
    let mut heads = heads.map(|it| smt_chain::Configuration::of_number(it, 3).order);
    // The first f + 1 commit.
    if heads.any(|order| !order[..2].iter().any(|it| liars.contains(it)) && liars != [2]) {
        all.push(Property::sometimes(twins::WITHOUT_LIAR, |of: &Of, state: &State| {
            let is_silent = state.streams.iter().all(|it| it.said.is_empty());
            let in_later = |it: &Arc<Observed>| it.committed_in > 0 && !it.committed.is_empty();
            is_silent && observed(of, state).iter().all(in_later)
        }));
    }
    all
}

fn observed(of: &Of, state: &State) -> Vec<Arc<Observed>> {
    of.see(state).into_iter().filter_map(|it| it.1.observed.clone()).collect()
}

/// The nodes that one takes for liars.
fn faulty(it: &Observed) -> impl Iterator<Item = u32> {
    (0..).zip(&it.streams).filter(|it| it.1.is_faulty).map(|it| it.0)
}

fn takes_right_proofs(of: &Of, state: &State, it: &Observed) -> bool {
    let wrong = observe::output(&lies::WRONG.to_be_bytes());
    state.streams.iter().all(|stream| {
        let taken = it.streams.get(stream.key.0 as usize).map_or(0, |it| it.taken);
        let taken = stream.said.iter().take(usize::try_from(taken).unwrap_or(usize::MAX));
        let mut taken = taken.filter_map(|it| statement(&of.messages.bytes(*it)));
        taken.all(|(_, said)| match said {
            Statement::Order { output, .. } => output != wrong,
            Statement::Proof { output, before, configuration, .. } => {
                let has_gone = it.streams.iter().any(|it| it.entered > configuration);
                output != wrong && (before != [0; 32] || has_gone)
            }
            _ => true,
        })
    })
}

fn agree(seen: &[Arc<Observed>]) -> bool {
    let both = |one: &Observed, other: &Observed| {
        one.committed.iter().zip(&other.committed).all(|(one, other)| one == other)
    };
    seen.iter().all(|one| seen.iter().all(|other| both(one, other)))
}

/// Whether all that one has committed is in each later configuration that any of them knows.
fn keep(seen: &[Arc<Observed>]) -> bool {
    let has = |committed: &Observed, knows: &Observed| {
        let mut later = knows.beginnings.range(committed.committed_in + 1..);
        later.all(|(_, log)| log.starts_with(&committed.committed))
    };
    seen.iter().all(|one| seen.iter().all(|other| has(one, other)))
}

/// One has committed what the other has not, and a configuration begins with it.
fn changes(seen: &[Arc<Observed>]) -> bool {
    let is_alone = |it: &Arc<Observed>| it.committed.is_empty() && it.promised > 0;
    let begins = |it: &Arc<Observed>| it.beginnings.range(1..).any(|it| !it.1.is_empty());
    seen.iter().any(is_alone) && seen.iter().any(begins)
}

fn commit_signed(of: &Of, state: &State) -> bool {
    let signed = &of.system.requests;
    let are_signed = |it: &Arc<Observed>| it.committed.iter().all(|it| signed.contains(&it.0));
    observed(of, state).iter().all(are_signed)
}

/// The counter after each request of a log, of which each counts once.
fn results(log: &[(Request, Vec<u8>)]) -> BTreeMap<u32, Vec<u8>> {
    let (mut sum, mut results) = (0_u64, BTreeMap::new());
    for (request, _) in log {
        results.entry(request.client).or_insert_with(|| {
            sum += request.operation.as_slice().try_into().map_or(0, u64::from_be_bytes);
            sum.to_be_bytes().to_vec()
        });
    }
    results
}

fn answer_rightly(of: &Of, state: &State) -> bool {
    let results: Vec<_> = { observed(of, state) }.iter().map(|it| results(&it.committed)).collect();
    let is_right =
        |(client, answer): &(u32, Vec<u8>)| results.iter().any(|it| it.get(client) == Some(answer));
    answers(of, state).iter().all(is_right)
}
