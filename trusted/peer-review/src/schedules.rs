// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Schedules of single rules: nodes whose messages a test carries by hand.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use smt_attestation::{DeviceId, Epoch, GroupSecret, SigningKey, Start};
use smt_attestor::{AttestorError, OutlivingDevice, OwnDevice};

use crate::audited::Suspicion;
use crate::authenticator::{Authenticator, body_digest};
use crate::entry::Input;
use crate::evidence::{Base, Evidence, Proof, Unproven};
use crate::group::{Group, GroupError, Options};
use crate::message::{Message, Segment};
use crate::node::{Node, NodeError, Output, Verdict};
use crate::state::{Fault, Made};
use crate::tree::Tree;

mod delivery;
mod evidence;

const NODES: u32 = 4;

fn key(node: u32) -> SigningKey {
    SigningKey::new(&[node as u8 + 1; 32])
}

fn group(options: Options) -> Arc<Group> {
    group_of(NODES, options)
}

fn group_of(nodes: u32, options: Options) -> Arc<Group> {
    let keys = (0..nodes).map(|it| key(it).public_key()).collect();
    let epochs = vec![1; nodes as usize];
    Arc::new(Group { stream: 5, keys, epochs, faults: 1, options })
}

fn device(group: &Group, node: u32) -> OwnDevice {
    group.library(node, key(node), GroupSecret::new([6; 32]))
}

fn tree() -> Tree {
    Tree::new(NODES, 2)
}

fn node(group: &Arc<Group>, own: u32) -> Node<Tree> {
    let tree = Tree::new(group.nodes(), 2);
    Node::new(group.clone(), device(group, own), [own as u8; 32], &tree).unwrap()
}

fn nodes(options: Options) -> Vec<Node<Tree>> {
    nodes_of(NODES, options)
}

fn nodes_of(nodes: u32, options: Options) -> Vec<Node<Tree>> {
    let group = group_of(nodes, options);
    (0..nodes).map(|it| node(&group, it)).collect()
}

/// Carries messages that `passes` lets through, until there are none.
fn carry(nodes: &mut [Node<Tree>], passes: impl Fn(u32, u32, &Message) -> bool) {
    loop {
        let mut carried = Vec::new();
        for (from, node) in (0..).zip(nodes.iter_mut()) {
            for output in node.outputs() {
                for (to, bytes) in output.to_nodes(from, node.group.nodes()) {
                    let message = Message::decode(bytes).unwrap();
                    if passes(from, to, &message) {
                        carried.push((from, to, bytes.to_vec()));
                    }
                }
            }
        }
        if carried.is_empty() {
            return;
        }
        carried.into_iter().for_each(|(from, to, bytes)| nodes[to as usize].receive(from, &bytes));
    }
}

fn pass(nodes: &mut [Node<Tree>], ticks: u32, passes: impl Fn(u32, u32, &Message) -> bool) {
    for _ in 0..ticks {
        nodes.iter_mut().for_each(Node::tick);
        carry(nodes, &passes);
    }
}

fn all(_: u32, _: u32, _: &Message) -> bool {
    true
}

/// The whole log of a node as evidence. No witness has asked, so nothing of it is forgotten.
fn log_of(node: &Node<Tree>) -> Evidence {
    let entries = node.host.log.after(0, usize::MAX);
    Evidence::Log { node: node.own, base: None, entries }
}

/// Puts an entry into a log that the application does not make.
fn lie(node: &mut Node<Tree>) {
    let sent = crate::Sent { to: 2, number: 1, body: body_digest(b"lie") };
    let made = Made { sent: vec![sent], bodies: vec![b"lie".to_vec()], delivered: Vec::new() };
    node.commit(Input::Local(b"part".to_vec()), made).unwrap();
}

fn count(node: &mut Node<Tree>, is_one: impl Fn(&Message) -> bool) -> usize {
    let outputs = node.outputs();
    let messages = outputs.iter().filter_map(|it| match it {
        Output::Node(_, bytes) | Output::Nodes(bytes) => Message::decode(bytes),
        Output::Client(..) | Output::Host(_) => None,
    });
    messages.filter(is_one).count()
}

#[test]
fn a_stream_reaches_all_nodes_and_nobody_is_suspected() {
    let mut nodes = nodes(Options::default());
    for _ in 0..5 {
        assert!(nodes[0].local(b"part".to_vec()));
        pass(&mut nodes, 20, all);
    }
    for node in &nodes {
        assert_eq!(node.application().count(), 5);
        assert!((0..NODES).all(|it| node.verdict(it) == Verdict::Trusted));
        let audited = (0..NODES).filter_map(|it| node.audited(it));
        assert!({ audited }.all(|it| it > 5));
    }
}

#[test]
fn a_log_that_is_older_than_its_device_ends_the_node() {
    let group = group(Options::default());
    let start = Start { device: DeviceId(0), epoch: Epoch(1), nonce: [0; 16] };
    let device = OutlivingDevice::start(start, GroupSecret::new([6; 32]), key(0));
    group.open(device.own_device()).unwrap().attest(b"a log that was lost").unwrap();
    let mut node = Node::new(group, device.own_device(), [0; 32], &tree()).unwrap();
    assert!(!node.local(b"part".to_vec()));
    let failure = node.failure().unwrap();
    assert!(matches!(failure, NodeError::OldLog { counter: 2, last: 0 }), "{failure}");
    assert!(!node.local(b"part".to_vec()) && node.outputs().is_empty());
}

#[test]
fn memory_is_bounded_also_when_nobody_answers() {
    let mut nodes = nodes(Options { retained: 50, ..Options::default() });
    for _ in 0..200 {
        assert!(nodes[0].local(b"part".to_vec()));
    }
    assert_eq!(nodes[0].host.log.kept(), 50);
    assert_eq!(nodes[0].host.outboxes[&1].count(), 50);
    // The oldest are kept: a receiver that comes back takes them first.
    carry(&mut nodes, |_, _, _| false);
    pass(&mut nodes, 3, |_, to, it| to == 1 && matches!(it, Message::Sent(_)));
    assert_eq!(nodes[1].application().count(), 8);
}

#[test]
fn entries_are_forgotten_when_all_witnesses_have_them() {
    let mut nodes = nodes(Options::default());
    for _ in 0..30 {
        nodes[0].local(b"part".to_vec());
        pass(&mut nodes, 5, all);
    }
    assert!(nodes[0].last() > 50, "{}", nodes[0].last());
    assert!(nodes[0].host.log.kept() < 20, "{}", nodes[0].host.log.kept());
    let mut nodes = self::nodes(Options::default());
    let is_deaf =
        |from: u32, _: u32, it: &Message| from != 2 || !matches!(it, Message::Audit { .. });
    for _ in 0..30 {
        nodes[0].local(b"part".to_vec());
        pass(&mut nodes, 5, is_deaf);
    }
    assert_eq!(nodes[0].host.log.kept() as u64, nodes[0].last());
}

/// A part of a node's log for a witness.
fn segment(node: &Node<Tree>, after: u64, most: usize) -> Segment {
    let entries = node.host.log.after(after, most);
    Segment { after, entries, receipts: Vec::new() }
}

#[test]
fn a_nonce_that_was_never_asked_for_puts_no_audit_off() {
    let mut nodes = nodes(Options::default());
    for _ in 0..30 {
        nodes[1].record(Input::Audit { witness: 2, nonce: [0; 16] }).unwrap();
    }
    lie(&mut nodes[1]);
    for tick in 0..120 {
        if tick % 8 == 0 {
            let shown = Message::Segment(segment(&nodes[1], tick / 8, 1));
            nodes[2].receive(1, &shown.encode());
            assert_eq!(nodes[2].audited(1), Some(tick / 8 + 1));
        }
        nodes[2].tick();
    }
    assert_eq!(nodes[2].verdict(1), Verdict::Suspected(vec![Suspicion::Audit]));
}

#[test]
fn a_witness_takes_no_entry_that_it_could_not_show_to_others() {
    let mut nodes = nodes(Options::default());
    nodes[0].local(b"part".to_vec());
    let sends = |_: u32, _: u32, it: &Message| matches!(it, Message::Sent(_));
    carry(&mut nodes, sends);
    // Node 1 has taken a message and sends one; its next entry covers both.
    nodes[1].record(Input::Audit { witness: 2, nonce: [1; 16] }).unwrap();
    let good = segment(&nodes[1], 0, 9);
    assert_eq!(good.entries.len(), 2);
    for place in [0, 1] {
        let mut spoiled = good.clone();
        spoiled.entries[place].signature[1][0] ^= 1;
        nodes[2].receive(1, &Message::Segment(spoiled).encode());
        assert_eq!(nodes[2].audited(1), Some(0), "entry {place}");
    }
    nodes[2].receive(1, &Message::Segment(good).encode());
    assert_eq!(nodes[2].audited(1), Some(2));
}

#[test]
fn a_question_that_is_repeated_is_answered_once_a_tick_and_its_end_at_once() {
    let mut nodes = nodes(Options { segment: 4, ..Options::default() });
    (0..9).for_each(|_| assert!(nodes[0].local(b"part".to_vec())));
    nodes[0].outputs();
    let ask = |after: u64| Message::Audit { after, nonce: [1; 16] }.encode();
    let is_segment = |it: &Message| matches!(it, Message::Segment(_));
    (0..10).for_each(|_| nodes[0].receive(1, &ask(0)));
    assert_eq!(count(&mut nodes[0], is_segment), 1);
    // The log has ten entries, of which the last one is the nonce.
    for (after, answers) in [(4, 1), (4, 0), (8, 1), (10, 0), (0, 0)] {
        nodes[0].receive(1, &ask(after));
        assert_eq!(count(&mut nodes[0], is_segment), answers, "after {after}");
    }
    nodes[0].tick();
    nodes[0].receive(1, &ask(8));
    assert_eq!(count(&mut nodes[0], is_segment), 1);
}

#[test]
fn a_node_is_one_of_a_group_that_can_run() {
    let good = group(Options::default());
    let new = |group: Arc<Group>, own: u32| {
        let device = device(&good, own);
        Node::new(group, device, [0; 32], &tree()).err()
    };
    assert!(new(good.clone(), 0).is_none());
    let none = new(good.clone(), NODES);
    assert!(matches!(none, Some(NodeError::Group(GroupError::NoNode(NODES)))), "{none:?}");
    let bad = group(Options { interval: 1, ..Options::default() });
    let refused = new(bad, 0);
    let is_it = |it: &GroupError| *it == GroupError::Option { name: "interval", least: 2 };
    assert!(matches!(&refused, Some(NodeError::Group(it)) if is_it(it)), "{refused:?}");
    let mut restarted = Group::clone(&good);
    restarted.epochs[0] = 2;
    let refused = Node::new(Arc::new(restarted), device(&good, 0), [0; 32], &tree()).err();
    let expected = matches!(
        refused,
        Some(NodeError::Device(AttestorError::OtherEpoch { device: 1, group: 2 }))
    );
    assert!(expected, "{refused:?}");
}

#[test]
fn an_application_that_is_not_fit_for_the_group_ends_its_node() {
    // A source of ten nodes has children that the group does not have.
    let (group, tree) = (group(Options::default()), Tree::new(10, 5));
    let mut node = Node::new(group.clone(), device(&group, 0), [0; 32], &tree).unwrap();
    assert!(!node.local(b"part".to_vec()));
    assert_eq!(node.last(), 0);
    let failure = node.failure().unwrap();
    assert!(matches!(failure, NodeError::Application(Fault::Unfit)), "{failure}");
}
