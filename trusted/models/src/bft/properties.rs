// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The properties of the model.

use std::collections::BTreeMap;
use std::sync::Arc;

use smt_bft::Batch;
use stateright::Property;

use super::clients::answers;
use super::{Bft, Bounds, Observed, closing, twins};
use crate::{Cluster, State};

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
    /// When the network is perfect and liars are silent, all correct replicas come to the same and
    /// answer a request, whichever others crash as far as f allows it.
    pub const CLOSES: &str = "correct_replicas_answer_in_the_end";
    /// A replica that was killed is what it was, as its log gives it back.
    pub const REPLAYS: &str = "a_log_gives_back_what_was_killed";
}

type Of = Cluster<Bft>;

pub(super) fn all(bounds: &Bounds, liars: &[u32]) -> Vec<Property<Of>> {
    let mut all = vec![
        Property::always(names::AGREEMENT, |of: &Of, state| agree(&observed(of, state))),
        Property::always(names::NOTHING_IS_LOST, |of: &Of, state| keep(&observed(of, state))),
        Property::always(names::SIGNED, execute_signed),
        Property::always(names::NO_ACCUSATION, |of: &Of, state| {
            { observed(of, state) }
                .iter()
                .all(|it| !takes_for_faulty(it, |it| !of.liars.contains(&it)))
        }),
    ];
    if bounds.requests > 0 {
        all.push(Property::always(names::RIGHT_ANSWERS, answer_rightly));
    }
    if bounds.closings > 0 {
        all.push(Property::always(names::CLOSES, closing::holds));
    }
    if bounds.kills {
        all.push(Property::always(names::REPLAYS, |of: &Of, state| {
            !observed(of, state).iter().any(|it| it.differs)
        }));
    }
    all.extend(twins::all(bounds, liars));
    all
}

pub(super) fn observed(of: &Of, state: &State) -> Vec<Arc<Observed>> {
    of.see(state).into_iter().filter_map(|it| it.1.observed.clone()).collect()
}

pub(super) fn takes_for_faulty(it: &Observed, is_one: impl Fn(u32) -> bool) -> bool {
    it.replica.streams.iter().any(|(key, it)| is_one(key.0) && it.is_faulty)
}

/// Whether no place has two batches, in one replica or in two.
fn agree(seen: &[Arc<Observed>]) -> bool {
    let mut all = BTreeMap::new();
    let mut executed = seen.iter().flat_map(|it| &it.executed);
    !seen.iter().any(|it| it.contradicts)
        && executed.all(|(place, batch)| *all.entry(*place).or_insert(batch) == batch)
}

/// Whether all that one has executed is in each later view that any of them knows. A view forgets
/// what is stable.
fn keep(seen: &[Arc<Observed>]) -> bool {
    let begins_with = |log: &[Option<Batch>], places: &BTreeMap<u64, Batch>| {
        let is_it = |(place, batch): (&u64, &Batch)| {
            let there = usize::try_from(*place - 1).ok().and_then(|it| log.get(it));
            there.is_some_and(|it| it.as_ref().is_none_or(|it| it == batch))
        };
        places.iter().all(is_it)
    };
    let has = |executed: &Observed, knows: &Observed| {
        let mut later = knows.replica.views.range(executed.decided + 1..);
        later.all(|(_, log)| begins_with(log, &executed.executed))
    };
    seen.iter().all(|one| seen.iter().all(|other| has(one, other)))
}

fn execute_signed(of: &Of, state: &State) -> bool {
    let signed = &of.system.requests;
    let is_signed = |batch: &Batch| batch.iter().all(|it| signed.contains(it));
    observed(of, state).iter().all(|it| it.executed.values().all(is_signed))
}

/// The counter after each request of the one log that all replicas execute, of which each counts
/// once.
fn results(seen: &[Arc<Observed>]) -> BTreeMap<u32, Vec<u8>> {
    let log: BTreeMap<u64, &Batch> =
        seen.iter().flat_map(|it| &it.executed).map(|it| (*it.0, it.1)).collect();
    let (mut sum, mut results) = (0_u64, BTreeMap::new());
    for request in log.into_values().flat_map(|it| it.iter()) {
        results.entry(request.client).or_insert_with(|| {
            sum += request.operation.as_slice().try_into().map_or(0, u64::from_be_bytes);
            sum.to_be_bytes().to_vec()
        });
    }
    results
}

fn answer_rightly(of: &Of, state: &State) -> bool {
    let results = results(&observed(of, state));
    let is_right = |(client, answer): &(u32, Vec<u8>)| results.get(client) == Some(answer);
    answers(of, state).iter().all(is_right)
}
