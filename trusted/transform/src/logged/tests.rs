// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Nodes with logs: what is written, what is refused, what is answered.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::cell::Cell;

use super::*;
use crate::caller::Caller;
use crate::counter::Counter;
use crate::message::Status;
use crate::protocol::Effect;
use smt_replica::sim::client_key;

use crate::sim::group::{group, identity};
use smt_journal::{Journal, JournalError, ModelDisk};
use smt_replica::{Proof, Reply, Request};

type Core = Logged<Node<Counter>, ModelDisk>;
type Error = LoggedError<NodeError>;

fn open(node: u32, disk: ModelDisk) -> Result<Core, Error> {
    Node::open(Arc::new(group(3)), identity(node), |own| Counter::new(own, 3), disk)
}

/// Nodes 0, the leader, to 2.
fn nodes() -> [Core; 3] {
    [0, 1, 2].map(|it| open(it, ModelDisk::default()).unwrap())
}

/// Bytes by which the log has grown, with the steps that follow.
fn growth<P: Protocol>(
    durable: &mut Logged<Node<P>, ModelDisk>,
    act: impl FnOnce(&mut Logged<Node<P>, ModelDisk>),
) -> u64 {
    let length = durable.log_length();
    act(durable);
    (0..2).for_each(|_| drop(durable.commit().unwrap()));
    durable.log_length() - length
}

/// Commits and delivers until nothing is under way, and returns what clients are sent.
fn settle(nodes: &mut [Core]) -> Vec<Vec<u8>> {
    let mut answers = Vec::new();
    loop {
        let mut sent = Vec::new();
        for (from, node) in nodes.iter_mut().enumerate() {
            sent.extend(node.commit().unwrap().into_iter().map(|it| (from, it)));
        }
        if sent.is_empty() {
            return answers;
        }
        for (from, output) in sent {
            match output {
                Output::Node(to, bytes) => {
                    // One that is off hears nothing.
                    let to = nodes.get_mut(to as usize);
                    to.into_iter().for_each(|it| it.receive(&bytes));
                }
                Output::Nodes(bytes) => {
                    let others = nodes.iter_mut().enumerate().filter(|it| it.0 != from);
                    others.for_each(|it| it.1.receive(&bytes));
                }
                Output::Client(_, bytes) => answers.push(bytes),
            }
        }
    }
}

/// A request of a process of client 1.
fn request_of(process: u8, number: u64, operation: &[u8]) -> Vec<u8> {
    let body = ([process; 16], operation.to_vec());
    Message::Request(Request::sign(&client_key(1), 1, number, body)).encode()
}

fn request(number: u64, operation: &[u8]) -> Vec<u8> {
    request_of(0, number, operation)
}

fn add(number: u64, added: u64) -> Vec<u8> {
    request(number, &added.to_be_bytes())
}

/// A question of node 1, which has nothing.
fn question() -> Vec<u8> {
    Message::Status(Status { from: 1, held: vec![0; 3] }).encode()
}

/// A step of which one bit of the body is another one.
fn altered(step: &[u8]) -> Vec<u8> {
    let Some(Message::Step(mut step)) = Message::decode(step) else {
        panic!("it is a step");
    };
    *step.body.last_mut().unwrap() ^= 1;
    Message::Step(step).encode()
}

#[test]
fn messages_that_change_nothing_let_no_log_grow() {
    let [mut durable, mut other, _] = nodes();
    other.receive(&add(1, 5));
    let outputs = other.commit().unwrap();
    other.commit().unwrap();
    let Some(Output::Nodes(step)) = outputs.first() else {
        panic!("it makes a step");
    };
    let forged = altered(step);
    let unsigned =
        Message::Request(Request::sign(&client_key(2), 1, 1, ([0; 16], vec![0; 8]))).encode();
    let (request_digest, proof) = ([0; 32], Proof::default());
    let reply = Reply {
        replica: 1,
        view: 0,
        client: 1,
        number: 1,
        request: request_digest,
        result: Ok(Vec::new()),
        proof,
    };
    let endorsement = Message::Endorsement(reply.sign(&client_key(1))).encode();
    let too_long = request(1, &[0; 65]);
    for bytes in [&forged, &question(), &unsigned, &endorsement, &too_long, &vec![255; 9]] {
        assert_eq!(growth(&mut durable, |it| it.receive(bytes)), 0);
    }
    assert_eq!(growth(&mut durable, Logged::tick), 0);
    assert!(growth(&mut durable, |it| it.receive(&add(1, 5))) > 0);
    assert!(growth(&mut durable, Logged::tick) > 0, "a timer is armed");
    assert!(growth(&mut durable, |it| it.receive(step)) > 0);
    assert_eq!(growth(&mut durable, |it| it.receive(step)), 0, "it is known");
    assert_eq!(growth(&mut other, |it| it.receive(step)), 0, "it is its own");
}

#[test]
fn nodes_that_are_opened_again_have_the_steps_that_they_had_and_go_on() {
    let mut nodes = nodes();
    nodes.iter_mut().for_each(|it| it.receive(&add(1, 5)));
    assert!(!settle(&mut nodes).is_empty());
    let before: Vec<_> = nodes.iter().map(|it| it.node().made).collect();
    let mut nodes: Vec<_> =
        (0..).zip(nodes).map(|it| open(it.0, it.1.into_disk()).unwrap()).collect();
    let after: Vec<_> = nodes.iter().map(|it| it.node().made).collect();
    assert_eq!(after, before);
    assert!(nodes.iter().all(|it| it.replayed() > 0));
    nodes.iter_mut().for_each(|it| it.receive(&add(2, 6)));
    let answers = settle(&mut nodes);
    let sums = answers.iter().filter_map(|it| match Message::decode(it) {
        Some(Message::Endorsement(it)) => Some((it.number, it.result.unwrap())),
        _ => None,
    });
    assert_eq!(sums.collect::<Vec<_>>(), vec![(2, 11_u64.to_be_bytes().to_vec()); 3]);
    assert!(nodes.iter().all(|it| it.node().faulty().next().is_none()));
}

#[test]
fn a_node_that_lost_its_outputs_sends_its_steps_when_it_is_asked() {
    let [mut durable, ..] = nodes();
    durable.receive(&add(1, 5));
    drop(durable.commit().unwrap());
    let mut again = open(0, durable.into_disk()).unwrap();
    let mut steps = || {
        again.receive(&question());
        again.tick();
        let outputs = again.commit().unwrap();
        outputs.into_iter().filter(|it| matches!(it, Output::Node(1, _))).count()
    };
    // It could be that the first ones are on their way.
    assert_eq!([steps(), steps(), steps(), steps(), steps()], [0, 0, 0, 1, 0]);
}

// Once, 64 steps went to it in each tick, and more were made.
#[test]
fn a_node_that_was_off_catches_up_while_the_others_go_on() {
    let mut nodes = nodes();
    let mut number = 0;
    let mut load = |nodes: &mut [Core], count| {
        for _ in 0..count {
            number += 1;
            nodes.iter_mut().for_each(|it| it.receive(&add(number, 1)));
            settle(nodes);
        }
    };
    let steps = |node: &Core| node.node().taken(0).unwrap();
    load(&mut nodes[..2], 1200);
    assert!(steps(&nodes[0]) > 2000 && steps(&nodes[2]) == 0);
    for _ in 0..20 {
        nodes.iter_mut().for_each(Logged::tick);
        load(&mut nodes, 60);
    }
    assert_eq!(steps(&nodes[2]), steps(&nodes[0]));
}

#[test]
fn requests_without_a_reply_are_taken_so_often_in_a_tick_as_a_process_has_places() {
    let [mut durable, ..] = nodes();
    // It is no number, and the counter does nothing.
    let mut steps = |numbers: std::ops::Range<u64>| {
        let before = durable.node().made.count;
        for number in numbers {
            (0..3).for_each(|_| durable.receive(&request(number, b"none")));
            durable.commit().unwrap();
        }
        durable.tick();
        durable.commit().unwrap();
        durable.node().made.count - before
    };
    assert_eq!([steps(1..2), steps(1..2), steps(2..99), steps(99..102)], [1, 1, 32, 3]);
    let made = durable.node().made;
    assert_eq!(open(0, durable.into_disk()).unwrap().node().made, made);
}

/// A node that answers each request itself, and what it is sent and sends.
fn answers(node: &mut Logged<Node<Fixed>, ModelDisk>, requests: &[Vec<u8>]) -> (usize, u64) {
    let before = node.node().made.count;
    requests.iter().for_each(|it| node.receive(it));
    let outputs = node.commit().unwrap();
    let answers = outputs.iter().filter(|it| matches!(it, Output::Client(1, _))).count();
    (answers, node.node().made.count - before)
}

#[test]
fn all_requests_in_progress_of_several_processes_of_a_client_are_answered_and_answered_again() {
    let mut node =
        Node::open(Arc::new(group(3)), identity(0), |_| Fixed(1), ModelDisk::default()).unwrap();
    for process in 0..8 {
        let all: Vec<_> = (1..=32).map(|it| request_of(process, it, b"")).collect();
        assert_eq!(answers(&mut node, &all), (32, 32), "process {process}");
        node.tick();
        assert_eq!(answers(&mut node, &all), (32, 0), "they come again to process {process}");
        node.tick();
    }
}

// Everybody who has seen them may send them: else a liar's copies of old requests would be steps
// without end, or keep the client's own ones out.
#[test]
fn old_requests_are_no_steps_and_those_whose_answers_are_gone_are_a_few_and_keep_none_out() {
    let mut node =
        Node::open(Arc::new(group(3)), identity(0), |_| Fixed(1), ModelDisk::default()).unwrap();
    let old: Vec<_> = (1..=64).map(|it| request_of(9, it, b"")).collect();
    for it in &old {
        assert_eq!(answers(&mut node, std::slice::from_ref(it)), (1, 1));
    }
    assert_eq!(answers(&mut node, &old[..32]), (0, 0), "later ones of their places were steps");
    for process in 0..8 {
        let all: Vec<_> = (1..=32).map(|it| request_of(process, it, b"")).collect();
        answers(&mut node, &all);
    }
    node.tick();
    let mut all = old[32..].to_vec();
    all.extend((33..=64).map(|it| request_of(0, it, b"")));
    assert_eq!(answers(&mut node, &all), (4 + 32, 4 + 32));
}

#[test]
fn many_questions_of_a_node_have_one_answer_in_each_tick() {
    let mut nodes = nodes();
    nodes.iter_mut().for_each(|it| it.receive(&add(1, 5)));
    settle(&mut nodes);
    let mut answers = |time_passes: bool| {
        if time_passes {
            nodes[0].tick();
        }
        (0..9).for_each(|_| nodes[0].receive(&add(1, 5)));
        let outputs = nodes[0].commit().unwrap();
        outputs.iter().filter(|it| matches!(it, Output::Client(1, _))).count()
    };
    assert_eq!([answers(false), answers(false), answers(true), answers(false)], [1, 0, 1, 0]);
}

#[test]
fn copies_of_a_message_that_come_before_one_commit_are_in_the_log_once() {
    let bytes = add(1, 5);
    let other = [&[0x82, 0x00], &bytes[1..]].concat();
    assert_eq!(Message::decode(&other), Message::decode(&bytes));
    let all = [vec![&bytes], vec![&bytes, &bytes], vec![&other, &bytes]].map(|copies| {
        let [mut durable, ..] = nodes();
        growth(&mut durable, |it| copies.iter().for_each(|bytes| it.receive(bytes)))
    });
    assert!(all[0] > 0 && all[0] == all[1] && all[0] == all[2], "{all:?}");
}

#[test]
fn a_log_of_another_node_group_or_version_is_refused() {
    let disk = || open(0, ModelDisk::default()).unwrap().into_disk();
    let error = open(1, disk()).err().unwrap();
    assert!(matches!(error, Error::Journal(JournalError::OtherOwner)));
    let mut other = group(3);
    other.clients.remove(&2);
    let error = Node::open(Arc::new(other), identity(0), |own| Counter::new(own, 3), disk());
    assert!(matches!(error.err().unwrap(), Error::Journal(JournalError::OtherOwner)));
    let owner = encode(&("SMT transform log", 1_u32, 0_u32, 1_u64, [0_u8; 32]));
    let older = Journal::open(ModelDisk::default(), &owner, |_| ()).unwrap().into_disk();
    let error = open(0, older).err().unwrap();
    assert!(matches!(error, Error::Journal(JournalError::OlderFormat)));
}

/// A protocol that answers each request with a number of its own.
struct Fixed(u8);

impl Protocol for Fixed {
    fn message(&mut self, _: u32, _: &[u8]) -> Vec<Effect> {
        Vec::new()
    }

    fn timeout(&mut self, _: u32) -> Vec<Effect> {
        Vec::new()
    }

    fn request(&mut self, caller: Caller, number: u64, _: &[u8]) -> Vec<Effect> {
        vec![Effect::Reply { caller, number, answer: vec![self.0] }]
    }
}

#[test]
fn a_program_that_makes_other_steps_of_its_log_is_refused() {
    let open =
        |answer: u8, disk| Node::open(Arc::new(group(3)), identity(0), |_| Fixed(answer), disk);
    let mut durable = open(1, ModelDisk::default()).unwrap();
    assert!(growth(&mut durable, |it| it.receive(&add(1, 5))) > 0);
    let disk = durable.into_disk();
    assert!(open(1, disk.clone()).is_ok());
    assert!(matches!(open(2, disk).err().unwrap(), Error::OtherStatements(1)));
}

#[test]
fn a_step_that_is_too_long_is_not_attested_until_the_group_permits_it() {
    let open = |step, disk| {
        let mut group = group(3);
        group.options.step = step;
        Node::open(Arc::new(group), identity(0), |_| Fixed(1), disk)
    };
    let mut durable = open(116, ModelDisk::default()).unwrap();
    durable.receive(&add(1, 5));
    let error = durable.commit().unwrap_err().to_string();
    assert!(error.starts_with("the protocol: its effects on request 1 of client 1 "), "{error}");
    assert!(error.ends_with("a step of this group has at most 116"), "{error}");
    assert_eq!(durable.node().made.count, 0);
    let disk = durable.into_disk();
    let is_too_long = |it| matches!(it, Error::Node(NodeError::StepTooLong { .. }));
    assert!(is_too_long(open(116, disk.clone()).err().unwrap()));
    assert_eq!(open(117, disk).unwrap().node().made.count, 1);
}

#[test]
fn a_protocol_that_is_not_deterministic_stops_its_node_now_and_after_a_restart() {
    let machines = Cell::new(0);
    let chance = |_| {
        machines.set(machines.get() + 1);
        Fixed(machines.get())
    };
    let open = |disk| Node::open(Arc::new(group(3)), identity(0), chance, disk);
    let mut durable = open(ModelDisk::default()).unwrap();
    durable.receive(&add(1, 5));
    let is_found = |it| matches!(it, Error::Node(NodeError::NotDeterministic(_)));
    assert!(is_found(durable.commit().unwrap_err()));
    assert!(is_found(open(durable.into_disk()).err().unwrap()));
}
