// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Nodes with logs: what is written, what is refused, what is answered.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use smt_attestation::{Epoch, SigningKey, Start};
use smt_attestor::Attested;
use smt_attestor::OutlivingDevice;
use smt_journal::{Journal, JournalError, LogBytes, ModelDisk, SnapshotLog};
use smt_replica::{KeyValue, RefusalReason, Request, first_number};

use super::*;
use crate::accusation::{Accusation, Made};
use crate::message::{Statement, Status};
use smt_replica::sim::{client_key, node_key, secret};

use crate::sim::group::{group, identity, start};

type Core = Logged<Node<KeyValue>, ModelDisk>;

fn open(node: u32, disk: ModelDisk) -> Result<Core, LoggedError> {
    Node::open(Arc::new(group(3)), identity(node), KeyValue::default(), disk)
}

/// Bytes by which the log has grown.
fn growth(durable: &mut Core, act: impl FnOnce(&mut Core)) -> u64 {
    let length = durable.log_length();
    act(durable);
    durable.commit().unwrap();
    durable.log_length() - length
}

/// All that follows, of which `to` gets what is for single nodes.
fn deliver(from: &mut Core, to: &mut Core) {
    for output in from.commit().unwrap() {
        if let Output::Node(_, bytes) = output {
            to.receive(&bytes);
        }
    }
}

fn request(client: u32, number: u64, bytes: usize) -> Vec<u8> {
    let body = ([0; 16], vec![0; bytes]);
    Message::Request(Request::sign(&client_key(1), client, number, body)).encode()
}

#[test]
fn messages_that_change_nothing_let_no_log_grow() {
    let mut durable = open(0, ModelDisk::default()).unwrap();
    let body = encode(&Statement::Freeze { configuration: 1 });
    let forged = Message::Statement(Attested { attestation: [[0; 32]; 2], body }).encode();
    let status = Message::Status(Status { from: 1, counters: Vec::new(), newest: 0 }).encode();
    let unsigned = request(2, 1, 8);
    let too_long = request(1, 1, 65);
    for bytes in [&forged, &status, &unsigned, &too_long, &vec![255; 9]] {
        assert_eq!(growth(&mut durable, |it| it.receive(bytes)), 0);
    }
    assert_eq!(growth(&mut durable, Core::tick), 0);
    assert!(growth(&mut durable, |it| it.receive(&request(1, 1, 8))) > 0);
    assert_eq!(growth(&mut durable, |it| it.receive(&request(1, 1, 8))), 0, "it waits");
    assert!(growth(&mut durable, Core::tick) > 0, "the request gets older");
}

#[test]
fn many_questions_of_a_node_have_one_answer_in_each_tick() {
    let mut head = open(0, ModelDisk::default()).unwrap();
    head.receive(&request(1, 1, 8));
    head.commit().unwrap();
    let status = Message::Status(Status { from: 1, counters: Vec::new(), newest: 0 }).encode();
    let mut answers = |time_passes: bool| {
        if time_passes {
            head.tick();
        }
        (0..9).for_each(|_| head.receive(&status));
        let outputs = head.commit().unwrap();
        outputs.iter().filter(|it| matches!(it, Output::Node(1, _))).count()
    };
    assert_eq!([answers(false), answers(false), answers(true), answers(false)], [1, 0, 1, 0]);
}

#[test]
fn a_request_that_was_answered_is_answered_once_in_each_tick_however_often_it_comes() {
    let mut head = open(0, ModelDisk::default()).unwrap();
    let mut next = open(1, ModelDisk::default()).unwrap();
    head.receive(&request(1, 1, 8));
    deliver(&mut head, &mut next);
    deliver(&mut next, &mut head);
    head.commit().unwrap();
    assert_eq!(head.node().metrics().committed, 1);
    let mut replies = |bytes: usize| {
        (0..9).for_each(|_| head.receive(&request(1, 1, bytes)));
        let outputs = head.commit().unwrap();
        head.tick();
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
    let [first, again] = [replies(8), replies(8)];
    assert!(matches!(first.as_slice(), [Ok(_)]) && first == again, "{first:?}");
    // Another request under its number, which no correct client makes.
    assert_eq!(replies(9), [Err((RefusalReason::NumberIsUsed, false))]);
}

// Once, both had one place among the questions, and the last one had the answer: a liar that sent
// an old request again and again kept the client from the answer to its new one.
#[test]
fn an_executed_request_has_its_answer_again_whatever_other_request_of_its_client_comes_again() {
    let mut nodes: Vec<Core> = (0..3).map(|it| open(it, ModelDisk::default()).unwrap()).collect();
    let [old, new] = [1, first_number(1) + 1].map(|number| request(1, number, 8));
    for request in [&old, &new] {
        nodes[0].receive(request);
        settle(&mut nodes);
    }
    let head = &mut nodes[0];
    [&new, &old].iter().for_each(|it| head.receive(it));
    let outputs = head.commit().unwrap();
    assert_eq!(outputs.iter().filter(|it| matches!(it, Output::Client(1, _))).count(), 2);
}

#[test]
fn a_statement_is_in_the_log_once() {
    let mut head = open(0, ModelDisk::default()).unwrap();
    head.receive(&request(1, 1, 8));
    let said = head.commit().unwrap().into_iter().find_map(|it| match it {
        Output::Node(1, bytes) => Some(bytes),
        _ => None,
    });
    let said = said.unwrap();
    let mut next = open(1, ModelDisk::default()).unwrap();
    assert!(growth(&mut next, |it| it.receive(&said)) > 0);
    assert_eq!(growth(&mut next, |it| it.receive(&said)), 0);
    assert_eq!(growth(&mut head, |it| it.receive(&said)), 0, "it is the head's own");
}

#[test]
fn copies_of_a_message_that_come_before_one_commit_are_in_the_log_once() {
    let [once, often] = [1, 5].map(|copies| {
        let mut durable = open(0, ModelDisk::default()).unwrap();
        growth(&mut durable, |it| {
            (0..copies).for_each(|_| it.receive(&request(1, 1, 8)));
        })
    });
    assert!(once > 0 && once == often, "{once} {often}");
}

// One more byte, and a device that lies fills the memory and the disks of all others.
#[test]
fn a_statement_that_is_longer_than_the_longest_order_is_neither_kept_nor_logged() {
    let mut liar = open(1, ModelDisk::default()).unwrap();
    let mut said = |operation: usize| {
        let body = ([0; 16], vec![0; operation]);
        let request = Request::sign(&client_key(1), 1, 1, body);
        let (configuration, place, output) = (0, 1, [0; 32]);
        let order = Statement::Order { configuration, place, request, output };
        let said = liar.node_mut().attest(&order).unwrap();
        (said.body.len(), Message::Statement(said).encode())
    };
    let (length, bytes) = said(64 + 1024);
    assert!(length > 64 + 1024);
    let mut durable = open(0, ModelDisk::default()).unwrap();
    assert_eq!(growth(&mut durable, |it| it.receive(&bytes)), 0);
    durable.node_mut().receive(&bytes);
    assert!(durable.node_mut().streams[1].lacks(1, 1), "it was not kept");
    let (length, bytes) = said(64);
    assert!(length < 64 + 1024);
    assert!(growth(&mut durable, |it| it.receive(&bytes)) > 0);
}

// Numbers of variable length have more than one form. Once, each form of a message was in the
// log, up to the next commit.
#[test]
fn copies_of_a_message_in_other_bytes_are_in_the_log_once() {
    let bytes = request(1, 1, 8);
    let other = [&[0x80, 0x00], &bytes[1..]].concat();
    assert_eq!(Message::decode(&other), Message::decode(&bytes));
    let both = [&[&bytes, &bytes], &[&bytes, &other], &[&other, &bytes]].map(|copies| {
        let mut durable = open(0, ModelDisk::default()).unwrap();
        growth(&mut durable, |it| copies.iter().for_each(|bytes| it.receive(bytes)))
    });
    assert!(both[0] == both[1] && both[0] == both[2], "{both:?}");
}

#[test]
fn a_configuration_is_taken_with_its_proof_and_kept() {
    let mut durable = open(2, ModelDisk::default()).unwrap();
    let group = group(3);
    let by = [0, 1].map(|it| Accusation::sign(&group, it, 4, &node_key(it)));
    let mut made = Made { number: 5, accusations: by.to_vec() };
    made.accusations.pop();
    assert_eq!(growth(&mut durable, |it| it.receive(&Message::Made(made.clone()).encode())), 0);
    assert_eq!(durable.node().made(), None);
    made.accusations.push(by[1]);
    assert!(growth(&mut durable, |it| it.receive(&Message::Made(made.clone()).encode())) > 0);
    assert_eq!(growth(&mut durable, |it| it.receive(&Message::Made(made.clone()).encode())), 0);
    let again = open(2, durable.into_disk()).unwrap();
    assert_eq!(again.node().made(), Some(&made));
    assert_eq!(again.node().newest(), 5);
}

#[test]
fn a_log_of_an_older_version_is_refused_as_such() {
    let before = <Node<KeyValue> as smt_replica::Node>::VERSION - 1;
    let owner = encode(&("SMT chain log", before, 0_u32, [0_u8; 32]));
    let disk = Journal::open(ModelDisk::default(), &owner, |_| ()).unwrap().into_disk();
    let error = open(0, disk).err().unwrap();
    assert!(matches!(error, LoggedError::Journal(JournalError::OlderFormat)));
}

#[test]
fn a_log_of_another_node_is_refused() {
    let disk = open(0, ModelDisk::default()).unwrap().into_disk();
    let error = open(1, disk).err().unwrap();
    assert!(matches!(error, LoggedError::Journal(JournalError::OtherOwner)));
}

// Once, the check of the statement failed, and the node had no input at which it would have ended.
#[test]
fn an_idle_node_ends_when_its_device_has() {
    let device = OutlivingDevice::start(start(0), secret(), SigningKey::new(&[5; 32]));
    let identity = Identity { device: device.own_device(), reply_key: node_key(0) };
    let group = Arc::new(group(3));
    let mut node = Node::open(group, identity, KeyValue::default(), ModelDisk::default()).unwrap();
    let mut other = open(1, ModelDisk::default()).unwrap();
    let said = other.node_mut().attest(&Statement::Freeze { configuration: 1 }).unwrap();
    device.end_for(u32::MAX);
    assert!(node.commit().is_ok(), "nothing has come");
    node.receive(&Message::Statement(said).encode());
    assert!(matches!(node.commit(), Err(LoggedError::Device(AttestorError::Device(_)))));
}

#[test]
fn a_node_whose_device_is_in_another_epoch_than_the_group_has_of_it_does_not_start() {
    let start = Start { epoch: Epoch(2), ..start(0) };
    let device = OutlivingDevice::start(start, secret(), SigningKey::new(&[5; 32]));
    let identity = Identity { device: device.own_device(), reply_key: node_key(0) };
    let open = |group: Group, identity| {
        Node::open(Arc::new(group), identity, KeyValue::default(), ModelDisk::default())
    };
    let error = open(group(3), identity).err().unwrap();
    let expected = AttestorError::OtherEpoch { device: 2, group: 1 };
    assert_eq!(error.to_string(), expected.to_string());
    let mut of_epoch = group(3);
    of_epoch.epochs[0] = 2;
    let identity = Identity { device: device.own_device(), reply_key: node_key(0) };
    assert!(open(of_epoch, identity).is_ok());
}

/// Delivers all messages between the nodes until there are none.
fn settle(nodes: &mut [Core]) {
    loop {
        let mut is_quiet = true;
        for from in 0..nodes.len() {
            for output in nodes[from].commit().unwrap() {
                let (to, bytes) = match output {
                    Output::Node(to, bytes) => (Some(to as usize), bytes),
                    Output::Nodes(bytes) => (None, bytes),
                    Output::Client(..) | Output::Host(_) => continue,
                };
                for (number, node) in nodes.iter_mut().enumerate() {
                    if number != from && to.is_none_or(|to| to == number) {
                        is_quiet = false;
                        node.receive(&bytes);
                    }
                }
            }
        }
        if is_quiet {
            return;
        }
    }
}

#[test]
fn a_log_that_was_begun_anew_has_the_node_as_it_was_and_the_inputs_that_wait() {
    let mut nodes: Vec<Core> = (0..3).map(|it| open(it, ModelDisk::default()).unwrap()).collect();
    for number in 1..=10 {
        nodes[0].receive(&request(1, number, 8));
        settle(&mut nodes);
        nodes.iter_mut().for_each(Core::tick);
        settle(&mut nodes);
    }
    let mut head = nodes.swap_remove(0);
    assert!(head.node().metrics().left_out > 0, "the snapshot has a state in place of entries");
    head.receive(&request(1, 11, 8));
    let before = head.node_mut().snapshot();
    let old = head.move_to(ModelDisk::default()).unwrap();
    assert_eq!(head.node_mut().snapshot(), before);
    let LogBytes { snapshot, growth, .. } = head.log_bytes();
    assert_eq!((growth, snapshot), (0, before.len() as u64));
    // Killed before the new log has its place: what waited is lost, and nobody had an answer.
    assert_eq!(open(0, old).unwrap().node_mut().snapshot(), before);
    head.commit().unwrap();
    let after = head.node_mut().snapshot();
    let answered = head.node().answered.clone();
    let again = open(0, head.into_disk()).unwrap();
    assert_eq!((again.replayed(), again.node().snapshot()), (1, after));
    assert_eq!(again.node().own_track().counter, 11, "it has ordered what waited");
    assert_eq!(again.node().answered, answered);
}

// Once, all entries stayed in memory, and the log on disk had each input since the beginning.
#[test]
fn a_log_and_its_snapshot_do_not_grow_with_age_while_all_nodes_run() {
    let mut small = group(3);
    (small.options.retained, small.keeps_history) = (16, false);
    let small = Arc::new(small);
    let open =
        |number, disk| Node::open(small.clone(), identity(number), KeyValue::default(), disk);
    let mut nodes: Vec<Core> = (0..3).map(|it| open(it, ModelDisk::default()).unwrap()).collect();
    let mut longest = [0, 0];
    for number in 1..=400 {
        nodes[0].receive(&request(1, number, 8));
        settle(&mut nodes);
        if number % 8 == 0 {
            nodes.iter_mut().for_each(Core::tick);
            settle(&mut nodes);
        }
        for node in &mut nodes {
            let LogBytes { snapshot, growth, .. } = node.log_bytes();
            if growth >= snapshot.max(4096) {
                node.move_to(ModelDisk::default()).unwrap();
            }
            let of_half = &mut longest[usize::from(number > 200)];
            *of_half = node.log_length().max(*of_half);
        }
    }
    assert!(
        nodes.iter().all(|it| it.node().metrics().left_out >= 380),
        "{:?}",
        nodes[0].node().metrics()
    );
    assert!(longest[1] < longest[0] * 11 / 10, "{longest:?}");
    let again = open(0, nodes.swap_remove(0).into_disk()).unwrap();
    assert_eq!(again.node().metrics().committed, 400);
    assert!(again.replayed() < 200, "{}", again.replayed());
}
