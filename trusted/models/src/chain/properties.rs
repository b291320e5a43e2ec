// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The properties of the model, and their twins.

use std::collections::BTreeMap;
use std::sync::Arc;

use smt_chain::sim::observe;
use smt_chain::{Message, Statement};
use smt_replica::{Reply, Request};
use stateright::Property;

use super::{Bounds, Chain, Observed, closing, lies, statement};
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
    /// When the network is perfect and liars are silent, all correct nodes come to the same and
    /// answer a request, whichever others crash as far as f allows it.
    pub const CLOSES: &str = "correct_nodes_answer_in_the_end";
    /// A node that was killed is what it was, as its log gives it back.
    pub const REPLAYS: &str = "a_log_gives_back_what_was_killed";
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
    /// Tests all of them where entries are left out.
    pub const LEFT_OUT: &str = "an entry is left out of the log";
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
        replies.extend(answers::lies(
            (3, &of.liars),
            &system.requests,
            &replies,
            observe::host_key,
        ));
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
        Property::always(names::REPLAYS, |of: &Of, state| {
            !observed(of, state).iter().any(|it| it.differs)
        }),
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
    ];
    if bounds.closings > 0 {
        all.push(Property::always(names::CLOSES, closing::holds));
    }
    if bounds.leaves_out {
        all.push(Property::sometimes(twins::LEFT_OUT, |of: &Of, state| {
            observed(of, state).iter().any(|it| it.metrics.left_out > 0)
        }));
    }
    if bounds.kills {
        return all;
    }
    all.push(Property::sometimes(twins::FOUND, |of: &Of, state: &State| {
        let said = state.streams.iter().map(|it| it.said.len()).sum::<usize>();
        said == 1 && observed(of, state).iter().all(|it| faulty(it).next().is_some())
    }));
    if bounds.lies > 1 {
        all.push(Property::sometimes(twins::CONTRADICTION, |of: &Of, state| {
            let seen = observed(of, state);
            seen.iter().all(|it| !it.answered.is_empty())
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
            let in_later = |it: &Arc<Observed>| it.node.committed_in > 0 && !it.answered.is_empty();
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
    (0..).zip(&it.node.streams).filter(|it| it.1.is_faulty).map(|it| it.0)
}

fn takes_right_proofs(of: &Of, state: &State, it: &Observed) -> bool {
    let wrong = observe::output(&lies::WRONG.to_be_bytes());
    state.streams.iter().all(|stream| {
        let taken = it.node.streams.get(stream.key.0 as usize).map_or(0, |it| it.taken);
        let taken = stream.said.iter().take(usize::try_from(taken).unwrap_or(usize::MAX));
        let mut taken = taken.filter_map(|it| statement(&of.messages.bytes(*it)));
        taken.all(|(_, said)| match said {
            Statement::Order { output, .. } => output != wrong,
            Statement::Proof { output, before, configuration, .. } => {
                let has_gone = it.node.streams.iter().any(|it| it.entered > configuration);
                output != wrong && (before != [0; 32] || has_gone)
            }
            _ => true,
        })
    })
}

fn agree(seen: &[Arc<Observed>]) -> bool {
    let mut all = BTreeMap::new();
    let mut answered = seen.iter().flat_map(|it| &it.answered);
    answered.all(|(place, it)| all.entry(*place).or_insert(it) == &it)
}

/// Whether all that one has committed is in each later configuration that any of them knows, as far
/// as it has left nothing out.
fn keep(seen: &[Arc<Observed>]) -> bool {
    let has_all = |log: &[(Request, Vec<u8>)], committed: &Observed| {
        let places = (1..).zip(log.iter().map(|it| (it.0.digest(), it.1.clone())));
        let log: BTreeMap<u64, _> = places.collect();
        committed.answered.iter().all(|it| log.get(it.0) == Some(it.1))
    };
    let has = |committed: &Observed, knows: &Observed| {
        let mut later = knows.node.beginnings.range(committed.node.committed_in + 1..);
        knows.metrics.left_out > 0 || later.all(|(_, log)| has_all(log, committed))
    };
    seen.iter().all(|one| seen.iter().all(|other| has(one, other)))
}

/// One has committed what the other has not, and a configuration begins with it.
fn changes(seen: &[Arc<Observed>]) -> bool {
    let is_alone = |it: &Arc<Observed>| it.answered.is_empty() && it.node.promised > 0;
    let begins = |it: &Arc<Observed>| it.node.beginnings.range(1..).any(|it| !it.1.is_empty());
    seen.iter().any(is_alone) && seen.iter().any(begins)
}

fn commit_signed(of: &Of, state: &State) -> bool {
    let signed: Vec<_> = of.system.requests.iter().map(Request::digest).collect();
    let are_signed = |it: &Arc<Observed>| it.answered.values().all(|it| signed.contains(&it.0));
    observed(of, state).iter().all(are_signed)
}

/// The counter after each request of the one log that all nodes commit, by client.
fn results(of: &Of, seen: &[Arc<Observed>]) -> BTreeMap<u32, Vec<u8>> {
    let answered = seen.iter().flat_map(|it| &it.answered);
    let log: BTreeMap<u64, _> = answered.map(|it| (*it.0, it.1)).collect();
    let (mut sum, mut results) = (0_u64, BTreeMap::new());
    for (digest, _) in log.into_values() {
        let request = of.system.requests.iter().find(|it| it.digest() == *digest);
        if let Some(request) = request {
            sum += request.operation.as_slice().try_into().map_or(0, u64::from_be_bytes);
            results.entry(request.client).or_insert_with(|| sum.to_be_bytes().to_vec());
        }
    }
    results
}

fn answer_rightly(of: &Of, state: &State) -> bool {
    let results = results(of, &observed(of, state));
    let is_right = |(client, answer): &(u32, Vec<u8>)| results.get(client) == Some(answer);
    answers(of, state).iter().all(is_right)
}
