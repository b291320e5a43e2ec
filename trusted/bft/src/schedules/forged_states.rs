// SPDX-License-Identifier: Apache-2.0 OR MIT
//! States that a liar puts together of parts that are proved, each by itself.

use std::sync::Arc;

use smt_attestation::DeviceId;
use smt_replica::REQUEST_WAY_MAX;

use super::Cluster;
use super::steps::{
    hears, pad, request, restart_of_the_liar, says, second_request, small, stands, state_of, wants,
};
use crate::message::{Message, Opening, State, Statement};
use crate::stream_checkpoint::StreamState;

fn give(cluster: &mut Cluster, to: usize, state: State) {
    cluster.replicas[to].receive(&Message::State(Box::new(state)).encode());
}

/// 1 lies, 0 leads, and 2 was away. `change` gets the liar's state, and an older place of the
/// leader's stream. Returns whether 2 takes the state, and whether a request is answered then
/// without the liar.
fn after_a_state_of(change: impl FnOnce(&Cluster, &mut State, StreamState)) -> (bool, bool) {
    after_requests_and_a_state_of(60, change)
}

fn after_requests_and_a_state_of(
    requests: u32,
    change: impl FnOnce(&Cluster, &mut State, StreamState),
) -> (bool, bool) {
    let mut cluster = small(3);
    let mut old = None;
    for _ in 0..requests {
        assert!(request(&mut cluster, &|from, to| from != 2 && to != 2, &[]));
        let streams = state_of(&cluster, 0).streams.into_iter();
        old = old.or_else(|| streams.into_iter().find(|it| it.device == 0));
    }
    let mut state = state_of(&cluster, 1);
    change(&cluster, &mut state, old.unwrap());
    give(&mut cluster, 2, state);
    let is_taken = cluster.replicas[2].metrics().states > 0;
    (is_taken, request(&mut cluster, &|from, to| from != 1 && to != 1, &[0, 2]))
}

#[test]
fn a_state_of_a_liar_that_is_true_is_taken() {
    assert_eq!(after_a_state_of(|_, _, _| ()), (true, true));
}

// The view ended where the first one said, and the stream went on where the last one said.
#[test]
fn a_state_that_has_a_stream_twice_is_refused() {
    let twice = |_: &Cluster, state: &mut State, old| {
        state.streams.insert(0, old);
        state.log.clear();
    };
    assert_eq!(after_a_state_of(twice), (false, true));
}

// The replica jumped over all CHECKPOINTs, and waited for the first one ever after.
#[test]
fn a_state_whose_streams_are_far_beyond_its_checkpoint_is_refused() {
    let without_checkpoint = |cluster: &Cluster, state: &mut State, _| {
        let leader = state.streams.iter().find(|it| it.device == 0).unwrap();
        let end = leader.track.at.unwrap().1;
        let history = cluster.replicas[1].history.iter();
        (state.proof, state.checkpoints, state.snapshot) = <_>::default();
        state.log = history.take(end as usize).map(|it| it.1.clone()).collect();
    };
    assert_eq!(after_a_state_of(without_checkpoint), (false, true));
}

// The hash of a log does not cover the proofs of its requests: the replica kept them, and gave them
// on to others.
#[test]
fn a_state_whose_log_has_a_request_with_a_proof_that_is_too_long_is_refused() {
    for (hashes, is_taken) in [(REQUEST_WAY_MAX, true), (REQUEST_WAY_MAX + 1, false)] {
        let long = |_: &Cluster, state: &mut State, _| {
            let last = Arc::make_mut(state.log.last_mut().unwrap());
            last[0].proof.way = vec![[7; 32]; hashes];
        };
        // The log goes two batches beyond the checkpoint.
        assert_eq!(after_requests_and_a_state_of(59, long), (is_taken, true), "{hashes}");
    }
}

/// 1 and 2 lie, and 0, 1 and 3 have gone from view 0 to view 5. 2 enters view 1, which nobody has
/// opened, with an opening of its own, and commits to it.
fn stands_in_a_view_that_nobody_opened() -> Cluster {
    let mut cluster = small(5);
    let (bytes, other) = second_request(&mut cluster);
    let wanted = wants(&mut cluster, 1, 5);
    for who in [0, 3] {
        hears(&mut cluster, who, &[bytes.clone(), wanted.clone()]);
    }
    cluster.tick_to_view(&[0, 3], 5);
    // 1 may open view 1 no more.
    let opening = cluster.replicas[0].views[&5].digest;
    let entered = says(&mut cluster, 1, &Statement::Enter { view: 5, opening }).1;
    [0, 3].into_iter().for_each(|who| hears(&mut cluster, who, std::slice::from_ref(&entered)));
    let batch = Arc::new(vec![other]);
    let chain = crate::ledger::extend(&[0; 32], &batch);
    let opening = Opening { view: 1, epochs: vec![1; 5], start: 1, chain, votes: Vec::new() };
    let enter = Statement::Enter { view: 1, opening: opening.digest() };
    let commit = Statement::Commit { view: 1, sequence: 1 };
    let mut said = [&enter, &commit].map(|it| says(&mut cluster, 2, it).1).to_vec();
    pad(&mut cluster, 2, &mut said);
    [0, 3].into_iter().for_each(|who| hears(&mut cluster, who, &said));
    let place = stands(&cluster, 0, (2, 1));
    let stated = says(&mut cluster, 2, &place).1;
    [0, 3].into_iter().for_each(|who| hears(&mut cluster, who, std::slice::from_ref(&stated)));
    cluster.tick(&[0, 3], 3);
    cluster
}

// Correct replicas proved to others that the view begins like this: they had skipped it, and the
// COMMIT made the liar's place certain to them.
#[test]
fn correct_replicas_do_not_state_where_a_sender_stands_in_a_view_that_they_do_not_know() {
    let cluster = stands_in_a_view_that_nobody_opened();
    for who in [0, 3] {
        let stream = &cluster.replicas[who].streams[&(2, 1)];
        assert_eq!((stream.track.counter, stream.track.at), (21, Some((1, 1))));
        assert!(stream.checkpoints.stable().is_none());
    }
}

/// A proved place of each of the liar's epochs, by replica 1, who follows them.
fn places_of_epochs(cluster: &mut Cluster, epochs: u64) -> Vec<StreamState> {
    let mut places = Vec::new();
    for epoch in 2..=epochs {
        restart_of_the_liar(cluster, epoch, 11);
        let place = stands(cluster, 1, (0, epoch));
        let stated = says(cluster, 0, &place).1;
        hears(cluster, 1, &[stated]);
        let stream = &cluster.replicas[1].streams[&(0, epoch)];
        places.extend(stream.checkpoints.stable().cloned());
        if epoch.is_multiple_of(4) {
            cluster.replicas[0].outputs();
            cluster.settle(|from, to| from != 0 && to != 0);
        }
    }
    places
}

#[test]
fn states_fill_no_memory_with_epochs_and_with_enters_that_nobody_has_attested() {
    let mut cluster = small(3);
    let places = places_of_epochs(&mut cluster, 60);
    assert!(places.len() > 20, "{}", places.len());
    let before = cluster.replicas[2].snapshot().len();
    for (round, place) in (0..).zip(places) {
        let mut state = state_of(&cluster, 1);
        let forged = |number: u32| {
            let mut it = place.proof[0].clone();
            let mut header = it.attestation().claim().unwrap();
            header.device = DeviceId(1000 + 3 * round + number);
            it.attestation = [header.encode(), [0; 32]];
            it.body = vec![0; 4000];
            it
        };
        state.enters = (0..3).map(forged).collect();
        state.streams = vec![place.clone()];
        give(&mut cluster, 2, state);
    }
    cluster.tick(&[1, 2], 300);
    let replica = &cluster.replicas[2];
    assert!(replica.metrics().states > 20, "{:?}", replica.metrics());
    assert!(replica.streams.len() <= 3 * 5, "{}", replica.streams.len());
    assert!(replica.snapshot().len() < before + (1 << 18));
    assert!(replica.views[&0].enters.is_empty());
}
