// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Liars who give a state to one replica: 1 and 2 of five. No device restarts.

use std::sync::Arc;

use smt_replica::{Attested, Proof, Reply};

use super::Cluster;
use super::steps::says;
use crate::message::{Message, Opening, Reference, State, Statement};
use crate::replica::Output;
use crate::stream_checkpoint::StreamState;
use crate::track::Track;

/// A state without a checkpoint, in which the sender of replica 1's stream stands beyond a promise
/// that the stream has. `liars` state that.
fn state_of_a_false_stream(cluster: &mut Cluster, liars: &[usize]) -> State {
    let counter = cluster.replicas[0].group.stream_interval();
    let track = Track { counter, at: Some((0, 9)), ..Track::first() };
    let mut stream = StreamState { device: 1, epoch: 1, track, proof: Vec::new() };
    let stated = Statement::Streams(vec![stream.checkpoint()]);
    stream.proof = liars.iter().map(|who| says(cluster, *who, &stated).0).collect();
    let Some(Message::State(mut state)) = cluster.replicas[0].state_for_others() else {
        panic!("view 0 is proved from the start");
    };
    state.streams = vec![stream];
    *state
}

#[test]
fn a_place_of_a_stream_is_taken_on_the_word_of_f_plus_1_replicas() {
    for (liars, place) in [(&[1, 2][..], 0), (&[1, 1, 2], 0), (&[1, 2, 3], 1)] {
        let mut cluster = Cluster::new(5);
        let place = place * cluster.replicas[0].group.stream_interval();
        let state = state_of_a_false_stream(&mut cluster, liars);
        cluster.replicas[4].receive(&Message::State(Box::new(state)).encode());
        assert_eq!(cluster.replicas[4].streams[&(1, 1)].track.counter, place, "{liars:?}");
    }
}

#[test]
fn a_place_of_a_stream_is_not_taken_where_the_statements_are_of_another_place() {
    let mut cluster = Cluster::new(5);
    let mut state = state_of_a_false_stream(&mut cluster, &[1, 2, 3]);
    state.streams[0].track.at = Some((0, 10));
    cluster.replicas[4].receive(&Message::State(Box::new(state)).encode());
    assert_eq!(cluster.replicas[4].streams[&(1, 1)].track.counter, 0);
}

/// Both liars want a view.
fn both_want(cluster: &mut Cluster, view: u64) -> [Vec<u8>; 2] {
    [1, 2].map(|who| says(cluster, who, &Statement::ViewChange { view }).1)
}

/// View 5 as replica 0 has opened it, with a batch that only 0 has ordered, and its ENTER.
struct ViewFive {
    opening: Opening,
    digest: [u8; 32],
    enter: Attested,
    wanted: [Vec<u8>; 2],
}

/// Replica 0, the leader, orders the first client's request, which nobody hears of. It opens view 5
/// on the VIEW-CHANGEs of the liars and its own.
fn view_five(cluster: &mut Cluster) -> ViewFive {
    cluster.submit(0, 10);
    cluster.settle(|_, _| false);
    let wanted = both_want(cluster, 5);
    wanted.iter().for_each(|it| cluster.replicas[0].receive(it));
    cluster.tick(&[0], 3000);
    let view = &cluster.replicas[0].views[&5];
    assert_eq!(view.opening.start, 1);
    let (opening, digest, enter) = (view.opening.clone(), view.digest, view.enters[&0].clone());
    ViewFive { opening, digest, enter, wanted }
}

/// Replica 3 has the second client's request, hears of nothing else, and comes to want view 6, as
/// the liars do. It opens it on these three, without the batch of view 5.
fn open_view_six(cluster: &mut Cluster, before: &[Vec<u8>; 2]) -> Vec<Vec<u8>> {
    let wanted = both_want(cluster, 6);
    cluster.submit(1, 7);
    let sent = cluster.clients[1].outputs();
    let Output::Node(_, request) = &sent[0] else { panic!("a request goes to the leader") };
    let all = [request].into_iter().chain(before).chain(&wanted);
    all.for_each(|it| cluster.replicas[3].receive(it));
    for _ in 0..6000 {
        if cluster.replicas[3].own_track().promised < 6 {
            cluster.tick(&[3], 1);
        }
    }
    let votes = [1, 2, 3].map(|device| {
        let change = &cluster.replicas[3].streams[&(device, 1)].track.changes[&6];
        Reference { device, epoch: 1, counter: change.counter, mac: change.mac }
    });
    let new_view = Statement::NewView { view: 6, votes: votes.to_vec() };
    let (_, new_view) = says(cluster, 1, &new_view);
    cluster.replicas[3].receive(&new_view);
    assert_eq!(cluster.replicas[3].views[&6].opening.start, 0);
    before.iter().chain(&wanted).cloned().chain([new_view]).collect()
}

/// The liars enter view 6, and commit the second client's request there.
fn commit_in_view_six(cluster: &mut Cluster) -> Vec<Vec<u8>> {
    let opening = cluster.replicas[3].views[&6].digest;
    let waiting = cluster.replicas[3].pending.iter().map(|it| it.request.clone());
    let batch = Arc::new(waiting.collect::<Vec<_>>());
    let enter = Statement::Enter { view: 6, opening };
    let prepare = Statement::Prepare { view: 6, sequence: 1, batch };
    let commit = Statement::Commit { view: 6, sequence: 1 };
    [(1, &enter), (1, &prepare), (2, &enter), (2, &commit)]
        .map(|(who, statement)| says(cluster, who, statement).1)
        .to_vec()
}

/// A liar's answer to the second client, the sum without the first one's request.
fn answer_second_client(cluster: &mut Cluster) {
    let request = cluster.replicas[3].history[0].1[0].digest();
    let (replica, view, client, number) = (1, 6, 2, 1);
    let proof = Proof::default();
    let result = Ok(7_u64.to_be_bytes().to_vec());
    let reply = Reply { replica, view, client, number, request, result, proof };
    let reply = Message::Reply(reply.sign(&cluster.replicas[1].reply_key));
    let completion = cluster.clients[1].receive(&reply.encode());
    let answer = completion.and_then(|it| it.result.ok());
    cluster.answers[1] = answer.or_else(|| cluster.answers[1].take());
}

// f + 1 ENTERs once counted as f + 1 COMMITs to all that the view begins with. Those of liars may
// be younger than what they have promised: everybody who follows their streams sees that, and a
// replica that is shown the ENTERs alone does not.
#[test]
fn enters_that_liars_attest_after_their_promises_commit_nothing() {
    let mut cluster = Cluster::new(5);
    let five = view_five(&mut cluster);
    let said = open_view_six(&mut cluster, &five.wanted);
    let said = said.into_iter().chain(commit_in_view_six(&mut cluster)).collect::<Vec<_>>();
    // The last statements of the liars, outside of their streams: they enter view 5.
    let enter = Statement::Enter { view: 5, opening: five.digest };
    let forged = [1, 2].map(|who| says(&mut cluster, who, &enter).0);
    for who in [3, 0] {
        said.iter().for_each(|it| cluster.replicas[who].receive(it));
    }
    cluster.tick(&[0, 3], 50);
    // A state that replica 4 has not asked for.
    let log = vec![cluster.replicas[0].views[&0].batch(1).unwrap().clone()];
    let (proof, checkpoints, snapshot, streams) = <_>::default();
    let enters = [five.enter].into_iter().chain(forged).collect();
    let opening = five.opening;
    let state = State { proof, checkpoints, snapshot, log, opening, enters, streams };
    cluster.replicas[4].receive(&Message::State(Box::new(state)).encode());
    [1, 2].into_iter().for_each(|liar| cluster.answer_at_once(liar, 10));
    cluster.settle(|_, _| false);
    answer_second_client(&mut cluster);
    assert_eq!(cluster.answers[1], Some(7_u64.to_be_bytes().to_vec()));
    assert_eq!(cluster.answers[0], None, "no order gives both answers");
    assert_eq!(cluster.replicas[4].metrics().executed, 0);
    // Between the correct ones the network is perfect, and liars say nothing more.
    cluster.tick(&[0, 3, 4], 2000);
    for who in [0, 3, 4] {
        assert!(cluster.agree(3, who));
        assert_eq!(cluster.replicas[who].metrics().executed, 1);
    }
}
