// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replicas that were away, between others that go on: nothing is lost between those that are up.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use smt_attestation::{DeviceId, Epoch, GroupSecret, Start};
use smt_bft::{Client, Identity, Output, Replica};
use smt_replica::{Counter, Group, Options, OwnDevice, SigningKey};

/// Requests that a client makes after a change, and ticks in which each of them has its answer.
const REQUESTS: u64 = 10;
const TICKS: u32 = 2000;

fn key(kind: u8, number: u32) -> SigningKey {
    let mut seed = [kind; 32];
    seed[..4].copy_from_slice(&number.to_be_bytes());
    SigningKey::from_bytes(&seed)
}

/// A replica that begins in an epoch of its device.
fn replica(group: &Arc<Group>, device: u32, epoch: u64) -> Replica<Counter> {
    let nonce = [u8::try_from(epoch).unwrap(); 16];
    let start = Start { device: DeviceId(device), epoch: Epoch(epoch), nonce };
    let secret = GroupSecret::new([3; 32]);
    let device = OwnDevice::Library { secret, start, signing_key: None };
    let identity = Identity { device, reply_key: key(2, start.device.0) };
    Replica::new(group.clone(), identity, Counter::default()).unwrap()
}

/// Replicas, some of which are cut off, and a client.
struct Cluster {
    group: Arc<Group>,
    replicas: Vec<Replica<Counter>>,
    is_up: Vec<bool>,
    client: Client,
    answers: Vec<Vec<u8>>,
}

impl Cluster {
    fn new(replicas: u32, options: Options) -> Self {
        let clients = BTreeMap::from([(1, key(1, 1).verifying_key().to_bytes())]);
        let keys = (0..replicas).map(|it| key(2, it).verifying_key().to_bytes()).collect();
        let group = Arc::new(Group::new(7, clients, keys, options));
        Self {
            replicas: (0..replicas).map(|it| replica(&group, it, 1)).collect(),
            is_up: vec![true; replicas as usize],
            client: Client::new(group.clone(), 1, key(1, 1), 0),
            answers: Vec::new(),
            group,
        }
    }

    /// Delivers until nothing is under way.
    fn settle(&mut self) {
        loop {
            let mut sent: VecDeque<Output> = self.client.outputs().into();
            for (replica, _) in self.replicas.iter_mut().zip(&self.is_up).filter(|it| *it.1) {
                sent.extend(replica.outputs());
            }
            if sent.is_empty() {
                return;
            }
            sent.into_iter().for_each(|it| self.deliver(it));
        }
    }

    fn deliver(&mut self, output: Output) {
        match output {
            Output::Client(_, bytes) => {
                let completion = self.client.receive(&bytes);
                self.answers.extend(completion.and_then(|it| it.result.ok()));
            }
            Output::Node(to, bytes) => self.deliver_to(to as usize, &bytes),
            Output::Nodes(bytes) => {
                (0..self.replicas.len()).for_each(|to| self.deliver_to(to, &bytes));
            }
        }
    }

    fn deliver_to(&mut self, to: usize, bytes: &[u8]) {
        if self.is_up[to] {
            self.replicas[to].receive(bytes);
        }
    }

    fn tick(&mut self, times: u32) {
        for _ in 0..times {
            for (replica, _) in self.replicas.iter_mut().zip(&self.is_up).filter(|it| *it.1) {
                replica.tick();
            }
            self.client.tick();
            self.settle();
        }
    }

    /// Makes requests that add 1 each, one after the other. True if all are answered.
    fn requests(&mut self, count: u64) -> bool {
        (0..count).all(|_| {
            let before = self.answers.len();
            let nonce = u128::from(before as u64).to_be_bytes();
            self.client.submit(nonce, 1_u64.to_be_bytes().to_vec());
            self.settle();
            for _ in 0..TICKS {
                if self.answers.len() == before {
                    self.tick(1);
                }
            }
            self.answers.len() > before
        })
    }

    /// All answers so far are those of a counter to which each request has added once.
    fn assert_answers(&self) {
        let sums = (1..=self.answers.len() as u64).map(|it| it.to_be_bytes().to_vec());
        assert_eq!(self.answers, sums.collect::<Vec<_>>());
    }
}

/// Groups that keep few statements, and the default of a thousand.
fn options() -> [(Options, u64); 2] {
    let few = Options { retained: 1, interval: 8, window: 16, ..Options::default() };
    [(few, 400), (Options::default(), 4300)]
}

// It found no statement after its last one, and no state, since no later view had begun.
#[test]
fn a_replica_that_missed_more_than_is_kept_stands_in_for_another_one() {
    for (options, missed) in options() {
        let mut cluster = Cluster::new(3, options);
        assert!(cluster.requests(1));
        cluster.is_up[2] = false;
        assert!(cluster.requests(missed));
        cluster.is_up[2] = true;
        cluster.tick(20);
        assert!(cluster.requests(REQUESTS));
        let metrics = cluster.replicas[2].metrics();
        assert!(metrics.is_active);
        assert_eq!((metrics.executed, metrics.states), (1 + missed + REQUESTS, 1));
        cluster.is_up[1] = false;
        assert!(cluster.requests(REQUESTS), "{missed}");
        cluster.assert_answers();
    }
}

// It got 32 statements of each stream in a tick, and the group made more.
#[test]
fn a_replica_that_was_away_catches_up_while_others_go_on() {
    let mut cluster = Cluster::new(3, Options::default());
    cluster.is_up[2] = false;
    assert!(cluster.requests(2000));
    cluster.is_up[2] = true;
    for _ in 0..20 {
        assert!(cluster.requests(100));
        cluster.tick(1);
    }
    assert_eq!(cluster.replicas[2].metrics().executed, 4000);
}

#[test]
fn a_replica_is_not_active_while_it_lacks_far_more_than_the_last_statements() {
    let mut cluster = Cluster::new(3, Options::default());
    cluster.is_up[2] = false;
    assert!(cluster.requests(1500));
    cluster.is_up[2] = true;
    // The others tell it of a statement far ahead, and do not hear its questions yet.
    cluster.client.submit([9; 16], 1_u64.to_be_bytes().to_vec());
    for output in cluster.client.outputs() {
        cluster.deliver(output);
    }
    for from in [0, 1] {
        for output in cluster.replicas[from].outputs() {
            cluster.deliver(output);
        }
    }
    assert!(!cluster.replicas[2].metrics().is_active);
    cluster.tick(200);
    let metrics = cluster.replicas[2].metrics();
    assert_eq!((metrics.is_active, metrics.executed), (true, 1501));
}

// It followed the streams of those alone that had voted for the view by which it came in.
#[test]
fn a_newcomer_of_five_stands_in_for_any_two_whoever_has_admitted_it() {
    for (options, _) in options() {
        for crashed in [[0, 1], [0, 2], [1, 2], [0, 3], [1, 3], [2, 3]] {
            let mut cluster = Cluster::new(5, options);
            assert!(cluster.requests(REQUESTS));
            cluster.replicas[4] = replica(&cluster.group.clone(), 4, 2);
            cluster.tick(500);
            assert!(cluster.requests(REQUESTS));
            cluster.tick(500);
            assert!(cluster.replicas[4].metrics().is_active);
            crashed.into_iter().for_each(|it| cluster.is_up[it] = false);
            assert!(cluster.requests(REQUESTS), "{crashed:?}");
            cluster.assert_answers();
        }
    }
}

#[test]
fn a_newcomer_comes_in_long_after_the_first_statements_were_forgotten() {
    for (options, before) in options() {
        let mut cluster = Cluster::new(5, options);
        assert!(cluster.requests(before));
        cluster.replicas[4] = replica(&cluster.group.clone(), 4, 2);
        cluster.tick(500);
        assert!(cluster.requests(REQUESTS));
        [0, 3].into_iter().for_each(|it| cluster.is_up[it] = false);
        assert!(cluster.requests(REQUESTS), "{before}");
        cluster.assert_answers();
    }
}

// Its leader's old epoch is in no state, and the log of the view that it led never became whole:
// what others had committed in that view waited for it.
#[test]
fn a_replica_that_missed_the_statements_of_a_leader_that_has_restarted_catches_up() {
    let options = Options { retained: 1, interval: 2, window: 4, ..Options::default() };
    for missed in 20..40 {
        let mut cluster = Cluster::new(5, options);
        cluster.is_up[1] = false;
        assert!(cluster.requests(missed));
        cluster.replicas[0] = replica(&cluster.group.clone(), 0, 2);
        cluster.tick(500);
        assert!(cluster.replicas[0].metrics().is_active, "{missed}");
        cluster.is_up[1] = true;
        cluster.tick(500);
        let metrics = cluster.replicas[1].metrics();
        assert_eq!((metrics.is_active, metrics.executed), (true, missed), "{missed}");
        cluster.is_up[2] = false;
        assert!(cluster.requests(REQUESTS));
        cluster.assert_answers();
    }
}
