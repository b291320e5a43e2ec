// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A member whose device has restarted, and the others.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use smt_attestation::{
    Algorithm, Ballot, DeviceId, Epoch, Group, GroupSecret, Member, Misuse, Refusal, SigningKey,
    Start, StreamId,
};
use smt_device_client::{DeviceError, Library, SecretNumber};
use smt_trusted_interface::{InterfaceError, Node, Outcome, RegionKey};

type TestNode = Node<Library<1, 2, 4>>;

fn node(number: u32, epoch: u64) -> TestNode {
    let own = Start { device: DeviceId(number), epoch: Epoch(epoch), nonce: [epoch as u8; 16] };
    let mut device = Library::start(own, SigningKey::new(&[number as u8; 32]));
    device.add_secret(SecretNumber(1), GroupSecret::new([9; 32])).unwrap();
    let members = [1, 2, 3].map(|device| Member { device: DeviceId(device), epoch: Epoch(1) });
    let (stream, algorithm) = (StreamId(4), Algorithm::HmacSha256);
    let group = Group { stream, algorithm, quorum: 2, members: &members };
    Node::connect(device, SecretNumber(1), &group).unwrap()
}

fn frames(node: &mut TestNode) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| node.next_frame()).collect()
}

fn outcomes(node: &mut TestNode) -> Vec<Outcome> {
    std::iter::from_fn(|| node.poll()).map(|it| it.outcome).collect()
}

fn message(text: &str) -> Outcome {
    Outcome::Message(text.as_bytes().to_vec())
}

/// Three members, of which the third has taken a message and answered nothing, and restarted.
fn restarted() -> (TestNode, TestNode, TestNode) {
    let [mut one, mut two, mut three] = [1, 2, 3].map(|number| node(number, 1));
    one.multicast(b"before").unwrap();
    three.multicast(b"of the older epoch").unwrap();
    one.read(DeviceId(3), (RegionKey(0), 0), 1).unwrap();
    for frame in frames(&mut one) {
        two.receive(&frame).unwrap();
    }
    for frame in frames(&mut three) {
        one.receive(&frame).unwrap();
        two.receive(&frame).unwrap();
    }
    outcomes(&mut one);
    outcomes(&mut two);
    (one, two, node(3, 2))
}

/// The votes of both about a member.
fn votes(one: &mut TestNode, two: &mut TestNode, newcomer: Start, about: u32) -> [Ballot; 2] {
    [one, two].map(|node| node.vote(newcomer, DeviceId(about)).unwrap())
}

#[test]
fn a_member_that_has_restarted_comes_back_by_the_votes_of_a_quorum() {
    let (mut one, mut two, mut three) = restarted();
    let newcomer = three.start();
    let about_one = votes(&mut one, &mut two, newcomer, 1);
    let about_two = votes(&mut one, &mut two, newcomer, 2);
    for (number, ballots) in [(1, &about_one), (2, &about_two)] {
        three.synchronize(DeviceId(number), ballots).unwrap();
    }
    one.admit(newcomer, &about_one).unwrap();
    two.admit(newcomer, &about_two).unwrap();
    // The read of before has no answer.
    assert!(matches!(outcomes(&mut one)[..], [Outcome::Lost(_)]));
    one.multicast(b"afterwards").unwrap();
    three.multicast(b"of the new epoch").unwrap();
    for frame in frames(&mut one) {
        two.receive(&frame).unwrap();
        three.receive(&frame).unwrap();
    }
    for frame in frames(&mut three) {
        one.receive(&frame).unwrap();
        two.receive(&frame).unwrap();
    }
    assert_eq!(outcomes(&mut three), [message("afterwards")]);
    assert_eq!(outcomes(&mut two), [message("afterwards"), message("of the new epoch")]);
    assert_eq!(outcomes(&mut one), [message("of the new epoch")]);
}

#[test]
fn a_newcomer_neither_takes_nor_is_taken_before_a_quorum_has_voted() {
    let (mut one, mut two, mut three) = restarted();
    let refused = |result: Result<(), InterfaceError>| match result {
        Err(InterfaceError::Device(DeviceError::Refused(why))) => why,
        other => panic!("{other:?}"),
    };
    one.multicast(b"more").unwrap();
    let frame = one.next_frame().unwrap();
    assert_eq!(refused(three.receive(&frame)), Refusal::NotSynchronized);
    three.multicast(b"too soon").unwrap();
    let early = three.next_frame().unwrap();
    assert_eq!(refused(two.receive(&early)), Refusal::Epoch { admitted: Epoch(1) });
    let alone = one.vote(three.start(), DeviceId(1)).unwrap();
    assert_eq!(refused(three.synchronize(DeviceId(1), &[alone])), Refusal::Votes);
    assert_eq!(refused(two.admit(three.start(), &[alone])), Refusal::Votes);
    // A newcomer has no vote for another one.
    let other = Start { device: DeviceId(2), epoch: Epoch(2), nonce: [0; 16] };
    let voted = three.vote(other, DeviceId(3)).unwrap_err();
    let is_refused =
        matches!(voted, InterfaceError::Device(DeviceError::Misuse(Misuse::NotSynchronized)));
    assert!(is_refused, "{voted:?}");
}

#[test]
fn a_member_that_has_voted_takes_nothing_more_of_the_older_epoch() {
    let mut three = node(3, 1);
    let [mut one, mut two] = [1, 2].map(|number| node(number, 1));
    three.multicast(b"late").unwrap();
    let late = three.next_frame().unwrap();
    let newcomer = node(3, 2).start();
    let ballots = votes(&mut one, &mut two, newcomer, 1);
    assert!(one.receive(&late).is_err());
    two.admit(newcomer, &ballots).unwrap();
    assert!(two.receive(&late).is_err());
}

/// The newcomer takes a frame and answers it.
fn answer_of(newcomer: &mut TestNode, frame: &[u8]) -> Vec<u8> {
    newcomer.receive(frame).unwrap();
    newcomer.next_frame().unwrap()
}

#[test]
fn an_answer_to_a_read_between_vote_and_admission_says_nothing_more() {
    let (mut one, mut two, mut three) = restarted();
    let newcomer = three.start();
    let about_one = votes(&mut one, &mut two, newcomer, 1);
    assert!(matches!(outcomes(&mut one)[..], [Outcome::Lost(_)]), "the older read");
    let tickets = [
        one.read(DeviceId(3), (RegionKey(0), 0), 1).unwrap(),
        one.write(DeviceId(3), (RegionKey(0), 0), b"1").unwrap(),
    ];
    three.synchronize(DeviceId(1), &about_one).unwrap();
    let sent = frames(&mut one);
    let [_, read, write] = &sent[..] else { panic!("a vote, a read and a write") };
    let answers = [read, write].map(|frame| answer_of(&mut three, frame));
    one.admit(newcomer, &about_one).unwrap();
    assert_eq!(outcomes(&mut one), tickets.map(Outcome::Lost));
    for answer in &answers {
        one.receive(answer).unwrap();
    }
    assert!(outcomes(&mut one).is_empty());
    // Reads behind the admission are answered.
    let ticket = one.read(DeviceId(3), (RegionKey(0), 0), 1).unwrap();
    let answer = answer_of(&mut three, &one.next_frame().unwrap());
    one.receive(&answer).unwrap();
    assert!(matches!(outcomes(&mut one)[..], [Outcome::Read(it, _)] if it == ticket));
}

#[test]
fn a_read_that_a_newcomer_skips_is_told_as_lost() {
    let (mut one, mut two, mut three) = restarted();
    let newcomer = three.start();
    let about_one = votes(&mut one, &mut two, newcomer, 1);
    one.admit(newcomer, &about_one).unwrap();
    outcomes(&mut one);
    let ticket = one.read(DeviceId(3), (RegionKey(0), 0), 1).unwrap();
    // A vote about another member does not show the newcomer where this one stands.
    one.vote(newcomer, DeviceId(2)).unwrap();
    assert!(outcomes(&mut one).is_empty());
    // It begins behind the second vote of this one, and therefore behind the read.
    let mut again = about_one;
    again[0] = one.vote(newcomer, DeviceId(1)).unwrap();
    three.synchronize(DeviceId(1), &again).unwrap();
    assert_eq!(outcomes(&mut one), [Outcome::Lost(ticket)]);
    for frame in frames(&mut one) {
        three.receive(&frame).unwrap();
    }
    assert_eq!(three.next_frame(), None);
}

#[test]
fn a_vote_for_an_older_epoch_ends_no_read() {
    let (mut one, mut two, three) = restarted();
    let newcomer = three.start();
    let about_one = votes(&mut one, &mut two, newcomer, 1);
    one.admit(newcomer, &about_one).unwrap();
    outcomes(&mut one);
    one.read(DeviceId(3), (RegionKey(0), 0), 1).unwrap();
    one.vote(Start { epoch: Epoch(1), ..newcomer }, DeviceId(1)).unwrap();
    assert!(outcomes(&mut one).is_empty());
}
