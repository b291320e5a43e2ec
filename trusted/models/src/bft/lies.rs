// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The alphabet of a liar.

use std::sync::Arc;

use smt_bft::{Reference, Statement};
use smt_replica::Request;

use super::{Bft, statement};
use crate::{Cluster, Key, NODES, State};

/// A statement that a liar has attested.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Lie {
    /// The first statement of a new epoch.
    Hello,
    /// It orders a request at a place of a view.
    Prepare {
        /// The view.
        view: u64,
        /// The place.
        place: u64,
        /// The request; one above the last is one that no client has signed.
        request: usize,
    },
    /// It commits to the log of a view up to a place.
    Commit {
        /// The view.
        view: u64,
        /// The place.
        place: u64,
    },
    /// It wants a view.
    ViewChange {
        /// The view.
        view: u64,
    },
    /// It opens a view on VIEW-CHANGEs, each of a device in an epoch.
    NewView {
        /// The view.
        view: u64,
        /// The devices and epochs.
        votes: Vec<(u32, u64)>,
    },
    /// It enters a view as the given correct replica did.
    Enter {
        /// The view.
        view: u64,
        /// The correct replica whose words it repeats.
        like: u32,
    },
}

impl Bft {
    pub(super) fn lies(&self, cluster: &Cluster<Self>, state: &State, key: Key) -> Vec<Lie> {
        let (liar, epoch) = key;
        if epoch > 1 && cluster.said(state, key).is_empty() {
            return vec![Lie::Hello];
        }
        // A device in a new epoch attests nothing more in the old one. Statements from before are
        // first heard now, and refer to nothing that is younger.
        let mut streams = state.streams.iter();
        let restarted = streams.any(|it| it.key.0 == liar && it.key.1 > 1 && !it.said.is_empty());
        let is_old = restarted && epoch == 1;
        let mut lies = Vec::new();
        for view in 0..=self.bounds.views {
            let leads = view % u64::from(NODES) == u64::from(liar);
            lies.extend(self.of_places(view, leads));
            if view == 0 {
                continue;
            }
            lies.push(Lie::ViewChange { view });
            if is_old {
                continue;
            }
            if leads {
                let votes = votes(cluster, state, view);
                lies.extend(votes.into_iter().map(|votes| Lie::NewView { view, votes }));
            }
            let like = entered(cluster, state, view).map(|like| Lie::Enter { view, like });
            lies.extend(like);
        }
        lies
    }

    /// PREPAREs and COMMITs: a leader's of each request, and of one that no client has signed.
    fn of_places(&self, view: u64, leads: bool) -> Vec<Lie> {
        let last = self.bounds.requests;
        let prepared = match (self.bounds.orders, leads) {
            (false, _) => 0..0,
            (true, true) => 0..last + 1,
            (true, false) => last - 1..last,
        };
        let places = 1..=last as u64;
        let prepares = places.clone().flat_map(|place| {
            prepared.clone().map(move |request| Lie::Prepare { view, place, request })
        });
        let commits = places.clone().map(|place| Lie::Commit { view, place });
        if leads { prepares.collect() } else { prepares.chain(commits).collect() }
    }

    /// The request of a number; one that no client has signed beyond them.
    fn request(&self, number: usize) -> Option<Request> {
        let last = self.requests.last()?;
        let unsigned = || Request { operation: 100_u64.to_be_bytes().to_vec(), ..last.clone() };
        Some(self.requests.get(number).cloned().unwrap_or_else(unsigned))
    }

    pub(super) fn meant(
        &self,
        cluster: &Cluster<Self>,
        state: &State,
        lie: &Lie,
    ) -> Option<Statement> {
        Some(match lie {
            Lie::Hello => Statement::Hello { nonce: [0; 16] },
            Lie::Prepare { view, place, request } => Statement::Prepare {
                view: *view,
                sequence: *place,
                batch: Arc::new(vec![self.request(*request)?]),
            },
            Lie::Commit { view, place } => Statement::Commit { view: *view, sequence: *place },
            Lie::ViewChange { view } => Statement::ViewChange { view: *view },
            Lie::NewView { view, votes } => {
                let votes = votes.iter().map(|it| view_change(cluster, state, (*it, *view)));
                Statement::NewView { view: *view, votes: votes.collect::<Option<_>>()? }
            }
            Lie::Enter { view, like } => {
                let opening = opening(cluster, state, (*like, *view))?;
                Statement::Enter { view: *view, opening }
            }
        })
    }
}

/// All that a NEW-VIEW may name: one VIEW-CHANGE, one twice, or two.
fn votes(cluster: &Cluster<Bft>, state: &State, view: u64) -> Vec<Vec<Key>> {
    let has = |it: &Key| view_change(cluster, state, (*it, view)).is_some();
    let known: Vec<Key> = cluster.keys(state).into_iter().filter(has).collect();
    let mut all: Vec<Vec<Key>> = known.iter().map(|it| vec![*it]).collect();
    for (at, one) in known.iter().enumerate() {
        all.extend(known[at..].iter().map(|other| vec![*one, *other]));
    }
    all
}

/// The VIEW-CHANGE of a stream for a view.
fn view_change(
    cluster: &Cluster<Bft>,
    state: &State,
    (key, view): (Key, u64),
) -> Option<Reference> {
    let said = cluster.said(state, key);
    { 1.. }.zip(said).find_map(|(counter, it)| {
        let (attested, said) = statement(&cluster.messages.bytes(it))?;
        let mac = attested.attestation[1];
        (said == Statement::ViewChange { view }).then_some(Reference {
            device: key.0,
            epoch: key.1,
            counter,
            mac,
        })
    })
}

/// A correct replica that has entered a view.
fn entered(cluster: &Cluster<Bft>, state: &State, view: u64) -> Option<u32> {
    let has = |own: u32| opening(cluster, state, (own, view)).is_some();
    state.correct.iter().map(|it| it.0).find(|own| has(*own))
}

/// How a view begins, by the word of a correct replica.
fn opening(cluster: &Cluster<Bft>, state: &State, (own, view): (u32, u64)) -> Option<[u8; 32]> {
    let said = cluster.said(state, (own, 1));
    said.into_iter().find_map(|it| match statement(&cluster.messages.bytes(it))?.1 {
        Statement::Enter { view: entered, opening } if entered == view => Some(opening),
        _ => None,
    })
}
