// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The alphabet of a liar.

use smt_chain::sim::observe;
use smt_chain::{Configuration, Reference, Statement};
use smt_replica::Request;

use super::{Chain, statement};
use crate::{Cluster, Key, NODES, State};

/// A sum that no log gives.
pub(super) const WRONG: u64 = 99;

/// A statement that a liar has attested.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Lie {
    /// It orders a request at a place, with an answer.
    Order {
        /// The configuration.
        configuration: u64,
        /// The place.
        place: u64,
        /// The request; one above the last is one that no client has signed.
        request: usize,
        /// The counter after it.
        answer: u64,
    },
    /// It proves a place, with an answer.
    Proof {
        /// The configuration.
        configuration: u64,
        /// The place.
        place: u64,
        /// The counter after it.
        answer: u64,
        /// Whether it has the MAC of the proof before.
        is_linked: bool,
    },
    /// It freezes all before a configuration.
    Freeze {
        /// The configuration.
        configuration: u64,
    },
    /// It opens a configuration on FREEZEs of these nodes.
    Open {
        /// The configuration.
        configuration: u64,
        /// The nodes.
        freezes: Vec<u32>,
    },
    /// It enters a configuration as the given correct node did.
    Enter {
        /// The configuration.
        configuration: u64,
        /// The correct node whose words it repeats.
        like: u32,
    },
}

impl Chain {
    pub(super) fn lies(&self, cluster: &Cluster<Self>, state: &State, liar: u32) -> Vec<Lie> {
        let mut lies = Vec::new();
        for configuration in 0..=self.bounds.configurations {
            let leads = Configuration::of_number(configuration, NODES).order[0] == liar;
            for place in 1..=self.bounds.requests as u64 {
                lies.extend(self.of_place(configuration, place, leads));
            }
            if configuration == 0 {
                continue;
            }
            lies.push(Lie::Freeze { configuration });
            if leads {
                let freezes = freezes(cluster, state, configuration).into_iter();
                lies.extend(freezes.map(|freezes| Lie::Open { configuration, freezes }));
            }
            let like = entered(cluster, state, configuration);
            lies.extend(like.map(|like| Lie::Enter { configuration, like }));
        }
        lies
    }

    /// ORDERs of a head, of each request and of one that no client has signed; PROOFs, and one
    /// ORDER, of the others.
    fn of_place(&self, configuration: u64, place: u64, leads: bool) -> Vec<Lie> {
        let last = self.bounds.requests;
        let answers: Vec<u64> = self.sums().into_iter().chain([WRONG]).collect();
        let requests = if leads { 0..last + 1 } else { last - 1..last };
        let ordered = if leads { answers.clone() } else { vec![last as u64] };
        let order = |request| {
            let order =
                move |answer: &u64| Lie::Order { configuration, place, request, answer: *answer };
            ordered.iter().map(order).collect::<Vec<_>>()
        };
        let mut lies: Vec<Lie> = requests.flat_map(order).collect();
        if !leads {
            let proof = |answer: &u64, is_linked| Lie::Proof {
                configuration,
                place,
                answer: *answer,
                is_linked,
            };
            lies.extend(answers.iter().map(|it| proof(it, true)));
            lies.extend(answers.first().map(|it| proof(it, false)));
        }
        lies
    }

    /// The counter after any of the requests.
    fn sums(&self) -> Vec<u64> {
        let all = (1..=self.bounds.requests as u64).collect::<Vec<_>>();
        let sum = all.iter().sum();
        let mut sums = all;
        sums.push(sum);
        sums.dedup();
        sums
    }

    /// The request of a number; one that no client has signed beyond them.
    fn request(&self, number: usize) -> Option<Request> {
        let last = self.requests.last()?;
        let unsigned = || Request { operation: WRONG.to_be_bytes().to_vec(), ..last.clone() };
        Some(self.requests.get(number).cloned().unwrap_or_else(unsigned))
    }

    pub(super) fn meant(
        &self,
        cluster: &Cluster<Self>,
        state: &State,
        (key, lie): (Key, &Lie),
    ) -> Option<Statement> {
        let output = |answer: u64| observe::output(&answer.to_be_bytes());
        Some(match lie {
            Lie::Order { configuration, place, request, answer } => Statement::Order {
                configuration: *configuration,
                place: *place,
                request: self.request(*request)?,
                output: output(*answer),
            },
            Lie::Proof { configuration, place, answer, is_linked } => {
                let of = (key.0, *configuration, *place);
                let before = if *is_linked { before(cluster, state, of)? } else { [0; 32] };
                let (configuration, place) = (*configuration, *place);
                Statement::Proof { configuration, place, output: output(*answer), before }
            }
            Lie::Freeze { configuration } => Statement::Freeze { configuration: *configuration },
            Lie::Open { configuration, freezes } => {
                let freezes =
                    freezes.iter().map(|it| freeze(cluster, state, (*it, *configuration)));
                let freezes = freezes.collect::<Option<_>>()?;
                Statement::Open { configuration: *configuration, freezes }
            }
            Lie::Enter { configuration, like } => {
                let opening = opening(cluster, state, (*like, *configuration))?;
                Statement::Enter { configuration: *configuration, opening }
            }
        })
    }
}

/// The MAC of the proof of a place by the node before this one.
fn before(
    cluster: &Cluster<Chain>,
    state: &State,
    (node, configuration, place): (u32, u64, u64),
) -> Option<[u8; 32]> {
    let order = Configuration::of_number(configuration, NODES).order;
    let at = order.iter().position(|it| *it == node)?.checked_sub(1)?;
    let said = cluster.said(state, (order[at], 1));
    said.into_iter().find_map(|it| {
        let (attested, said) = statement(&cluster.messages.bytes(it))?;
        let proved = match said {
            Statement::Order { configuration, place, .. }
            | Statement::Proof { configuration, place, .. } => (configuration, place),
            _ => return None,
        };
        (proved == (configuration, place)).then_some(attested.attestation[1])
    })
}

/// All that an OPEN may name: one FREEZE, one twice, or two.
fn freezes(cluster: &Cluster<Chain>, state: &State, configuration: u64) -> Vec<Vec<u32>> {
    let has = |it: &u32| freeze(cluster, state, (*it, configuration)).is_some();
    let known: Vec<u32> = (0..NODES).filter(has).collect();
    let mut all: Vec<Vec<u32>> = known.iter().map(|it| vec![*it]).collect();
    for (at, one) in known.iter().enumerate() {
        all.extend(known[at..].iter().map(|other| vec![*one, *other]));
    }
    all
}

/// The FREEZE of a node for a configuration.
fn freeze(
    cluster: &Cluster<Chain>,
    state: &State,
    (node, configuration): (u32, u64),
) -> Option<Reference> {
    let said = cluster.said(state, (node, 1));
    { 1.. }.zip(said).find_map(|(counter, it)| {
        let (attested, said) = statement(&cluster.messages.bytes(it))?;
        let mac = attested.attestation[1];
        (said == Statement::Freeze { configuration }).then_some(Reference { node, counter, mac })
    })
}

/// A correct node that has entered a configuration.
fn entered(cluster: &Cluster<Chain>, state: &State, configuration: u64) -> Option<u32> {
    let has = |own: u32| opening(cluster, state, (own, configuration)).is_some();
    state.correct.iter().map(|it| it.0).find(|own| has(*own))
}

/// How a configuration begins, by the word of a correct node.
fn opening(cluster: &Cluster<Chain>, state: &State, (own, number): (u32, u64)) -> Option<[u8; 32]> {
    let said = cluster.said(state, (own, 1));
    said.into_iter().find_map(|it| match statement(&cluster.messages.bytes(it))?.1 {
        Statement::Enter { configuration, opening } if configuration == number => Some(opening),
        _ => None,
    })
}
