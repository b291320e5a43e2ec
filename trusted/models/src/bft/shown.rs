// SPDX-License-Identifier: Apache-2.0 OR MIT
//! States that liars make up, and show to one replica.

use std::sync::Arc;

use smt_bft::{Batch, Checkpoint, Message, Opening, State as Given, Statement};
use smt_replica::{Attested, ClientTable, Digest, digest, encode};

use super::found::{self, beginning, digest_of, enters, extend, statements};
use super::{Bft, Lie};
use crate::{Cluster, State};

/// A sum that no log gives.
const WRONG: u64 = 99;

/// Service and table of clients, as nobody has them.
fn wrong_snapshot() -> Vec<u8> {
    encode(&(WRONG.to_be_bytes().to_vec(), ClientTable::<Vec<u8>>::default()))
}

/// A checkpoint of that.
pub(super) fn wrong_checkpoint(place: u64) -> Checkpoint {
    let state = digest("bft", "state", &[&wrong_snapshot()]);
    Checkpoint { sequence: place, chain: [9; 32], state }
}

impl Bft {
    /// All states that liars may make up now.
    pub(super) fn all_shown(&self, cluster: &Cluster<Self>, state: &State) -> Vec<Lie> {
        if cluster.liars.is_empty() {
            return Vec::new();
        }
        let mut shown = Vec::new();
        for view in self.bounds.first_view.max(1)..=self.bounds.views {
            let like = state.correct.iter().map(|it| it.0);
            let like = like.filter(|it| found::opening(cluster, state, (*it, view)).is_some());
            shown.extend(like.map(|like| Lie::StateOfEnters { view, like }));
            shown.push(Lie::StateOfOpening { view });
        }
        shown.extend(
            (1..=self.bounds.requests as u64).map(|it| Lie::StateOfCheckpoint { place: it }),
        );
        shown.extend(state.correct.iter().map(|it| Lie::StateOfSnapshot { of: it.0 }));
        shown
    }

    /// A state that liars make up.
    pub(super) fn made_up(
        &self,
        cluster: &Cluster<Self>,
        state: &mut State,
        lie: &Lie,
    ) -> Option<Given> {
        match lie {
            Lie::StateOfEnters { view, like } => {
                let (opening, log) = beginning(cluster, state, (*like, *view))?;
                self.all_say(cluster, state, &Lie::Enter { view: *view, like: *like })?;
                Some(entered(cluster, state, opening, log))
            }
            Lie::StateOfOpening { view } => {
                self.all_say(cluster, state, &Lie::EnterAlone { view: *view })?;
                let (opening, log) = self.alone(*view)?;
                Some(entered(cluster, state, opening, log))
            }
            Lie::StateOfCheckpoint { place } => {
                let said = Statement::Checkpoint(wrong_checkpoint(*place));
                self.all_say(cluster, state, &Lie::Checkpoint { place: *place, is_true: false })?;
                let of_liars = cluster.liars.iter().filter_map(|it| {
                    let all = statements(cluster, state, (*it, 1));
                    all.into_iter().find(|it| it.2 == said).map(|it| it.1)
                });
                let proof: Vec<Attested> = of_liars.collect();
                // Each twice: only distinct replicas prove it.
                let proof = proof.iter().chain(&proof).take(self.group.quorum()).cloned().collect();
                let snapshot = wrong_snapshot();
                Some(Given { proof, snapshot, ..of_first_view(&self.group.epochs) })
            }
            Lie::StateOfSnapshot { of } => {
                let run = state.correct.iter().find(|it| it.0 == *of)?.1;
                let given = *cluster.runs.see(run).given.last()?;
                let Some(Message::State(mut it)) = Message::decode(&cluster.messages.bytes(given))
                else {
                    return None;
                };
                it.snapshot = wrong_snapshot();
                (!it.proof.is_empty()).then_some(*it)
            }
            _ => None,
        }
    }

    /// All liars attest something, if they have not, which nobody hears.
    fn all_say(&self, cluster: &Cluster<Self>, state: &mut State, lie: &Lie) -> Option<()> {
        for liar in &cluster.liars {
            let key = (*liar, state.streams.iter().filter(|it| it.key.0 == *liar).count() as u64);
            let said = self.meant(cluster, state, lie)?;
            if !statements(cluster, state, key).iter().any(|it| it.2 == said) {
                cluster.say(state, key, lie)?;
            }
        }
        Some(())
    }

    /// A view that begins with a request that no client has signed.
    pub(super) fn alone(&self, view: u64) -> Option<(Opening, Vec<Batch>)> {
        let log: Vec<Batch> = vec![Arc::new(vec![self.request(self.bounds.requests)?])];
        let chain: Digest = log.iter().fold([0; 32], |chain, it| extend(&chain, it));
        let (epochs, votes) = (self.group.epochs.clone(), Vec::new());
        Some((Opening { view, epochs, start: 1, chain, votes }, log))
    }
}

/// A state without a checkpoint, with all ENTERs of its view.
fn entered(cluster: &Cluster<Bft>, state: &State, opening: Opening, log: Vec<Batch>) -> Given {
    let enter = Statement::Enter { view: opening.view, opening: digest_of(&opening) };
    let enters = enters(cluster, state, &enter);
    Given { log, enters, ..of_view(opening) }
}

fn of_first_view(epochs: &[u64]) -> Given {
    let (epochs, votes) = (epochs.to_vec(), Vec::new());
    of_view(Opening { view: 0, epochs, start: 0, chain: [0; 32], votes })
}

fn of_view(opening: Opening) -> Given {
    let (proof, checkpoints, snapshot) = <_>::default();
    let (log, enters, streams) = <_>::default();
    Given { proof, checkpoints, snapshot, log, opening, enters, streams }
}
