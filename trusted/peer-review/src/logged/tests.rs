// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Nodes of a tree on disks that lose and tear what was not synced.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use smt_attestation::{DeviceId, Epoch};
use smt_attestor::OutlivingDevice;
use smt_journal::{Journal, JournalError, LogBytes, ModelDisk, SnapshotLog};
use smt_simulation::Random;

use super::*;
use crate::group::Options;
use crate::node::Verdict;
use crate::tree::{Delivery, Tree};

const NODES: u32 = 4;

type Core = Logged<Node<Tree>, ModelDisk>;
type Error = LoggedError<NodeError>;

fn seed(node: u32) -> [u8; 32] {
    [node as u8 + 1; 32]
}

fn identity(node: u32) -> Identity {
    Identity::of_seed(&group(), node, &seed(node))
}

fn group() -> Arc<Group> {
    let keys = (0..NODES).map(|it| SigningKey::new(&seed(it)).public_key()).collect();
    let options = Options { interval: 16, ..Options::default() };
    let epochs = vec![1; NODES as usize];
    Arc::new(Group { stream: 7, keys, epochs, faults: 1, options })
}

/// A node, and the parts of the stream that its host has.
struct Host {
    core: Option<Core>,
    own: u32,
    /// A device that is not killed with the node; nothing for a kernel in the node's process.
    device: Option<OutlivingDevice>,
    parts: BTreeMap<u64, Vec<u8>>,
}

impl Host {
    fn new(own: u32) -> Self {
        let mut host = Self { core: None, own, device: None, parts: BTreeMap::new() };
        host.open(ModelDisk::default()).unwrap();
        host
    }

    /// A node whose device outlives it.
    fn with_process(own: u32) -> Self {
        let start = Start { device: DeviceId(own), epoch: Epoch(1), nonce: [0; 16] };
        let (secret, key) = (GroupSecret::new([own as u8; 32]), SigningKey::new(&seed(own)));
        let device = Some(OutlivingDevice::start(start, secret, key));
        let mut host = Self { core: None, own, device, parts: BTreeMap::new() };
        host.open(ModelDisk::default()).unwrap();
        host
    }

    fn open(&mut self, disk: ModelDisk) -> Result<(), Error> {
        let parts = &mut self.parts;
        let keep = |bytes: Vec<u8>| keep(parts, &bytes);
        let tree = Tree::new(NODES, 2);
        let identity = match &self.device {
            None => identity(self.own),
            Some(it) => {
                let nonces = Zeroizing::new([self.own as u8; 32]);
                Identity { device: it.own_device(), nonces }
            }
        };
        let mut core = Node::open(group(), identity, &tree, disk, keep)?;
        // For the node to wait for its log often.
        core.node_mut().device.stop_after(2);
        self.core = Some(core);
        Ok(())
    }

    fn core(&mut self) -> &mut Core {
        self.core.as_mut().unwrap()
    }

    /// Commits, and gives the messages with their receivers.
    fn commit(&mut self) -> Vec<(u32, Vec<u8>)> {
        let outputs = self.core().commit().unwrap();
        let mut sent = Vec::new();
        for output in outputs {
            if let Output::Host(delivered) = &output {
                keep(&mut self.parts, delivered);
            }
            sent.extend(output.to_nodes(self.own, NODES).map(|it| (it.0, it.1.to_vec())));
        }
        sent
    }

    /// Kills the process, and starts it again with what its disk has.
    fn crash(&mut self, random: &mut Random) {
        let log = |it: &Core| (it.node().host.log.last(), it.node().host.log.head());
        let before = log(self.core());
        let disk = self.core.take().unwrap().into_disk();
        self.open(disk.crashed(|| random.chance(50))).unwrap();
        assert_eq!(log(self.core()), before, "node {}", self.own);
    }
}

/// A message comes, or bytes that are none.
fn receive(core: &mut Core, from: u32, bytes: &[u8]) {
    Event::message(from, bytes).into_iter().for_each(|it| core.receive_message(it));
}

fn keep(parts: &mut BTreeMap<u64, Vec<u8>>, bytes: &[u8]) {
    let part = Delivery::decode(bytes).unwrap();
    parts.insert(part.offset, part.content.bytes);
}

/// Bytes by which the journal has grown.
fn growth(host: &mut Host, act: impl FnOnce(&mut Core)) -> u64 {
    let length = host.core().log_bytes().length;
    act(host.core());
    host.commit();
    host.core().log_bytes().length - length
}

/// A tick of all, and all messages that follow, but those that the network loses.
fn pass(hosts: &mut [Host], mut loses: impl FnMut() -> bool) {
    hosts.iter_mut().for_each(|it| it.core().tick());
    loop {
        let sent: Vec<_> = hosts.iter_mut().map(|it| (it.own, it.commit())).collect();
        let mut is_quiet = true;
        for (from, messages) in sent {
            for (to, bytes) in messages {
                is_quiet = false;
                if !loses() {
                    receive(hosts[to as usize].core(), from, &bytes);
                }
            }
        }
        if is_quiet {
            return;
        }
    }
}

fn assert_trusted(hosts: &mut [Host]) {
    for host in hosts {
        let node = host.core().node();
        for other in 0..NODES {
            assert_eq!(node.verdict(other), Verdict::Trusted, "{other} by {}", node.own);
        }
    }
}

#[test]
fn nodes_that_are_killed_and_begin_their_journals_anew_deliver_all_and_are_trusted() {
    for seed in 0..4 {
        let mut random = Random::new(seed);
        // In each second run devices are processes of their own, and are not killed.
        let new = if seed % 2 == 0 { Host::new } else { Host::with_process };
        let mut hosts: Vec<Host> = (0..NODES).map(new).collect();
        let mut reissued = 0;
        let mut stream = BTreeMap::new();
        let mut offset = 0;
        for round in 0..60_u8 {
            let part = vec![round; usize::from(round % 7) + 1];
            assert!(hosts[0].core().local(Event::Local(part.clone())));
            stream.insert(offset, part);
            offset += u64::from(round % 7) + 1;
            let mut losses = Random::new(seed + u64::from(round));
            pass(&mut hosts, || losses.chance(20));
            for host in &mut hosts {
                if random.chance(10) {
                    // The answer is lost, and the signature not in the journal yet.
                    if random.chance(50) {
                        let question = Message::Audit { after: 0, nonce: random.nonce() };
                        let witness = (host.own + 1) % NODES;
                        receive(host.core(), witness, &question.encode());
                        host.commit();
                    }
                    host.crash(&mut random);
                    reissued += host.core().node().reissued();
                }
                if random.chance(5) {
                    let mut empty = ModelDisk::default();
                    // The disk of a journal that a crash has cut short is thrown away.
                    empty.fails_after = random.chance(50).then(|| random.below(5) as u32);
                    let moved = host.core().move_to(empty);
                    assert!(moved.is_ok() || matches!(moved, Err(Error::Journal(_))));
                    host.core().heal_disk();
                }
                // A disk that fails ends the process, of which nothing has left.
                if random.chance(5) {
                    host.core().tick();
                    let question = Message::Audit { after: 0, nonce: random.nonce() }.encode();
                    let witness = (host.own + 1) % NODES;
                    receive(host.core(), witness, &question);
                    host.core().fail_next_sync();
                    assert!(host.core().commit().is_err());
                    let disk = host.core.take().unwrap().into_disk();
                    host.open(disk.crashed(|| random.chance(50))).unwrap();
                }
                // Inputs that wait are lost, and were answered by nobody.
                if random.chance(5) {
                    host.core().tick();
                    host.crash(&mut random);
                }
            }
        }
        (0..120).for_each(|_| pass(&mut hosts, || false));
        for host in &hosts {
            assert_eq!(host.parts, stream, "seed {seed}, node {}", host.own);
        }
        assert_trusted(&mut hosts);
        assert_eq!(reissued > 0, seed % 2 == 1, "seed {seed}");
    }
}

#[test]
fn a_journal_that_is_older_than_its_device_is_refused() {
    let mut host = Host::with_process(1);
    let audit = |digit: u8| Message::Audit { after: 0, nonce: [digit; 16] }.encode();
    receive(host.core(), 2, &audit(1));
    host.commit();
    host.core().tick();
    host.commit();
    let old = host.core.take().unwrap().into_disk();
    host.open(old.clone()).unwrap();
    // All that it signs is in the log before it has signed as much again.
    (0..40).for_each(|_| host.core().tick());
    receive(host.core(), 2, &audit(2));
    host.commit();
    host.core().tick();
    host.commit();
    drop(host.core.take());
    let refused = host.open(old).err();
    assert!(matches!(refused, Some(Error::Device(AttestorError::Ahead))), "{refused:?}");
    let refused = host.open(ModelDisk::default()).err();
    assert!(matches!(refused, Some(Error::Device(AttestorError::Ahead))), "{refused:?}");
}

#[test]
fn a_journal_of_an_older_version_is_refused_as_such() {
    let owner = encode(&("SMT peer review journal", 2_u32, 1_u32, [0_u8; 32]));
    let disk = Journal::open(ModelDisk::default(), &owner, |_| {}).unwrap().into_disk();
    let refused = Host::new(1).open(disk).err();
    let is_older = matches!(refused, Some(Error::Journal(JournalError::OlderFormat)));
    assert!(is_older, "{refused:?}");
}

#[test]
fn a_node_whose_journal_was_restored_from_a_copy_is_suspected_for_good() {
    let mut hosts: Vec<Host> = (0..NODES).map(Host::new).collect();
    let mut random = Random::new(1);
    assert!(hosts[0].core().local(Event::Local(b"one".to_vec())));
    pass(&mut hosts, || false);
    let copy = hosts[0].core.take().unwrap().into_disk();
    hosts[0].open(copy.clone()).unwrap();
    assert!(hosts[0].core().local(Event::Local(b"two".to_vec())));
    (0..40).for_each(|_| pass(&mut hosts, || false));
    assert_trusted(&mut hosts);
    hosts[0].open(copy.crashed(|| random.chance(50))).unwrap();
    assert!(hosts[0].core().local(Event::Local(b"another".to_vec())));
    (0..200).for_each(|_| pass(&mut hosts, || false));
    for witness in [1, 2] {
        assert_ne!(hosts[witness].core().node().verdict(0), Verdict::Trusted, "by {witness}");
    }
}

#[test]
fn messages_that_change_nothing_let_no_journal_grow() {
    let mut hosts: Vec<Host> = (0..NODES).map(Host::new).collect();
    assert!(hosts[0].core().local(Event::Local(b"part".to_vec())));
    let sent = hosts[0].commit();
    let (_, part) = sent.iter().find(|it| it.0 == 1).unwrap();
    assert!(growth(&mut hosts[1], |it| receive(it, 0, part)) > 0);
    // It is answered again.
    assert_eq!(growth(&mut hosts[1], |it| receive(it, 0, part)), 0);
    hosts[1].core().tick();
    receive(hosts[1].core(), 0, part);
    assert!(hosts[1].commit().iter().any(|it| it.0 == 0));
    let question = Message::Audit { after: 0, nonce: [3; 16] }.encode();
    for (from, bytes) in [(0, &question), (0, &vec![255; 9]), (9, part)] {
        assert_eq!(growth(&mut hosts[1], |it| receive(it, from, bytes)), 0);
    }
    assert_eq!(growth(&mut hosts[2], |it| receive(it, 0, part)), 0, "it is for another node");
}

#[test]
fn copies_that_come_before_one_commit_are_kept_once() {
    let mut source = Host::new(0);
    assert!(source.core().local(Event::Local(b"part".to_vec())));
    let sent = source.commit();
    let [once, often] = [1, 5].map(|copies| {
        let mut host = Host::new(1);
        growth(&mut host, |it| (0..copies).for_each(|_| receive(it, 0, &sent[0].1)))
    });
    assert!(once > 0 && once == often, "{once} {often}");
}

// A question that is repeated is no change, unless another one comes before it is taken: taken
// then, it would be an entry of the log that the journal has not.
#[test]
fn a_question_that_was_known_when_it_came_makes_no_entry_that_is_not_durable() {
    let audit = |digit: u8| Message::Audit { after: 0, nonce: [digit; 16] }.encode();
    let mut host = Host::new(0);
    receive(host.core(), 1, &audit(1));
    host.commit();
    (0..20).for_each(|_| host.core().tick());
    receive(host.core(), 1, &audit(2));
    receive(host.core(), 1, &audit(1));
    host.commit();
    (0..20).for_each(|_| host.core().tick());
    host.commit();
    assert_eq!(host.core().node().last(), 2);
    host.crash(&mut Random::new(1));
}

#[test]
fn parts_that_come_out_of_order_before_one_commit_are_all_taken() {
    let mut hosts: Vec<Host> = (0..2).map(Host::new).collect();
    assert!(hosts[0].core().local(Event::Local(b"one".to_vec())));
    assert!(hosts[0].core().local(Event::Local(b"two".to_vec())));
    for (_, part) in hosts[0].commit().iter().filter(|it| it.0 == 1) {
        receive(hosts[1].core(), 0, part);
    }
    hosts[1].commit();
    assert_eq!(hosts[1].parts.len(), 2);
}

#[test]
fn a_journal_of_another_node_or_group_is_refused() {
    let disk = || Host::new(1).core.unwrap().into_disk();
    let is_refused = |error| matches!(error, Some(Error::Journal(JournalError::OtherOwner)));
    assert!(is_refused(Host::new(0).open(disk()).err()));
    let mut other = Group::clone(&group());
    other.options.audit += 1;
    let tree = Tree::new(NODES, 2);
    let opened = Node::open(Arc::new(other), identity(1), &tree, disk(), |_| {});
    assert!(is_refused(opened.err()));
    let opened = Node::open(group(), identity(1), &Tree::new(NODES, 3), disk(), |_| {});
    assert!(is_refused(opened.err()));
}

// One part in five ticks reaches node 3, the child of node 1, beside those that it finds itself as
// a witness of that: without the bound the parent would come to keep too few for it.
#[test]
fn a_slow_child_slows_the_stream_down_and_its_parent_is_trusted() {
    let mut hosts: Vec<Host> = (0..NODES).map(Host::new).collect();
    let held_from = group().options.held_from();
    let mut most = 0;
    for round in 0..500_u64 {
        // As the command: the source sends while few wait.
        let waiting = hosts[0].core().node().backlog();
        (waiting..64).for_each(|_| assert!(hosts[0].core().local(Event::Local(vec![7; 9]))));
        hosts.iter_mut().for_each(|it| it.core().tick());
        most = most.max(hosts[1].core().node().backlog());
        let mut has_room = round % 5 == 0;
        for _ in 0..3 {
            let all: Vec<_> = hosts.iter_mut().map(|it| (it.own, it.commit())).collect();
            for (from, messages) in all {
                for (to, bytes) in messages {
                    let next = hosts[3].core().node().state.received(1) + 1;
                    let part = match Message::decode(&bytes) {
                        Some(Message::Sent(it) | Message::Challenge(it)) if to == 3 => Some(it),
                        _ => None,
                    };
                    let passes = part.is_none_or(|it| it.number == next && has_room);
                    if passes {
                        has_room &= to != 3 || !is_part(&bytes);
                        receive(hosts[to as usize].core(), from, &bytes);
                    }
                }
            }
        }
    }
    let held = hosts[1].core().node().held();
    // Witnesses bring a message in 20 ticks.
    assert!(held > 0 && (held_from..held_from + 25).contains(&most), "{held} {most}");
    for witness in [2, 3] {
        assert_eq!(hosts[witness].core().node().verdict(1), Verdict::Trusted, "by {witness}");
    }
}

fn is_part(bytes: &[u8]) -> bool {
    matches!(Message::decode(bytes), Some(Message::Sent(_) | Message::Challenge(_)))
}

#[test]
fn a_journal_that_was_opened_again_has_grown_by_all_behind_its_snapshot() {
    let mut host = Host::new(1);
    (0..50).for_each(|_| host.core().tick());
    host.commit();
    host.core().move_to(ModelDisk::default()).unwrap();
    let LogBytes { growth: before, snapshot, .. } = host.core().log_bytes();
    assert!(before == 0 && snapshot > 0);
    for count in [1, 2] {
        (0..100).for_each(|_| host.core().tick());
        host.commit();
        host.crash(&mut Random::new(1));
        assert!(host.core().log_bytes().growth > count * 100, "{count}");
    }
}
