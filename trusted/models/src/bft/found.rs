// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Statements that liars find in what was said.

use smt_attestation::Kind;
use smt_bft::{Batch, Checkpoint, Message, Opening, Reference, Statement};
use smt_replica::{Attested, Digest, Request, digest, encode};

use super::Bft;
use crate::{Cluster, Key, State};

/// The statement of attested bytes in a message. A vote of a device is none.
pub(super) fn statement(message: &[u8]) -> Option<(Attested, Statement)> {
    let Message::Statement(it) = Message::decode(message)? else {
        return None;
    };
    let is_vote = it.attestation().claim()?.kind == Kind::Vote;
    let said = postcard::from_bytes(&it.body).ok().filter(|_| !is_vote)?;
    Some((it, said))
}

/// The statements of a stream, each with its counter.
pub(super) fn statements(
    cluster: &Cluster<Bft>,
    state: &State,
    key: Key,
) -> Vec<(u64, Attested, Statement)> {
    let said = { 1.. }.zip(cluster.said(state, key));
    let found = said.filter_map(|(counter, it)| {
        let (attested, said) = statement(&cluster.messages.bytes(it))?;
        Some((counter, attested, said))
    });
    found.collect()
}

/// The VIEW-CHANGE of a stream for a view.
pub(super) fn view_change(
    cluster: &Cluster<Bft>,
    state: &State,
    (key, view): (Key, u64),
) -> Option<Reference> {
    let said = statements(cluster, state, key).into_iter();
    let mut said = said.filter(|it| it.2 == Statement::ViewChange { view });
    let (counter, attested, _) = said.next()?;
    let mac = attested.attestation[1];
    Some(Reference { device: key.0, epoch: key.1, counter, mac })
}

/// A correct replica that has entered a view.
pub(super) fn entered(cluster: &Cluster<Bft>, state: &State, view: u64) -> Option<u32> {
    let has = |own: u32| opening(cluster, state, (own, view)).is_some();
    state.correct.iter().map(|it| it.0).find(|own| has(*own))
}

/// How a view begins, by the word of a correct replica.
pub(super) fn opening(
    cluster: &Cluster<Bft>,
    state: &State,
    (own, view): (u32, u64),
) -> Option<Digest> {
    let keys = cluster.keys(state).into_iter().filter(|it| it.0 == own);
    let mut said = keys.flat_map(|it| statements(cluster, state, it));
    said.find_map(|(_, _, said)| match said {
        Statement::Enter { view: entered, opening } if entered == view => Some(opening),
        _ => None,
    })
}

/// The attested ENTERs of one view, of each device the first.
pub(super) fn enters(cluster: &Cluster<Bft>, state: &State, enter: &Statement) -> Vec<Attested> {
    let first = |key| {
        let said = statements(cluster, state, key);
        said.into_iter().find(|it| it.2 == *enter).map(|it| it.1)
    };
    cluster.keys(state).into_iter().filter_map(first).collect()
}

/// The CHECKPOINT for a place of a correct replica.
pub(super) fn checkpoint(cluster: &Cluster<Bft>, state: &State, place: u64) -> Option<Checkpoint> {
    let keys = cluster.keys(state).into_iter().filter(|it| !cluster.liars.contains(&it.0));
    let mut said = keys.flat_map(|it| statements(cluster, state, it));
    said.find_map(|(_, _, said)| match said {
        Statement::Checkpoint(it) if it.sequence == place => Some(it),
        _ => None,
    })
}

/// The hash of a log that is one batch longer.
pub(super) fn extend(chain: &Digest, batch: &Batch) -> Digest {
    let digests: Vec<Digest> = batch.iter().map(Request::digest).collect();
    digest("bft", "chain", &[chain, digests.concat().as_slice()])
}

/// The hash that an ENTER states.
pub(super) fn digest_of(opening: &Opening) -> Digest {
    digest("bft", "opening", &[&encode(opening)])
}

/// How a view begins that a correct replica has entered, with its log from the first place on.
/// Nothing if the log is not known whole any more.
pub(super) fn beginning(
    cluster: &Cluster<Bft>,
    state: &State,
    (own, view): (u32, u64),
) -> Option<(Opening, Vec<Batch>)> {
    let observed = cluster.observed(state, own)?;
    let log: Option<Vec<Batch>> = observed.replica.views.get(&view)?.iter().cloned().collect();
    let log = log?;
    let chain = log.iter().fold([0; 32], |chain, it| extend(&chain, it));
    let is_it = opening(cluster, state, (own, view))?;
    let said = { cluster.keys(state) }.into_iter().flat_map(|it| statements(cluster, state, it));
    let mut votes = said.filter_map(|(_, _, said)| match said {
        Statement::NewView { view: opened, votes } if opened == view => Some(votes),
        _ => None,
    });
    let start = log.len() as u64;
    let first = cluster.system.group.epochs.clone();
    let mut newest = first.clone();
    for (device, epoch) in cluster.keys(state) {
        newest[device as usize] = newest[device as usize].max(epoch);
    }
    let opening = votes.find_map(|votes| {
        let with = |epochs: &Vec<u64>| {
            let (epochs, votes) = (epochs.clone(), votes.clone());
            Opening { view, epochs, start, chain, votes }
        };
        [&first, &newest].map(with).into_iter().find(|it| digest_of(it) == is_it)
    })?;
    Some((opening, log))
}
