// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Steps that schedules have in common.

use std::sync::Arc;

use smt_attestation::{DeviceId, Epoch, Start};
use smt_replica::{Attested, Group, Request};

use super::Cluster;
use crate::message::{Message, Reference, State, Statement, encode};
use crate::replica::Output;
use crate::sim::group::{group, library};
use crate::stream_checkpoint::{StreamCheckpoint, StreamState};

/// Statements of a stream from one checkpoint to the next, where few are kept.
pub(super) const PADDED: usize = 20;

/// A cluster that keeps few statements.
pub(super) fn small(replicas: u32) -> Cluster {
    let mut group = group(replicas);
    group.options.retained = 1;
    Cluster::of_group(&Arc::new(group))
}

/// A cluster of five that keeps few statements, and orders one request at a time.
pub(super) fn small_batches(window: u64) -> Cluster {
    let mut group: Group = group(5);
    (group.options.retained, group.options.batch) = (1, 1);
    group.options.window = window;
    Cluster::of_group(&Arc::new(group))
}

/// A statement that the device of a liar attests, outside of its replica.
pub(super) fn says(
    cluster: &mut Cluster,
    who: usize,
    statement: &Statement,
) -> (Attested, Vec<u8>) {
    let body = encode(statement);
    let attestation = cluster.replicas[who].device.attest(&body).unwrap();
    let said = Attested::new(&attestation, body);
    (said.clone(), Message::Statement(said).encode())
}

/// A liar's VIEW-CHANGE.
pub(super) fn wants(cluster: &mut Cluster, who: usize, view: u64) -> Vec<u8> {
    says(cluster, who, &Statement::ViewChange { view }).1
}

/// Statements that say nothing, until a stream has a checkpoint.
pub(super) fn pad(cluster: &mut Cluster, who: usize, said: &mut Vec<Vec<u8>>) {
    let nothing = StreamCheckpoint { device: 0, epoch: 1, counter: 2000, state: [0; 32] };
    while said.len() < PADDED {
        said.push(says(cluster, who, &Statement::Streams(vec![nothing])).1);
    }
}

/// The checkpoint of a stream where one replica has it now.
pub(super) fn stands(cluster: &Cluster, at: usize, key: (u32, u64)) -> Statement {
    let track = cluster.replicas[at].streams[&key].track.checkpointed();
    let state = StreamState { device: key.0, epoch: key.1, track, proof: Vec::new() };
    Statement::Streams(vec![state.checkpoint()])
}

pub(super) fn state_of(cluster: &Cluster, who: usize) -> State {
    match cluster.replicas[who].state_for_others() {
        Some(Message::State(state)) => *state,
        _ => panic!("it has a state"),
    }
}

/// One request of the first client. True if it is answered in some ticks, between those that `may`
/// speak.
pub(super) fn request(
    cluster: &mut Cluster,
    may: &dyn Fn(usize, usize) -> bool,
    ticking: &[usize],
) -> bool {
    cluster.answers[0] = None;
    cluster.submit(0, 1);
    cluster.settle(may);
    for _ in 0..1500 {
        if cluster.answers[0].is_some() {
            return true;
        }
        cluster.clients[0].tick();
        ticking.iter().for_each(|it| cluster.replicas[*it].tick());
        cluster.settle(may);
    }
    false
}

/// All is perfect between some, and the others say nothing. True if the second client's request
/// is answered, which it sends again and again.
pub(super) fn is_answered(cluster: &mut Cluster, correct: &[usize]) -> bool {
    for _ in 0..6000 {
        if cluster.answers[1].is_some() {
            return true;
        }
        cluster.clients[1].tick();
        cluster.tick(correct, 1);
    }
    false
}

/// Statements of a replica, in their order. All else that waits is lost.
pub(super) fn statements_of(cluster: &mut Cluster, who: usize) -> Vec<Vec<u8>> {
    let outputs = cluster.replicas[who].outputs().into_iter();
    let all = outputs.filter_map(|it| match it {
        Output::Nodes(bytes) => {
            matches!(Message::decode(&bytes), Some(Message::Statement(_))).then_some(bytes)
        }
        _ => None,
    });
    all.collect()
}

pub(super) fn hears(cluster: &mut Cluster, who: usize, all: &[Vec<u8>]) {
    all.iter().for_each(|it| cluster.replicas[who].receive(it));
}

/// The second client's request, which nobody has heard of.
pub(super) fn second_request(cluster: &mut Cluster) -> (Vec<u8>, Request) {
    cluster.submit(1, 7);
    let sent = cluster.clients[1].outputs();
    let Output::Node(_, bytes) = &sent[0] else { panic!("it is for the leader") };
    let Some(Message::Request(request)) = Message::decode(bytes) else { panic!("it is one") };
    (bytes.clone(), request)
}

/// The reference to a VIEW-CHANGE as a replica has it.
pub(super) fn change_of(cluster: &Cluster, at: usize, device: u32, view: u64) -> Reference {
    let change = &cluster.replicas[at].streams[&(device, 1)].track.changes[&view];
    Reference { device, epoch: 1, counter: change.counter, mac: change.mac }
}

/// Replica 1 alone hears what the device of the liar 0 says in an epoch: HELLO, and VIEW-CHANGEs
/// for so many views.
pub(super) fn restart_of_the_liar(cluster: &mut Cluster, epoch: u64, views: u64) -> Vec<Vec<u8>> {
    let nonce = [epoch as u8; 16];
    let start = Start { device: DeviceId(0), epoch: Epoch(epoch), nonce };
    let mut device = cluster.replicas[0].group.open(library(start)).unwrap().without_log();
    let wanted = (1..=views).map(|view| Statement::ViewChange { view });
    let all = [Statement::Hello { nonce }].into_iter().chain(wanted);
    let said = all.map(|statement| {
        let body = encode(&statement);
        let attestation = device.attest(&body).unwrap();
        Message::Statement(Attested::new(&attestation, body)).encode()
    });
    let said: Vec<_> = said.collect();
    hears(cluster, 1, &said);
    said
}

/// 0 and 4, who are correct, open view 4 with the liar 3, who wants it.
pub(super) fn open_view_four(cluster: &mut Cluster, wanted: [Vec<u8>; 3]) {
    for who in [0, 4] {
        hears(cluster, who, &wanted);
    }
    for _ in 0..2000 {
        for (from, to) in [(0, 4), (4, 0)] {
            if cluster.replicas[0].metrics().view < 4 {
                cluster.replicas[from].tick();
            }
            let said = statements_of(cluster, from);
            hears(cluster, to, &said);
        }
    }
    assert_eq!([0, 4].map(|it| cluster.replicas[it].metrics().view), [4, 4]);
}

/// 1, who is correct, opens view 1 on the votes of the liars 2 and 3, and nobody hears it. Returns
/// the request, the two VIEW-CHANGEs, and what 1 has said.
pub(super) fn one_opens_view_one(cluster: &mut Cluster) -> ([Vec<u8>; 3], Vec<Vec<u8>>) {
    let (bytes, _) = second_request(cluster);
    let [two, three] = [2, 3].map(|who| wants(cluster, who, 1));
    let wanted = [bytes, two, three];
    hears(cluster, 1, &wanted);
    let mut said = Vec::new();
    for _ in 0..100 {
        if cluster.replicas[1].metrics().views == 0 {
            cluster.replicas[1].tick();
        }
        said.extend(statements_of(cluster, 1));
    }
    assert!(cluster.replicas[1].views.contains_key(&1));
    (wanted, said)
}

/// All statements of a stream that a replica keeps after a counter.
pub(super) fn kept(cluster: &Cluster, at: usize, device: u32, after: u64) -> Vec<Vec<u8>> {
    let stream = &cluster.replicas[at].streams[&(device, 1)];
    let all = stream.after(after, 1000);
    all.map(|it| Message::Statement(it.clone()).encode()).collect()
}

/// The first statement of the liar 0 in an epoch.
pub(super) fn hello(cluster: &Cluster, epoch: u64) -> Vec<u8> {
    let nonce = [epoch as u8; 16];
    let start = Start { device: DeviceId(0), epoch: Epoch(epoch), nonce };
    let mut device = cluster.replicas[0].group.open(library(start)).unwrap().without_log();
    let body = encode(&Statement::Hello { nonce });
    let attestation = device.attest(&body).unwrap();
    Message::Statement(Attested::new(&attestation, body)).encode()
}
