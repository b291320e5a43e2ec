// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Evidence: of faults alone, no longer than needed, and not given without end.

use super::*;

#[test]
fn a_fault_convinces_everybody_who_has_the_public_keys() {
    let mut nodes = nodes(Options::default());
    nodes[0].local(b"first".to_vec());
    pass(&mut nodes, 30, all);
    let place = nodes[0].last() + 1;
    lie(&mut nodes[0]);
    pass(&mut nodes, 30, all);
    let public = group(Options::default());
    for node in &nodes[1..] {
        let Verdict::Exposed(evidence) = node.verdict(0) else {
            panic!("node {} has {:?}", node.own, node.verdict(0));
        };
        let read = Evidence::decode(&evidence.encode()).unwrap();
        let proof = read.verify(&public, &tree());
        assert_eq!(proof, Ok(Proof::Faulty(place, Fault::Outputs)));
    }
    assert_eq!(nodes[0].verdict(1), Verdict::Trusted);
}

#[test]
fn no_change_to_the_log_of_a_correct_node_is_evidence() {
    let mut nodes = nodes(Options { interval: 3, ..Options::default() });
    let sends = |_: u32, _: u32, it: &Message| matches!(it, Message::Sent(_) | Message::Receipt(_));
    nodes[0].local(b"one".to_vec());
    carry(&mut nodes, sends);
    nodes[0].local(b"two".to_vec());
    carry(&mut nodes, sends);
    let group = nodes[0].group.clone();
    let evidence = log_of(&nodes[1]);
    assert_eq!(evidence.verify(&group, &tree()), Err(Unproven::NoFault));
    let bytes = evidence.encode();
    for place in 0..bytes.len() {
        for bit in [0, 3, 7] {
            let mut changed = bytes.clone();
            changed[place] ^= 1 << bit;
            let proof = Evidence::decode(&changed).map(|it| it.verify(&group, &tree()));
            assert!(!matches!(proof, Some(Ok(_))), "byte {place}, bit {bit}: {proof:?}");
        }
    }
}

#[test]
fn evidence_begins_at_a_checkpoint_whose_state_the_accused_has_signed() {
    let options = Options { interval: 8, segment: 4, ..Options::default() };
    let mut nodes = nodes(options);
    for _ in 0..12 {
        nodes[0].local(b"part".to_vec());
        pass(&mut nodes, 12, all);
    }
    assert!(nodes[0].last() > 30);
    lie(&mut nodes[0]);
    pass(&mut nodes, 40, all);
    let Verdict::Exposed(evidence) = nodes[3].verdict(0) else {
        panic!("it is not exposed");
    };
    let group = nodes[3].group.clone();
    let Evidence::Log { node, base: Some(base), entries } = *evidence else {
        panic!("it has no base");
    };
    assert!(base.index >= 24 && entries.len() <= 16, "{} {}", base.index, entries.len());
    let with = |base: Option<Base>| Evidence::Log { node, base, entries: entries.clone() };
    assert!(with(Some(base.clone())).verify(&group, &tree()).is_ok());
    let other = Base { state: [base.state.clone(), vec![0]].concat(), ..base.clone() };
    assert_eq!(with(Some(other)).verify(&group, &tree()), Err(Unproven::State));
    let moved = Base { index: base.index + 8, ..base.clone() };
    assert_eq!(with(Some(moved)).verify(&group, &tree()), Err(Unproven::Signature));
    for index in [0, u64::MAX] {
        let moved = Base { index, ..base.clone() };
        assert_eq!(with(Some(moved)).verify(&group, &tree()), Err(Unproven::Malformed));
    }
    let greatest = Base { index: u64::MAX - entries.len() as u64, ..base.clone() };
    assert_eq!(with(Some(greatest)).verify(&group, &tree()), Err(Unproven::Signature));
    let long = Base { state: vec![0; group.options.state + 1], ..base.clone() };
    assert_eq!(with(Some(long)).verify(&group, &tree()), Err(Unproven::Malformed));
    assert_eq!(with(None).verify(&group, &tree()), Err(Unproven::Signature));
}

#[test]
fn evidence_is_not_longer_than_it_needs_to_be() {
    let options = Options { interval: 8, segment: 4, ..Options::default() };
    let mut nodes = nodes(options);
    let group = nodes[0].group.clone();
    (0..20).for_each(|_| assert!(nodes[0].local(b"part".to_vec())));
    lie(&mut nodes[0]);
    assert_eq!(log_of(&nodes[0]).verify(&group, &tree()), Err(Unproven::Malformed));
    let node = NODES + 1;
    let none = Evidence::Log { node, base: None, entries: Vec::new() };
    assert_eq!(none.verify(&group, &tree()), Err(Unproven::Malformed));
}

/// The signed entry of a node that takes a local input.
fn entry(node: &mut Node<Tree>, input: &[u8]) -> Authenticator {
    node.commit(Input::Local(input.to_vec()), Made::default()).unwrap()
}

#[test]
fn two_logs_of_one_device_are_evidence_and_one_log_is_none() {
    let group = group(Options::default());
    let (mut one, mut other) = (node(&group, 0), node(&group, 0));
    let [first, second] = [entry(&mut one, b"1"), entry(&mut one, b"2")];
    let [forked, unchained] = [entry(&mut other, b"3"), entry(&mut other, b"4")];
    let verify = |one: &Authenticator, other: &Authenticator| {
        let two = Box::new([one.clone(), other.clone()]);
        Evidence::Conflict(two).verify(&group, &tree())
    };
    assert_eq!(verify(&first, &forked), Ok(Proof::Forked(1)));
    assert_eq!(verify(&first, &unchained), Ok(Proof::Forked(2)));
    for (one, other) in [(&first, &second), (&first, &first), (&second, &first)] {
        assert_eq!(verify(one, other), Err(Unproven::NoFault));
    }
    let unsigned = Authenticator { signature: first.signature, ..forked };
    assert_eq!(verify(&first, &unsigned), Err(Unproven::Signature));
}

#[test]
fn evidence_is_given_to_a_peer_now_and_then_and_not_each_time_that_it_asks() {
    let mut nodes = nodes(Options::default());
    lie(&mut nodes[0]);
    pass(&mut nodes, 30, all);
    assert!(matches!(nodes[2].verdict(0), Verdict::Exposed(_)));
    let is_evidence = |it: &Message| matches!(it, Message::Evidence(_));
    for _ in 0..2 {
        let ask = Message::Exposed(Vec::new()).encode();
        (0..10).for_each(|_| nodes[2].receive(1, &ask));
        nodes[2].receive(3, &ask);
        assert_eq!(count(&mut nodes[2], is_evidence), 2);
        (0..5).for_each(|_| nodes[2].tick());
        nodes[2].outputs();
    }
}
