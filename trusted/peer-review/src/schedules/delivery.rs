// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages and receipts that a node keeps back: their receiver gets them, and it is suspected.

use super::*;

#[test]
fn a_node_that_forwards_nothing_is_suspected_and_its_witness_delivers() {
    let mut nodes = nodes(Options::default());
    nodes[0].local(b"part".to_vec());
    let selfish = |from: u32, _: u32, it: &Message| {
        // It is a witness of node 3, and does not deliver as such either.
        from != 1 || !matches!(it, Message::Sent(_) | Message::Complaint(_) | Message::Challenge(_))
    };
    let mut is_suspected = false;
    for _ in 0..80 {
        pass(&mut nodes, 1, selfish);
        let reason = Verdict::Suspected(vec![Suspicion::Forwarding { to: 3 }]);
        // Nodes 2 and 3 are its witnesses. The first of them that suspects it delivers.
        is_suspected |= nodes[2..].iter().any(|it| it.verdict(1) == reason);
    }
    assert!(is_suspected);
    assert_eq!(nodes[3].application().count(), 1);
    assert_eq!(nodes[2].verdict(1), Verdict::Trusted);
}

#[test]
fn a_receiver_without_receipts_is_suspected_until_it_gives_one_and_its_sender_is_not() {
    // Node 5 is a child of node 2, and no witness of it.
    let mut nodes = nodes_of(6, Options::default());
    nodes[0].local(b"part".to_vec());
    let hides = |_: u32, to: u32, it: &Message| {
        to != 5 || !matches!(it, Message::Sent(_) | Message::Challenge(_))
    };
    for _ in 0..100 {
        pass(&mut nodes, 1, hides);
        assert!(nodes.iter().all(|it| it.verdict(2) == Verdict::Trusted));
    }
    let reason = vec![Suspicion::Receipt { from: 2 }];
    assert_eq!(nodes[0].verdict(5), Verdict::Suspected(reason));
    pass(&mut nodes, 20, all);
    assert!(nodes.iter().all(|it| it.verdict(5) == Verdict::Trusted));
    assert_eq!(nodes[5].application().count(), 1);
}

#[test]
fn a_receiver_owes_no_receipt_for_what_it_cannot_take_yet() {
    let mut nodes = nodes(Options::default());
    // Node 1 sends two messages to node 3, and tells of the second alone.
    for number in 1..=2 {
        let sent = crate::Sent { to: 3, number, body: body_digest(b"x") };
        let made = Made { sent: vec![sent], bodies: vec![b"x".to_vec()], delivered: Vec::new() };
        nodes[1].commit(Input::Local(vec![number as u8]), made).unwrap();
    }
    let outputs = nodes[1].outputs();
    let Output::Node(3, bytes) = &outputs[1] else {
        panic!("it is no message to node 3");
    };
    let Some(Message::Sent(second)) = Message::decode(bytes) else {
        panic!("it is no message");
    };
    nodes[0].receive(1, &Message::Complaint(second).encode());
    let tells_nothing = |from: u32, _: u32, _: &Message| from != 1;
    pass(&mut nodes, 100, tells_nothing);
    assert_eq!(nodes[0].verdict(3), Verdict::Trusted);
}

#[test]
fn a_receiver_that_takes_one_message_and_hides_its_receipt_is_suspected_and_its_sender_is_not() {
    // Node 5 is a child of node 2, and no witness of it.
    let mut nodes = nodes_of(6, Options::default());
    let hides = |from: u32, to: u32, it: &Message| match it {
        Message::Receipt(it) => from != 5 || it.by() != 5,
        Message::Sent(it) | Message::Challenge(it) => to != 5 || it.number == 1,
        _ => true,
    };
    for _ in 0..3 {
        nodes[0].local(b"part".to_vec());
        pass(&mut nodes, 40, hides);
    }
    let reason = Verdict::Suspected(vec![Suspicion::Receipt { from: 2 }]);
    assert_eq!(nodes[0].verdict(5), reason);
    assert_eq!(nodes[1].verdict(5), reason);
    assert!([3, 4].iter().all(|it: &usize| nodes[*it].verdict(2) == Verdict::Trusted));
    assert_eq!(nodes[2].host.outboxes[&5].count(), 2);
}

#[test]
fn a_node_that_tells_its_own_witnesses_alone_starves_no_child() {
    let mut nodes = nodes_of(6, Options::default());
    // Node 5 is a child of node 2, whose witnesses are nodes 3 and 4. Those of node 5 are 0 and 1.
    let tells_own = |from: u32, to: u32, it: &Message| match it {
        Message::Sent(_) | Message::Challenge(_) => from != 2,
        Message::Complaint(_) => from != 2 || [3, 4].contains(&to),
        _ => true,
    };
    for _ in 0..20 {
        nodes[0].local(b"part".to_vec());
        pass(&mut nodes, 10, tells_own);
    }
    // A part is there about 50 ticks after it was logged, also while others follow.
    assert!(nodes[5].application().count() >= 14, "{}", nodes[5].application().count());
    pass(&mut nodes, 60, tells_own);
    assert_eq!(nodes[5].application().count(), 20);
}

#[test]
fn a_burst_behind_a_selfish_node_is_delivered_as_a_whole() {
    let mut nodes = nodes(Options::default());
    (0..100).for_each(|_| assert!(nodes[0].local(b"part".to_vec())));
    let selfish = |from: u32, _: u32, it: &Message| {
        from != 1 || !matches!(it, Message::Sent(_) | Message::Complaint(_) | Message::Challenge(_))
    };
    pass(&mut nodes, 140, selfish);
    assert_eq!(nodes[3].application().count(), 100);
}

#[test]
fn a_receipt_that_was_lost_behind_a_witness_comes_again() {
    let mut nodes = nodes(Options::default());
    nodes[0].local(b"part".to_vec());
    // Node 3 shows no log, and gives its receipt to node 2 alone, a witness of the sender.
    let is_kept_back = |from: u32, to: u32, it: &Message| match it {
        Message::Segment(_) => from == 3,
        Message::Receipt(it) if it.by() == 3 => from == 3 && to != 2,
        _ => false,
    };
    let lost = |from: u32, to: u32, it: &Message| {
        let is_receipt = matches!(it, Message::Receipt(it) if it.by() == 3);
        !(is_kept_back(from, to, it) || is_receipt && from == 2)
    };
    pass(&mut nodes, 80, lost);
    assert_eq!(nodes[1].host.outboxes[&3].count(), 1);
    pass(&mut nodes, 20, |from, to, it| !is_kept_back(from, to, it));
    assert_eq!(nodes[1].host.outboxes[&3].count(), 0);
    assert_eq!(nodes[2].verdict(1), Verdict::Trusted);
}

#[test]
fn a_sender_is_not_suspected_for_what_it_forgot_while_its_receiver_accepted_nothing() {
    // Node 5 is a child of node 2, whose witnesses are nodes 3 and 4.
    let mut nodes = nodes_of(6, Options { retained: 20, ..Options::default() });
    let hides = |_: u32, to: u32, it: &Message| {
        to != 5 || !matches!(it, Message::Sent(_) | Message::Challenge(_))
    };
    for _ in 0..40 {
        assert!(nodes[0].local(b"part".to_vec()));
        pass(&mut nodes, 4, hides);
    }
    for _ in 0..3 {
        pass(&mut nodes, 70, all);
        assert!(nodes[0].local(b"part".to_vec()));
        assert_eq!(nodes[5].application().count(), 20);
        for witness in [3, 4] {
            assert_eq!(nodes[witness].verdict(2), Verdict::Trusted, "by {witness}");
        }
    }
}
