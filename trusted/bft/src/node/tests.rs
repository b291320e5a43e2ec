// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replicas with logs: what is written, what is refused, what is answered.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use smt_attestor::Attestor;
use smt_replica::{Attested, Counter, IN_PROGRESS_MAX, RefusalReason, Request, first_number};

use std::collections::BTreeMap;
use std::sync::Arc;

use smt_attestation::{DeviceId, Epoch, Start};
use smt_journal::{Journal, JournalError, LogBytes, ModelDisk, SnapshotLog};

use super::*;
use crate::message::Status;
use crate::message::{Opening, Reference, Statement};
use smt_replica::sim::client_key;

use crate::sim::group::{group, identity, library};
use crate::view::View;

type Core = Logged<Replica<Counter>, ModelDisk>;

fn open_log(group: Group, device: u32, disk: ModelDisk) -> Result<Core, LoggedError> {
    let start = Start { device: DeviceId(device), epoch: Epoch(1), nonce: [0; 16] };
    Replica::open(Arc::new(group), identity(start), Counter::default(), disk)
}

fn open(group: Group, device: u32) -> Core {
    let mut durable = open_log(group, device, ModelDisk::default()).unwrap();
    durable.commit().unwrap();
    durable
}

fn durable() -> Core {
    open(group(3), 0)
}

/// Bytes by which the log has grown.
fn growth(durable: &mut Core, act: impl FnOnce(&mut Core)) -> u64 {
    let length = durable.log_length();
    act(durable);
    durable.commit().unwrap();
    durable.log_length() - length
}

/// A statement of a replica as a message.
fn said(by: &mut Core, statement: &Statement) -> (Attested, Vec<u8>) {
    let body = encode(statement);
    let attestation = by.node_mut().device.attest(&body).unwrap();
    let said = Attested::new(&attestation, body);
    (said.clone(), Message::Statement(said).encode())
}

/// The leader and a follower that have executed `request(8)`.
fn executed() -> [Core; 2] {
    let [mut leader, mut follower] = [0, 1].map(|it| open(group(3), it));
    leader.receive(&request(8));
    exchange(&mut leader, &mut follower);
    assert_eq!((leader.node().metrics().executed, follower.node().metrics().executed), (1, 1));
    [leader, follower]
}

/// The leader orders what has come, and both execute it.
fn exchange(leader: &mut Core, follower: &mut Core) {
    for _ in 0..3 {
        for output in leader.commit().unwrap() {
            if let Output::Node(1, bytes) | Output::Nodes(bytes) = output {
                follower.receive(&bytes);
            }
        }
        for output in follower.commit().unwrap() {
            if let Output::Node(0, bytes) | Output::Nodes(bytes) = output {
                leader.receive(&bytes);
            }
        }
    }
}

fn request(bytes: usize) -> Vec<u8> {
    Message::Request(Request::sign(&client_key(1), 1, 1, ([0; 16], vec![0; bytes]))).encode()
}

#[test]
fn a_request_that_is_too_long_leaves_nothing_in_the_log() {
    let mut durable = durable();
    let length = durable.log_length();
    durable.receive(&request(1025));
    durable.commit().unwrap();
    assert_eq!(durable.log_length(), length);
    durable.receive(&request(1024));
    durable.commit().unwrap();
    assert!(durable.log_length() > length);
}

#[test]
fn messages_for_which_the_log_has_no_room_end_no_replica() {
    let mut group = group(5);
    group.options.operation = 60 << 20;
    let mut durable = open(group.clone(), 0);
    for number in 1..5 {
        let body = vec![0; 50 << 20];
        let attestation = open(group.clone(), number).node_mut().device.attest(&body).unwrap();
        durable.receive(&Message::Statement(Attested::new(&attestation, body)).encode());
    }
    let length = durable.log_length();
    durable.commit().unwrap();
    assert_eq!((durable.log_length() - length) >> 20, 100, "two of them have room");
}

#[test]
fn a_statement_that_no_device_has_attested_leaves_nothing_in_the_log() {
    let (mut other, mut durable) = (open(group(3), 1), durable());
    let (mut statement, bytes) = said(&mut other, &Statement::ViewChange { view: 1 });
    statement.attestation[1][0] ^= 1;
    let forged = Message::Statement(statement).encode();
    assert_eq!(growth(&mut durable, |it| it.receive(&forged)), 0);
    assert!(growth(&mut durable, |it| it.receive(&bytes)) > 0);
}

// One more byte, and a device that lies fills the memory and the disks of all others.
#[test]
fn a_statement_that_is_longer_than_the_longest_batch_is_neither_kept_nor_logged() {
    let mut liar = open(group(3), 1);
    let mut of_operation = |bytes: usize| {
        let request = Request::sign(&client_key(1), 1, 1, ([0; 16], vec![0; bytes]));
        let batch = Arc::new(vec![request]);
        said(&mut liar, &Statement::Prepare { view: 1, sequence: 1, batch }).1
    };
    let (long, short) = (of_operation(140 << 10), of_operation(1024));
    let mut durable = durable();
    assert_eq!(growth(&mut durable, |it| it.receive(&long)), 0);
    durable.node_mut().receive(&long);
    assert!(durable.node_mut().streams[&(1, 1)].lacks(1, 1), "it was not kept");
    assert!(growth(&mut durable, |it| it.receive(&short)) > 0);
    assert_eq!(growth(&mut durable, |it| it.receive(&short)), 0, "it is known");
}

// It would wait for VIEW-CHANGEs that nobody need say.
#[test]
fn a_new_view_with_more_votes_than_a_quorum_is_faulty_at_once() {
    for (count, is_faulty) in [(2, false), (3, true)] {
        let [mut durable, mut liar] = [0, 1].map(|it| open(group(3), it));
        let vote =
            |device| Reference { device, epoch: 1, counter: 5 - u64::from(device), mac: [0; 32] };
        let votes = (0..count).map(vote).collect();
        let (_, bytes) = said(&mut liar, &Statement::NewView { view: 1, votes });
        durable.receive(&bytes);
        durable.commit().unwrap();
        assert_eq!(durable.node_mut().streams[&(1, 1)].track.is_faulty, is_faulty, "{count}");
    }
}

// Once, each of them had an answer of all that the replica has, as often as somebody asked.
#[test]
fn many_questions_of_a_replica_have_one_answer_in_each_tick() {
    let [mut leader, _] = executed();
    let question = Status { from: 2, positions: Vec::new(), wants_state: true };
    let question = Message::Status(question).encode();
    let mut answers = |time_passes: bool| {
        if time_passes {
            leader.tick();
        }
        (0..9).for_each(|_| leader.receive(&question));
        let outputs = leader.commit().unwrap();
        outputs.iter().filter(|it| matches!(it, Output::Node(2, _))).count()
    };
    let once = answers(false);
    assert!(once >= 3, "a PREPARE, a COMMIT and the state, which comes again after some ticks");
    assert_eq!([answers(false), answers(true), answers(false)], [0, once - 1, 0]);
}

#[test]
fn a_question_of_any_length_is_not_kept() {
    let [mut leader, _] = executed();
    for (count, has_answer) in [(1 << 16, true), ((1 << 16) + 1, false)] {
        let positions = vec![(2, 1, 0); count];
        let question = Status { from: 2, positions, wants_state: false };
        leader.receive(&Message::Status(question).encode());
        assert_eq!(leader.has_questions(), has_answer, "{count}");
        assert_eq!(!leader.commit().unwrap().is_empty(), has_answer, "{count}");
        leader.tick();
        leader.commit().unwrap();
    }
}

#[test]
fn a_replica_that_asks_for_the_state_in_each_tick_has_it_in_each_eighth_one() {
    let [mut leader, mut follower] = executed();
    let view = leader.node_mut().views.get_mut(&0).unwrap();
    let (enter, _) = said(&mut follower, &Statement::Enter { view: 0, opening: view.digest });
    view.enters.extend([0, 1].map(|it| (it, enter.clone())));
    let question = Status { from: 2, positions: Vec::new(), wants_state: true };
    let question = Message::Status(question).encode();
    let had: Vec<usize> = (0..17)
        .filter(|_| {
            leader.receive(&question);
            let outputs = leader.commit().unwrap();
            leader.tick();
            outputs.iter().any(|it| match it {
                Output::Node(2, bytes) => {
                    matches!(Message::decode(bytes), Some(Message::State(_)))
                }
                _ => false,
            })
        })
        .collect();
    assert_eq!(had, [0, 8, 16]);
}

#[test]
fn a_request_that_was_executed_is_answered_once_in_each_tick_and_lets_no_log_grow() {
    let [mut leader, _] = executed();
    let length = leader.log_length();
    let mut replies = |request: &[u8]| {
        (0..9).for_each(|_| leader.receive(request));
        let outputs = leader.commit().unwrap();
        leader.tick();
        leader.commit().unwrap();
        let replies = outputs.iter().filter_map(|it| match it {
            Output::Client(1, bytes) => Message::decode(bytes),
            _ => None,
        });
        let said = replies.map(|it| match it {
            Message::Reply(it) => it.result.map_err(|it| (it.reason, it.may_have_run)),
            other => panic!("{other:?}"),
        });
        said.collect::<Vec<_>>()
    };
    let [first, again] = [replies(&request(8)), replies(&request(8))];
    assert!(matches!(first.as_slice(), [Ok(_)]) && first == again, "{first:?}");
    // Another request under its number, which no correct client makes.
    assert_eq!(replies(&request(7)), [Err((RefusalReason::NumberIsUsed, false))]);
    let Some(Message::Request(signed)) = Message::decode(&request(7)) else {
        panic!("it is a request");
    };
    let forged = Request { operation: vec![9], ..signed };
    assert_eq!(replies(&Message::Request(forged).encode()), []);
    assert_eq!(leader.log_length(), length);
}

// Once, both had one place among the questions, and the last one had the answer: a liar that sent
// an old request again and again kept the client from the answer to its new one.
#[test]
fn an_executed_request_has_its_answer_again_whatever_other_request_of_its_client_comes_again() {
    let [mut leader, mut follower] = executed();
    let new = Request::sign(&client_key(1), 1, first_number(1) + 1, ([0; 16], vec![0; 8]));
    let new = Message::Request(new).encode();
    leader.receive(&new);
    exchange(&mut leader, &mut follower);
    assert_eq!(leader.node().metrics().executed, 2);
    [&new, &request(8)].iter().for_each(|it| leader.receive(it));
    let outputs = leader.commit().unwrap();
    assert_eq!(outputs.iter().filter(|it| matches!(it, Output::Client(1, _))).count(), 2);
}

// Once, the last one that came had the place for both: a liar that sent old requests again and
// again kept the client from the refusal.
#[test]
fn a_refusal_is_heard_whatever_old_requests_of_its_client_come_again() {
    let [mut leader, mut follower] = [0, 1].map(|it| open(group(3), it));
    let request = |number| {
        let request = Request::sign(&client_key(1), 1, number, ([0; 16], Vec::new()));
        Message::Request(request).encode()
    };
    let old: Vec<_> = (1..=20).map(|session| request(first_number(session))).collect();
    for request in &old {
        leader.receive(request);
        exchange(&mut leader, &mut follower);
    }
    let number = first_number(5) + IN_PROGRESS_MAX;
    let is_refused = |output: &Output| match output {
        Output::Client(_, bytes) => match Message::decode(bytes) {
            Some(Message::Reply(it)) => it.number == number && it.result.is_err(),
            _ => false,
        },
        _ => false,
    };
    let mut ticks = (0..40).filter(|tick| {
        if tick % 10 == 0 {
            leader.receive(&request(number));
        }
        old.iter().for_each(|it| leader.receive(it));
        let outputs = leader.commit().unwrap();
        leader.tick();
        outputs.iter().any(is_refused)
    });
    assert!(ticks.next().is_some());
}

#[test]
fn copies_of_a_message_that_come_before_one_commit_are_in_the_log_once() {
    let bytes = request(8);
    let other = [&[0x80, 0x00], &bytes[1..]].concat();
    assert_eq!(Message::decode(&other), Message::decode(&bytes));
    let all = [vec![&bytes], vec![&bytes, &bytes], vec![&other, &bytes]].map(|copies| {
        growth(&mut durable(), |it| copies.iter().for_each(|bytes| it.receive(bytes)))
    });
    assert!(all[0] > 0 && all[0] == all[1] && all[0] == all[2], "{all:?}");
}

// A replica that got the state of others had such a request wait for ever: it wanted one view
// after the other, and took part in none.
#[test]
fn a_request_that_was_executed_and_waits_all_the_same_is_dropped() {
    let [mut leader, _] = executed();
    let Some(Message::Request(request)) = Message::decode(&request(8)) else {
        panic!("it is a request");
    };
    leader.node_mut().pending.push(request);
    leader.tick();
    leader.commit().unwrap();
    assert!(leader.node_mut().pending.is_empty());
}

#[test]
fn a_log_of_an_older_version_is_refused_as_such() {
    let before = Replica::<Counter>::VERSION - 1;
    let owner = encode(&("SMT bft log", before, 0_u32, 1_u64, [0_u8; 32]));
    let disk = Journal::open(ModelDisk::default(), &owner, |_| ()).unwrap().into_disk();
    let error = open_log(group(3), 0, disk).err().unwrap();
    assert!(matches!(error, LoggedError::Journal(JournalError::OlderFormat)));
}

#[test]
fn questions_let_no_log_grow() {
    let mut durable = durable();
    // The first tick of a replica that has just begun may have something to do.
    durable.tick();
    durable.commit().unwrap();
    let length = durable.log_length();
    let question = Status { from: 1, positions: Vec::new(), wants_state: false };
    for _ in 0..5 {
        durable.receive(&Message::Status(question.clone()).encode());
        durable.tick();
        durable.commit().unwrap();
    }
    assert_eq!(durable.log_length(), length);
}

/// The replica of a disk.
fn reopen(group: Group, disk: ModelDisk) -> Result<Core, LoggedError> {
    open_log(group, 0, disk)
}

#[test]
fn a_log_that_was_begun_anew_has_the_replica_as_it_was_and_the_inputs_that_wait() {
    let [mut leader, mut follower] = executed();
    let next = Request::sign(&client_key(2), 2, 1, ([0; 16], vec![0; 8]));
    leader.receive(&Message::Request(next).encode());
    let before = leader.node_mut().snapshot();
    let old = leader.move_to(ModelDisk::default()).unwrap();
    assert_eq!(leader.node_mut().snapshot(), before);
    let LogBytes { snapshot, growth, .. } = leader.log_bytes();
    assert_eq!((growth, snapshot), (0, before.len() as u64));
    // Killed before the new log has its place: what waited is lost, and nobody had an answer.
    let mut of_old = reopen(group(3), old).unwrap();
    assert_eq!((of_old.node().metrics(), of_old.replayed()), (leader.node().metrics(), 2));
    of_old.commit().unwrap();
    let counter = leader.node_mut().own_track().counter;
    leader.commit().unwrap();
    let after = leader.node_mut().snapshot();
    let mut again = reopen(group(3), leader.into_disk()).unwrap();
    assert_eq!(again.replayed(), 1);
    assert_eq!(again.node_mut().snapshot(), after);
    let outputs = again.commit().unwrap();
    assert_eq!(again.node_mut().own_track().counter, counter + 1, "the PREPARE of what waited");
    for output in outputs {
        if let Output::Node(1, bytes) | Output::Nodes(bytes) = output {
            follower.receive(&bytes);
        }
    }
    follower.commit().unwrap();
    assert_eq!(follower.node().metrics().executed, 2);
}

// Streams, views and checkpoints are bounded by the options, whatever came before.
#[test]
fn a_log_that_is_begun_anew_does_not_grow_with_age() {
    let mut small = group(3);
    small.options.retained = 16;
    small.keeps_history = false;
    let mut replicas = [0, 1].map(|it| open(small.clone(), it));
    let mut longest = [0, 0];
    for number in 1..=400 {
        let operation = ([0; 16], vec![0; 8]);
        let request = Request::sign(&client_key(1), 1, number, operation);
        replicas[0].receive(&Message::Request(request).encode());
        for _ in 0..3 {
            for from in 0..2 {
                for output in replicas[from].commit().unwrap() {
                    if let Output::Node(_, bytes) | Output::Nodes(bytes) = output {
                        replicas[1 - from].receive(&bytes);
                    }
                }
            }
        }
        for replica in &mut replicas {
            let LogBytes { snapshot, growth, .. } = replica.log_bytes();
            if growth >= snapshot.max(4096) {
                replica.move_to(ModelDisk::default()).unwrap();
            }
            let of_half = &mut longest[usize::from(number > 200)];
            *of_half = replica.log_length().max(*of_half);
        }
    }
    assert_eq!(replicas[0].node().metrics().executed, 400);
    assert!(longest[1] < longest[0] * 11 / 10, "{longest:?}");
    let Ok(again) = reopen(small, replicas.into_iter().next().unwrap().into_disk()) else {
        panic!("it is read again");
    };
    assert!(
        again.node().metrics().executed == 400 && again.replayed() < 200,
        "{}",
        again.replayed()
    );
}

/// The first statement of device 2 in an epoch.
fn hello(epoch: u64) -> Vec<u8> {
    let body = encode(&Statement::Hello { nonce: start_of(2, epoch).nonce });
    let said = Attested::new(&device_of(2, epoch).attest(&body).unwrap(), body);
    Message::Statement(said).encode()
}

/// The device of a replica in an epoch, without the replica.
fn device_of(device: u32, epoch: u64) -> Attestor {
    group(3).open(library(start_of(device, epoch))).unwrap().without_log()
}

fn start_of(device: u32, epoch: u64) -> Start {
    Start { device: DeviceId(device), epoch: Epoch(epoch), nonce: [epoch as u8; 16] }
}

/// A vote of device 2 in an epoch for another one of device 1.
fn vote_of(epoch: u64, newcomer: u64) -> Vec<u8> {
    let (mut device, own) = (device_of(2, epoch), start_of(2, epoch));
    let one = DeviceId(1);
    // A device that has restarted votes when others have told it where the newcomer stood.
    let ballots = [0, 1].map(|it| device_of(it, 1).vote(own, one).unwrap());
    device.synchronize(one, &ballots);
    let newcomer = Start { device: one, epoch: Epoch(newcomer), nonce: [1; 16] };
    let ballot = device.vote(newcomer, DeviceId(2)).unwrap();
    let said = Attested::new(&ballot.attestation, ballot.vote.encode().to_vec());
    Message::Statement(said).encode()
}

// Once, each of them was logged in each tick for ever: others repeat what a replica says that it
// does not have, and a replica that has restarted does not follow the old epochs of others.
#[test]
fn statements_of_a_stream_that_is_not_followed_let_no_log_grow() {
    let mut replica = durable();
    let mut device = device_of(2, 3);
    let mut said = |view| {
        let body = encode(&Statement::ViewChange { view });
        Message::Statement(Attested::new(&device.attest(&body).unwrap(), body)).encode()
    };
    let all = [said(1), said(2)];
    assert_eq!(growth(&mut replica, |it| all.iter().for_each(|bytes| it.receive(bytes))), 0);
    assert_eq!(epochs_of(&replica, 2), [1]);
    let Some(Message::Statement(said)) = Message::decode(&all[0]) else { panic!("it is one") };
    assert!(replica.node_mut().authenticate(&said).is_some(), "it is no forgery");
}

#[test]
fn a_vote_is_heard_before_its_turn_and_logged_once_in_whatever_order_votes_come() {
    let mut replica = durable();
    let [first, second, third] = [(2, 2), (3, 2), (2, 3)].map(|it| vote_of(it.0, it.1));
    let mut grows = |bytes: &[u8]| growth(&mut replica, |it| it.receive(bytes)) > 0;
    assert!(grows(&first) && grows(&second), "the later one of two for one epoch is newer");
    assert!(!grows(&first) && !grows(&second));
    assert!(grows(&third) && !grows(&second) && !grows(&third));
    assert_eq!(epochs_of(&replica, 2), [1]);
}

fn epochs_of(replica: &Core, device: u32) -> Vec<u64> {
    let streams = replica.node().streams.keys();
    streams.filter(|it| it.0 == device).map(|it| it.1).collect()
}

// Once, each of them stayed in the memory of all others.
#[test]
fn a_device_that_restarts_ever_again_takes_bounded_memory_of_others() {
    let mut replica = durable();
    for epoch in 2..=200 {
        replica.receive(&hello(epoch));
        replica.commit().unwrap();
        assert!(epochs_of(&replica, 2).len() <= 5, "epoch {epoch}");
    }
    // View 0 has the first one.
    assert_eq!(epochs_of(&replica, 2), [1, 197, 198, 199, 200]);
}

#[test]
fn an_epoch_that_was_forgotten_is_followed_again_once_a_view_has_it() {
    let mut replica = durable();
    for epoch in 2..=9 {
        replica.receive(&hello(epoch));
        replica.commit().unwrap();
    }
    assert_eq!(epochs_of(&replica, 2), [1, 6, 7, 8, 9]);
    replica.receive(&hello(3));
    replica.commit().unwrap();
    assert_eq!(epochs_of(&replica, 2), [1, 6, 7, 8, 9], "nobody has admitted it");
    // Others have, since they had heard of no later one.
    let (epochs, votes) = (vec![1, 1, 3], Vec::new());
    let opening = Opening { view: 1, epochs, start: 0, chain: [0; 32], votes };
    replica.node_mut().views.insert(1, View::new(opening, BTreeMap::new()));
    replica.receive(&hello(3));
    replica.commit().unwrap();
    assert_eq!(epochs_of(&replica, 2), [1, 3, 6, 7, 8, 9]);
    assert_eq!(replica.node_mut().streams[&(2, 3)].track.counter, 1, "it was taken");
}
