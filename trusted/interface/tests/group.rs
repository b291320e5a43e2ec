// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Groups of nodes whose frames arrive in many ways.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use smt_attestation::{
    Algorithm, DeviceId, Epoch, Group, GroupSecret, Member, Refusal, SigningKey, Start, StreamId,
};
use smt_device_client::{DeviceError, Library, SecretNumber};
use smt_trusted_interface::{
    Access, Completion, Denied, InterfaceError, Node, Outcome, Region, RegionKey,
};

type TestNode = Node<Library<1, 2, 4>>;

/// Three nodes, devices 1 to 3.
fn group() -> [TestNode; 3] {
    [1, 2, 3].map(|number| {
        let own = Start { device: DeviceId(number), epoch: Epoch(1), nonce: [0; 16] };
        let mut device = Library::start(own, SigningKey::new(&[number as u8; 32]));
        device.add_secret(SecretNumber(1), GroupSecret::new([9; 32])).unwrap();
        let members = [1, 2, 3].map(|device| Member { device: DeviceId(device), epoch: Epoch(1) });
        let (stream, algorithm) = (StreamId(4), Algorithm::HmacSha256);
        let group = Group { stream, algorithm, quorum: 2, members: &members };
        Node::connect(device, SecretNumber(1), &group).unwrap()
    })
}

fn frames(node: &mut TestNode) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| node.next_frame()).collect()
}

/// Delivers all frames to all, until there are none.
fn settle(nodes: &mut [TestNode; 3]) {
    loop {
        let all: Vec<_> = nodes.iter_mut().map(frames).collect();
        if all.iter().all(Vec::is_empty) {
            return;
        }
        for (from, frames) in all.iter().enumerate() {
            for (to, node) in nodes.iter_mut().enumerate() {
                for frame in frames.iter().filter(|_| to != from) {
                    node.receive(frame).unwrap();
                }
            }
        }
    }
}

fn outcomes(node: &mut TestNode) -> Vec<Outcome> {
    std::iter::from_fn(|| node.poll()).map(|it| it.outcome).collect()
}

fn message(text: &str) -> Outcome {
    Outcome::Message(text.as_bytes().to_vec())
}

#[test]
fn a_multicast_reaches_all_and_a_send_one() {
    let mut nodes = group();
    nodes[0].multicast(b"all").unwrap();
    nodes[0].send(DeviceId(3), b"three").unwrap();
    settle(&mut nodes);
    assert_eq!(outcomes(&mut nodes[1]), [message("all")]);
    let first = nodes[2].poll();
    assert_eq!(first, Some(Completion { from: DeviceId(1), outcome: message("all") }));
    assert_eq!(outcomes(&mut nodes[2]), [message("three")]);
}

#[test]
fn frames_that_are_repeated_and_reordered_complete_once_and_in_order() {
    let mut nodes = group();
    for text in ["a", "b", "c", "d"] {
        nodes[0].multicast(text.as_bytes()).unwrap();
    }
    let frames = frames(&mut nodes[0]);
    for place in [3, 1, 1, 2, 3] {
        nodes[1].receive(&frames[place]).unwrap();
        assert_eq!(nodes[1].poll(), None, "nothing before what is missing");
    }
    nodes[1].receive(&frames[0]).unwrap();
    nodes[1].receive(&frames[2]).unwrap();
    assert_eq!(outcomes(&mut nodes[1]), ["a", "b", "c", "d"].map(message));
}

#[test]
fn a_frame_that_is_changed_completes_nothing() {
    let mut nodes = group();
    nodes[0].multicast(b"genuine").unwrap();
    let frame = nodes[0].next_frame().unwrap();
    for bit in 0..8 * frame.len() {
        let mut changed = frame.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let refused = nodes[1].receive(&changed).unwrap_err();
        // A changed version, for example, makes it no attestation at all.
        let is_refusal = matches!(
            refused,
            InterfaceError::NoFrame
                | InterfaceError::Device(DeviceError::Refused(Refusal::Mac | Refusal::Malformed))
        );
        assert!(is_refusal, "{refused:?}");
    }
    assert!(matches!(nodes[1].receive(b"short"), Err(InterfaceError::NoFrame)));
    assert_eq!(nodes[1].poll(), None);
    nodes[1].receive(&frame).unwrap();
    assert_eq!(outcomes(&mut nodes[1]), [message("genuine")]);
}

#[test]
fn a_frame_too_far_ahead_is_not_kept() {
    let mut nodes = group();
    for _ in 0..70 {
        nodes[0].multicast(b"x").unwrap();
    }
    let frames = frames(&mut nodes[0]);
    nodes[1].receive(&frames[64]).unwrap();
    assert!(matches!(nodes[1].receive(&frames[69]), Err(InterfaceError::TooEarly)));
    frames.iter().for_each(|frame| nodes[1].receive(frame).unwrap());
    assert_eq!(outcomes(&mut nodes[1]).len(), 70);
}

fn shared(nodes: &mut [TestNode; 3]) -> RegionKey {
    let access = Access { readers: vec![DeviceId(1), DeviceId(2)], writers: vec![DeviceId(1)] };
    nodes[2].register(vec![7; 16], access)
}

#[test]
fn memory_is_announced_written_and_read() {
    let mut nodes = group();
    let key = shared(&mut nodes);
    nodes[2].announce().unwrap();
    settle(&mut nodes);
    assert_eq!(outcomes(&mut nodes[0]), [Outcome::Announced(vec![Region { key, length: 16 }])]);
    let write = nodes[0].write(DeviceId(3), (key, 14), b"ab").unwrap();
    let read = nodes[0].read(DeviceId(3), (key, 13), 3).unwrap();
    assert_eq!(nodes[0].poll(), None, "nothing is done before its frame has come");
    settle(&mut nodes);
    let expected = [Outcome::Wrote(write, Ok(())), Outcome::Read(read, Ok(b"\x07ab".to_vec()))];
    assert_eq!(outcomes(&mut nodes[0]), expected);
    let written = Outcome::Written { key, offset: 14, length: 2 };
    assert_eq!(outcomes(&mut nodes[2]), [written]);
    assert_eq!(nodes[2].registered(key).unwrap()[13..], *b"\x07ab");
    assert_eq!(nodes[2].deregister(key).unwrap().len(), 16);
}

#[test]
fn keys_bounds_and_permissions_are_refused() {
    let mut nodes = group();
    let key = shared(&mut nodes);
    let three = DeviceId(3);
    let cases = [
        (0, RegionKey(9), 0, Denied::Key),
        (0, key, 15, Denied::Bounds),
        (0, key, u64::MAX, Denied::Bounds),
        (1, key, 0, Denied::Permission),
    ];
    for (node, key, offset, denied) in cases {
        let ticket = nodes[node].write(three, (key, offset), b"ab").unwrap();
        settle(&mut nodes);
        assert_eq!(outcomes(&mut nodes[node]), [Outcome::Wrote(ticket, Err(denied))]);
    }
    let ticket = nodes[1].read(three, (key, 10), 7).unwrap();
    settle(&mut nodes);
    assert_eq!(outcomes(&mut nodes[1]), [Outcome::Read(ticket, Err(Denied::Bounds))]);
    // Nothing was written, and nobody was told that it was.
    assert_eq!(outcomes(&mut nodes[2]), []);
    assert_eq!(nodes[2].registered(key).unwrap(), [7; 16]);
}

#[test]
fn only_members_are_addressed() {
    let mut nodes = group();
    for stranger in [DeviceId(1), DeviceId(4)] {
        let sent = nodes[0].send(stranger, b"x");
        assert!(matches!(sent, Err(InterfaceError::NotMember(_))));
        let read = nodes[0].read(stranger, (RegionKey(0), 0), 1);
        assert!(matches!(read, Err(InterfaceError::NotMember(_))));
    }
}

#[test]
fn an_answer_of_another_member_completes_nothing() {
    let mut nodes = group();
    let key = shared(&mut nodes);
    let ticket = nodes[0].read(DeviceId(3), (key, 0), 1).unwrap();
    // Node 2 answers in the place of node 3: to device 1, a read is done, ticket 0, one byte.
    let lie = nodes[1].attest(&[1, 1, 4, 0, 0, 1, 99]).unwrap().encode();
    let refused = nodes[0].receive(&lie);
    assert!(matches!(refused, Err(InterfaceError::Malformed(DeviceId(2)))));
    assert_eq!(nodes[0].poll(), None);
    nodes[2].receive(&lie).unwrap();
    settle(&mut nodes);
    assert_eq!(outcomes(&mut nodes[0]), [Outcome::Read(ticket, Ok(vec![7]))]);
    // Node 3 itself cannot answer twice.
    let again = nodes[2].attest(&[1, 1, 4, 0, 0, 1, 7]).unwrap().encode();
    assert!(nodes[0].receive(&again).is_err());
    assert_eq!(nodes[0].poll(), None);
}

#[test]
fn an_attested_message_is_verified_by_whoever_gets_it() {
    let mut nodes = group();
    let attested = nodes[0].attest(b"fact").unwrap();
    for node in &nodes {
        assert_eq!(node.verify(&attested).unwrap().device, DeviceId(1));
    }
    let mut forged = attested;
    forged.message[0] ^= 1;
    assert!(nodes[1].verify(&forged).is_err());
}

/// An attested frame whose content is none must not hold up those that came before their turn.
#[test]
fn frames_after_one_of_a_liar_are_taken() {
    let mut nodes = group();
    let lie = nodes[0].attest(b"\xff").unwrap().encode();
    nodes[0].multicast(b"after").unwrap();
    let after = nodes[0].next_frame().unwrap();
    nodes[1].receive(&after).unwrap();
    assert!(matches!(nodes[1].receive(&lie), Err(InterfaceError::Malformed(DeviceId(1)))));
    assert_eq!(outcomes(&mut nodes[1]), [message("after")]);
}

#[test]
fn a_node_that_nobody_polls_or_carries_takes_no_more() {
    let mut nodes = group();
    for _ in 0..1024 {
        nodes[0].multicast(b"x").unwrap();
    }
    assert!(matches!(nodes[0].multicast(b"x"), Err(InterfaceError::Backlog)));
    // Nothing was attested for it: no counter is missing.
    let sent = frames(&mut nodes[0]);
    nodes[0].multicast(b"x").unwrap();
    let mut all = [sent, frames(&mut nodes[0])].concat();
    let mut count = 0;
    loop {
        for frame in all.drain(..) {
            match nodes[1].receive(&frame) {
                Ok(()) => count += 1,
                Err(error) => panic!("{error}"),
            }
        }
        if count > 4096 - 1025 {
            break;
        }
        for _ in 0..1024 {
            nodes[0].multicast(b"x").unwrap();
        }
        all = frames(&mut nodes[0]);
    }
    let mut refused = None;
    while refused.is_none() {
        nodes[0].multicast(b"x").unwrap();
        let frame = nodes[0].next_frame().unwrap();
        refused = nodes[1].receive(&frame).err();
    }
    assert!(matches!(refused, Some(InterfaceError::Unpolled)));
    assert_eq!(outcomes(&mut nodes[1]).len(), 4096);
}

#[test]
fn a_read_or_write_of_more_than_a_frame_is_refused_before_it_is_attested() {
    let mut nodes = group();
    let long = smt_device_client::MESSAGE_LEN_MAX / 2 + 1;
    let read = nodes[0].read(DeviceId(3), (RegionKey(0), 0), long as u64);
    assert!(matches!(read, Err(InterfaceError::TooLong(_))));
    let write = nodes[0].write(DeviceId(3), (RegionKey(0), 0), &vec![0; long]);
    assert!(matches!(write, Err(InterfaceError::TooLong(_))));
    assert_eq!(nodes[0].next_frame(), None);
}

#[test]
fn two_nodes_with_full_backlogs_take_each_others_frames() {
    let [mut first, mut second, _] = group();
    for node in [&mut first, &mut second] {
        while node.multicast(b"text").is_ok() {}
        assert!(matches!(node.multicast(b"text"), Err(InterfaceError::Backlog)));
    }
    let (of_first, of_second) = (frames(&mut first), frames(&mut second));
    for node in [&mut first, &mut second] {
        while node.multicast(b"text").is_ok() {}
    }
    for (to_second, to_first) in of_first.iter().zip(&of_second) {
        second.receive(to_second).unwrap();
        first.receive(to_first).unwrap();
    }
}

#[test]
fn frames_that_waited_are_taken_with_the_one_that_was_missing_or_not_kept() {
    let [mut sender, mut node, _] = group();
    for _ in 0..4_095 {
        sender.multicast(b"text").unwrap();
        node.receive(&sender.next_frame().unwrap()).unwrap();
    }
    for _ in 0..3 {
        sender.multicast(b"late").unwrap();
    }
    let late = frames(&mut sender);
    node.receive(&late[1]).unwrap();
    // There is room for one completion, and two frames would take it.
    for frame in [&late[2], &late[0]] {
        assert!(matches!(node.receive(frame), Err(InterfaceError::Unpolled)));
    }
    node.poll().unwrap();
    node.receive(&late[0]).unwrap();
    node.poll().unwrap();
    node.receive(&late[2]).unwrap();
    let outcomes = outcomes(&mut node);
    assert_eq!(outcomes[outcomes.len() - 3..], [message("late"), message("late"), message("late")]);
}

#[test]
fn a_frame_that_no_device_can_have_attested_is_none() {
    let [mut sender, mut node, _] = group();
    sender.multicast(b"text").unwrap();
    let mut frame = sender.next_frame().unwrap();
    frame.resize(frame.len() + smt_device_client::MESSAGE_LEN_MAX, 0);
    assert!(matches!(node.receive(&frame), Err(InterfaceError::NoFrame)));
}
