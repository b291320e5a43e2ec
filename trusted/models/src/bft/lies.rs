// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The alphabet of a liar.

use std::sync::Arc;

use smt_bft::{Statement, StreamCheckpoint};
use smt_replica::Request;

use super::Bft;
use super::found::{checkpoint, digest_of, entered, opening, view_change};
use super::shown::wrong_checkpoint;
use crate::{Cluster, Key, State};

/// A statement that a liar has attested, or a state that liars make up.
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
    /// It enters a view as nobody has opened it.
    EnterAlone {
        /// The view.
        view: u64,
    },
    /// It has executed the log up to a place.
    Checkpoint {
        /// The place.
        place: u64,
        /// Whether it states what a correct replica states, or a sum that no log gives.
        is_true: bool,
    },
    /// A stream of a correct replica stands at its next checkpoint where nobody has it.
    Streams {
        /// The replica.
        of: u32,
    },
    /// A state whose view begins as a correct replica has it, with ENTERs that liars attest now.
    StateOfEnters {
        /// The view.
        view: u64,
        /// The correct replica that has entered it.
        like: u32,
    },
    /// A state whose view begins as liars alone say.
    StateOfOpening {
        /// The view.
        view: u64,
    },
    /// A state whose checkpoint liars alone state.
    StateOfCheckpoint {
        /// The place.
        place: u64,
    },
    /// The state that a correct replica gives, with another snapshot.
    StateOfSnapshot {
        /// The replica.
        of: u32,
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
        if self.bounds.states {
            lies.extend(self.of_checkpoints(cluster, state));
        }
        for view in self.bounds.first_view..=self.bounds.views {
            let leads = self.group.leader(view) == liar;
            lies.extend(self.of_places(view, leads));
            if view == 0 {
                continue;
            }
            lies.push(Lie::ViewChange { view });
            if is_old {
                continue;
            }
            if leads {
                let votes = self.votes(cluster, state, view);
                lies.extend(votes.into_iter().map(|votes| Lie::NewView { view, votes }));
            }
            let like = entered(cluster, state, view).map(|like| Lie::Enter { view, like });
            lies.extend(like);
        }
        lies
    }

    /// CHECKPOINTs, and places of streams.
    fn of_checkpoints(&self, cluster: &Cluster<Self>, state: &State) -> Vec<Lie> {
        let mut lies = Vec::new();
        for place in 1..=self.bounds.requests as u64 {
            let is_true = checkpoint(cluster, state, place).map(|_| true);
            let all = is_true.into_iter().chain([false]);
            lies.extend(all.map(|is_true| Lie::Checkpoint { place, is_true }));
        }
        lies.extend(state.correct.iter().map(|it| Lie::Streams { of: it.0 }));
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
    pub(super) fn request(&self, number: usize) -> Option<Request> {
        let signed = self.requests.get(..self.bounds.requests)?;
        let last = signed.last()?;
        let unsigned = || Request { operation: 100_u64.to_be_bytes().to_vec(), ..last.clone() };
        Some(signed.get(number).cloned().unwrap_or_else(unsigned))
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
            Lie::EnterAlone { view } => {
                let (opening, _) = self.alone(*view)?;
                Statement::Enter { view: *view, opening: digest_of(&opening) }
            }
            Lie::Checkpoint { place, is_true: true } => {
                Statement::Checkpoint(checkpoint(cluster, state, *place)?)
            }
            Lie::Checkpoint { place, is_true: false } => {
                Statement::Checkpoint(wrong_checkpoint(*place))
            }
            Lie::Streams { of } => {
                let interval = self.group.stream_interval();
                let said = { cluster.said(state, (*of, 1)) }.len() as u64;
                let counter = (said / interval + 1) * interval;
                let state = [7; 32];
                Statement::Streams(vec![StreamCheckpoint { device: *of, epoch: 1, counter, state }])
            }
            // They are no statements.
            Lie::StateOfEnters { .. }
            | Lie::StateOfOpening { .. }
            | Lie::StateOfCheckpoint { .. }
            | Lie::StateOfSnapshot { .. } => return None,
        })
    }

    /// All that a NEW-VIEW may name: one VIEW-CHANGE, one of them f + 1 times, or f + 1 of them.
    fn votes(&self, cluster: &Cluster<Self>, state: &State, view: u64) -> Vec<Vec<Key>> {
        let has = |it: &Key| view_change(cluster, state, (*it, view)).is_some();
        let known: Vec<Key> = cluster.keys(state).into_iter().filter(has).collect();
        let quorum = self.group.quorum();
        let mut all: Vec<Vec<Key>> = known.iter().map(|it| vec![*it]).collect();
        all.extend(known.iter().map(|it| vec![*it; quorum]));
        let sets = (0_u32..1 << known.len()).filter(|it| it.count_ones() as usize == quorum);
        let chosen = |set: u32| (0..).zip(&known).filter(move |it| set >> it.0 & 1 == 1);
        all.extend(sets.map(|set| chosen(set).map(|it| *it.1).collect()));
        all
    }
}
