// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Schedules by hand: of three replicas 0, the first leader, lies, of five 4 as well.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod client_floods;
mod forged_states;
mod many_views;
mod other_logs;
mod sessions;
mod skipped_views;
mod state_transfer;
mod steps;
mod stream_windows;

use std::sync::Arc;

use smt_attestation::{DeviceId, Epoch, Start};
use smt_replica::{Attested, Completion, Counter, Group, Proof, Reply};

use crate::client::Client;
use crate::message::{Message, Statement, decode, encode};
use crate::replica::{Output, Replica};
use smt_replica::sim::client_key;

use crate::sim::group::{group, identity};
use crate::sim::liar::restart_keeping_state;

/// The replicas and a client; nothing is lost between those that may speak.
struct Cluster {
    replicas: Vec<Replica<Counter>>,
    clients: [Client; 2],
    answers: [Option<Vec<u8>>; 2],
    /// The ends of all requests, the first one first.
    ends: Vec<Completion>,
}

impl Cluster {
    fn new(replicas: u32) -> Self {
        Self::of_group(&Arc::new(group(replicas)))
    }

    fn of_group(group: &Arc<Group>) -> Self {
        let replica = |device| {
            let start = Start { device: DeviceId(device), epoch: Epoch(1), nonce: [0; 16] };
            let identity = identity(start);
            Replica::new(group.clone(), identity, Counter::default()).unwrap()
        };
        let client = |it| Client::new(group.clone(), it, client_key(it), 0);
        let replicas = (0..group.replicas).map(replica).collect();
        Self { replicas, clients: [client(1), client(2)], answers: [None, None], ends: Vec::new() }
    }

    fn submit(&mut self, client: usize, added: u64) {
        self.clients[client].submit([client as u8; 16], added.to_be_bytes().to_vec());
    }

    /// Ticks some replicas, which speak with each other alone, and the second client.
    fn tick(&mut self, members: &[usize], times: usize) {
        for _ in 0..times {
            members.iter().for_each(|it| self.replicas[*it].tick());
            self.settle(|from, to| members.contains(&from) && members.contains(&to));
        }
    }

    /// Whether two replicas have executed the same, as far as both have come.
    fn agree(&self, one: usize, other: usize) -> bool {
        let both = self.replicas[one].history.iter().zip(&self.replicas[other].history);
        both.into_iter().all(|(one, other)| one == other)
    }

    /// Delivers until nothing is under way; `may` says who hears whom. Clients are heard by all.
    fn settle(&mut self, may: impl Fn(usize, usize) -> bool) {
        loop {
            let mut sent = Vec::new();
            for (number, client) in self.clients.iter_mut().enumerate() {
                sent.extend(client.outputs().into_iter().map(|it| (100 + number, it)));
            }
            for (number, replica) in self.replicas.iter_mut().enumerate() {
                sent.extend(replica.outputs().into_iter().map(|it| (number, it)));
            }
            if sent.is_empty() {
                return;
            }
            sent.into_iter().for_each(|(from, output)| self.put(from, output, &may));
        }
    }

    /// Delivers something; `may` says who hears whom.
    fn put(&mut self, from: usize, output: Output, may: impl Fn(usize, usize) -> bool) {
        match output {
            Output::Client(to, bytes) => {
                let to = to as usize - 1;
                let completion = self.clients[to].receive(&bytes);
                self.ends.extend(completion.clone());
                let answer = completion.and_then(|it| it.result.ok());
                self.answers[to] = answer.or_else(|| self.answers[to].take());
            }
            Output::Node(to, bytes) => self.deliver((from, to as usize), &bytes, &may),
            Output::Nodes(bytes) => {
                for to in 0..self.replicas.len() {
                    self.deliver((from, to), &bytes, &may);
                }
            }
        }
    }

    /// A liar answers the first client's request.
    fn answer_at_once(&mut self, liar: usize, sum: u64) {
        let ordered = self.replicas[0].views[&0].batch(1).unwrap();
        let reply = Reply {
            replica: liar as u32,
            view: 0,
            client: 1,
            number: 1,
            request: ordered[0].digest(),
            result: Ok(sum.to_be_bytes().to_vec()),
            proof: Proof::default(),
        };
        let reply = reply.sign(&self.replicas[liar].reply_key);
        let completion = self.clients[0].receive(&Message::Reply(reply).encode());
        let answer = completion.and_then(|it| it.result.ok());
        self.answers[0] = answer.or_else(|| self.answers[0].take());
    }

    fn deliver(
        &mut self,
        (from, to): (usize, usize),
        bytes: &[u8],
        may: impl Fn(usize, usize) -> bool,
    ) {
        if from >= 100 || (from != to && may(from, to)) {
            self.replicas[to].receive(bytes);
        }
    }

    /// Ticks the replicas that may speak with each other until one has entered `view`.
    fn tick_to_view(&mut self, members: &[usize], view: u64) {
        for _ in 0..2000 {
            if members.iter().all(|it| self.replicas[*it].metrics().view >= view) {
                return;
            }
            members.iter().for_each(|it| self.replicas[*it].tick());
            self.settle(|from, to| members.contains(&from) && members.contains(&to));
        }
        panic!("view {view} was not entered");
    }
}

/// The leader orders a request for replica 1 alone. Both liars answer the client as if it were
/// committed. Then 1 is cut off, the leader is silent, and the other liar, who has attested
/// nothing, joins the view change.
fn the_leader_speaks_to_one() -> Cluster {
    let mut cluster = Cluster::new(5);
    cluster.submit(0, 10);
    cluster.settle(|from, to| (from, to) == (0, 1));
    for liar in [0, 4] {
        cluster.answer_at_once(liar, 10);
    }
    // The second client asks all, the replicas that were told nothing as well.
    cluster.submit(1, 7);
    for _ in 0..20 {
        cluster.clients[1].tick();
    }
    cluster.settle(|_, _| false);
    let members = [2, 3, 4];
    cluster.tick_to_view(&members, 2);
    for _ in 0..5 {
        members.iter().for_each(|it: &usize| cluster.replicas[*it].tick());
        cluster.settle(|from, to| members.contains(&from) && members.contains(&to));
    }
    cluster
}

#[test]
fn the_same_schedule_loses_nothing_with_f_plus_1_commits() {
    let cluster = the_leader_speaks_to_one();
    assert_eq!(cluster.answers[0], None);
    assert_eq!(cluster.replicas[1].metrics().executed, 0);
    assert_eq!(cluster.answers[1], Some(7_u64.to_be_bytes().to_vec()));
}

#[test]
fn a_second_prepare_of_a_leader_stops_all_that_the_leader_says() {
    let mut cluster = Cluster::new(3);
    cluster.submit(0, 1);
    cluster.settle(|_, _| true);
    let places: Vec<_> = cluster.replicas[0].views[&0].batch(1).into_iter().cloned().collect();
    let again = Statement::Prepare { view: 0, sequence: 1, batch: places[0].clone() };
    cluster.replicas[0].say(again);
    cluster.settle(|_, _| true);
    for replica in &cluster.replicas[1..] {
        assert!(replica.streams[&(0, 1)].track.is_faulty);
    }
}

#[test]
fn bytes_of_any_kind_are_refused() {
    let mut cluster = Cluster::new(3);
    cluster.submit(0, 1);
    let sent = cluster.clients[0].outputs();
    let Output::Node(_, bytes) = &sent[0] else { panic!("a request goes to the leader") };
    for length in 0..bytes.len() {
        cluster.replicas[0].receive(&bytes[..length]);
        cluster.replicas[0].receive(&[&bytes[..length], &[0xff; 40]].concat());
    }
    assert_eq!(cluster.replicas[0].outputs(), []);
    assert!(matches!(Message::decode(bytes), Some(Message::Request(_))));
    assert_eq!(decode::<Statement>(&[200, 1, 2]), None);
}

/// The liar 0 restarts, and its host remembers enough to go on at once. Replica 1 opens a view with
/// the new epoch, commits a request with it there, and is cut off. To 2 the liar sends what its old
/// epoch had said in advance: VIEW-CHANGE for a view that 2 leads. At last 1 and 2 hear each other.
fn a_vote_of_the_old_epoch_comes_late() -> Cluster {
    let mut cluster = Cluster::new(3);
    cluster.replicas[0].say(Statement::ViewChange { view: 5 });
    let late = cluster.replicas[0].outputs();
    restart_keeping_state(&mut cluster.replicas[0], [2; 16]);
    // Both vote for the new epoch, then want view 1; 2 does not hear how it begins.
    cluster.settle(|from, to| from == 0 || (from, to) == (2, 1));
    cluster.tick_to_view(&[0, 1], 1);
    cluster.tick(&[0, 1], 30);
    cluster.submit(0, 10);
    cluster.settle(|from, to| from < 2 && to < 2);
    assert_eq!(cluster.answers[0], Some(10_u64.to_be_bytes().to_vec()));
    for output in &late {
        let Output::Nodes(bytes) = output else { continue };
        cluster.replicas[2].receive(bytes);
    }
    cluster.tick(&[2], 600);
    cluster.submit(1, 7);
    (0..20).for_each(|_| cluster.clients[1].tick());
    cluster.tick(&[1, 2], 1500);
    cluster
}

/// Whether replica 2 knows a view that the liar's old epoch has voted for.
fn counts_the_old_epoch(cluster: &Cluster) -> bool {
    let mut votes = cluster.replicas[2].views.values().flat_map(|it| &it.opening.votes);
    votes.any(|vote| (vote.device, vote.epoch) == (0, 1))
}

#[test]
fn a_late_vote_of_a_replaced_epoch_does_not_count() {
    let cluster = a_vote_of_the_old_epoch_comes_late();
    assert!(!counts_the_old_epoch(&cluster));
    assert!(cluster.agree(1, 2));
    assert_eq!(cluster.answers[1], Some(17_u64.to_be_bytes().to_vec()));
}

/// The liar 0 commits a request with 1, restarts, and wants a view from 2 as if it had said
/// nothing. At last 1 and 2 hear each other.
fn a_restart_hides_a_commit() -> Cluster {
    let mut cluster = Cluster::new(3);
    cluster.submit(0, 10);
    cluster.settle(|from, to| from < 2 && to < 2);
    assert_eq!(cluster.answers[0], Some(10_u64.to_be_bytes().to_vec()));
    restart_keeping_state(&mut cluster.replicas[0], [2; 16]);
    cluster.replicas[0].say(Statement::ViewChange { view: 2 });
    cluster.settle(|from, to| (from, to) == (0, 2));
    cluster.tick(&[2], 200);
    cluster.submit(1, 7);
    (0..20).for_each(|_| cluster.clients[1].tick());
    cluster.settle(|_, _| false);
    cluster.tick(&[1, 2], 1500);
    cluster
}

/// Whether replica 2 knows a later view that begins without the committed request.
fn is_lost(cluster: &Cluster) -> bool {
    cluster.replicas[2].views.range(1..).any(|(_, view)| view.opening.start == 0)
}

#[test]
fn a_restart_hides_nothing_before_the_new_epoch_is_admitted() {
    let cluster = a_restart_hides_a_commit();
    assert!(!is_lost(&cluster));
    assert!(cluster.agree(1, 2));
    assert_eq!(cluster.answers[1], Some(17_u64.to_be_bytes().to_vec()));
}

// Once, the VIEW-CHANGEs of its epochs came before those of the others, and only the first sixteen
// were looked at: no view was opened any more.
#[test]
fn a_device_that_wants_many_views_in_each_of_its_epochs_stops_no_view_change() {
    let mut cluster = Cluster::new(3);
    for epoch in 2..=40 {
        restart_keeping_state(&mut cluster.replicas[0], [epoch; 16]);
        let next = cluster.replicas[1].metrics().view + 1;
        for view in next..next + 100 {
            // The liar's own replica takes no notice of it.
            let body = encode(&Statement::ViewChange { view });
            let attestation = cluster.replicas[0].device.attest(&body).unwrap();
            let said = Message::Statement(Attested::new(&attestation, body));
            cluster.replicas[0].outputs.push(Output::Nodes(said.encode()));
        }
        cluster.settle(|from, to| from == 0 || to != 0);
        for _ in 0..400 {
            if cluster.replicas[1].views.values().any(|it| it.epoch(0) == Some(epoch.into())) {
                break;
            }
            cluster.tick(&[1, 2], 1);
        }
        let epochs = cluster.replicas[1].views.values().map(|it| it.epoch(0));
        assert_eq!(epochs.max(), Some(Some(epoch.into())));
    }
    cluster.submit(0, 1);
    (0..20).for_each(|_| cluster.clients[0].tick());
    cluster.tick(&[1, 2], 600);
    assert_eq!(cluster.answers[0], Some(1_u64.to_be_bytes().to_vec()));
}

#[test]
fn requests_that_come_while_a_batch_is_under_way_are_ordered_together() {
    let mut cluster = Cluster::new(3);
    cluster.submit(0, 1);
    // The leader alone has heard of it: its batch is under way.
    cluster.settle(|_, _| false);
    cluster.submit(1, 2);
    cluster.settle(|_, _| false);
    // The first client gives its request up for another one.
    cluster.submit(0, 4);
    cluster.settle(|_, _| false);
    assert!(cluster.replicas[0].views[&0].batch(2).is_none());
    cluster.tick(&[0, 1, 2], 3);
    let lengths: Vec<usize> = cluster.replicas[1].history.iter().map(|it| it.1.len()).collect();
    assert_eq!(lengths, [1, 2]);
    let mut answers = cluster.answers.clone().map(|it| it.unwrap()[7]);
    answers.sort_unstable();
    assert!(matches!(answers, [3, 7] | [5, 7]), "{answers:?}");
}
