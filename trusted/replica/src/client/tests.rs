// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client of five nodes, two of which lie.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::*;
use crate::client_table::{RefusalReason, is_last_of_session, session_of};
use crate::group::Options;

fn node_key(node: u32) -> SigningKey {
    SigningKey::from_bytes(&[node as u8 + 1; 32])
}

fn client() -> Client {
    let key = SigningKey::from_bytes(&[99; 32]);
    let keys = (0..5).map(|it| node_key(it).verifying_key().to_bytes()).collect();
    let clients = BTreeMap::from([(1, key.verifying_key().to_bytes())]);
    let group = Group::new(1, clients, keys, Options::default());
    Client::new(Arc::new(group), 1, key, 0)
}

fn reply(client: &Client, node: u32, number: u64, result: Result<Vec<u8>, Refusal>) -> Reply {
    let request = client.in_progress[&number].digest;
    let (view, proof) = (u64::from(node), Proof::default());
    let reply = Reply { replica: node, view, client: 1, number, request, result, proof };
    reply.sign(&node_key(node))
}

#[test]
fn several_requests_are_in_progress_and_each_ends_with_what_three_of_five_say() {
    let mut client = client();
    let numbers: Vec<u64> = (0..3).map(|_| client.submit([0; 16], vec![1]).unwrap()).collect();
    assert_eq!(client.asks().len(), 3);
    for number in numbers.into_iter().rev() {
        let right = vec![number as u8];
        for (node, said) in [(0, &right), (1, &vec![77]), (2, &right), (2, &right)] {
            let said = reply(&client, node, number, Ok(said.clone()));
            assert_eq!(client.receive(said), None, "node {node}");
        }
        let last = reply(&client, 4, number, Ok(right.clone()));
        let completed = Completion { number, result: Ok(right) };
        assert_eq!(client.receive(last.clone()), Some(completed));
        assert_eq!(client.receive(last), None);
    }
    assert!(!client.is_waiting());
    assert_eq!(client.view(), 1);
}

#[test]
fn a_reply_to_another_request_of_another_node_or_without_a_signature_is_no_reply() {
    let mut client = client();
    let number = client.submit([0; 16], vec![1]).unwrap();
    let good = |client: &Client, node| reply(client, node, number, Ok(vec![1]));
    for node in [0, 1] {
        assert_eq!(client.receive(good(&client, node)), None);
    }
    let third = good(&client, 2);
    let signed = |it: Reply, node| it.sign(&node_key(node));
    let bad = [
        Reply { proof: Proof::default(), ..third.clone() },
        Reply { replica: 3, ..third.clone() },
        Reply { result: Ok(vec![2]), ..third.clone() },
        signed(Reply { request: [0; 32], ..third.clone() }, 2),
        signed(Reply { number: number + 1, ..third.clone() }, 2),
        signed(Reply { client: 2, ..third.clone() }, 2),
        signed(Reply { replica: 5, ..third.clone() }, 5),
    ];
    for it in bad {
        assert_eq!(client.receive(it.clone()), None, "{it:?}");
    }
    assert!(client.receive(third).is_some());
}

#[test]
fn a_refusal_is_one_of_three_of_five_and_the_newest_session_is_no_later_than_a_correct_one_says() {
    let mut client = client();
    let number = client.submit([0; 16], vec![1]).unwrap();
    let refusal = |newest, may_have_run| {
        Err(Refusal { reason: RefusalReason::SessionIsOver, may_have_run, newest })
    };
    let said = [(0, refusal(9, false)), (1, refusal(u64::MAX, false)), (2, refusal(9, true))];
    for (node, said) in said {
        let said = reply(&client, node, number, said);
        assert_eq!(client.receive(said), None, "node {node}");
    }
    let last = reply(&client, 3, number, refusal(8, false));
    assert_eq!(client.receive(last), Some(Completion { number, result: refusal(8, false) }));
}

#[test]
fn no_request_is_begun_that_would_make_one_in_progress_too_low() {
    let mut client = client();
    let first = client.begin_session([0; 16], 5);
    assert_eq!(first, first_number(5));
    let begun = { std::iter::from_fn(|| client.submit([0; 16], Vec::new())) }.count() as u64;
    assert_eq!(begun + 1, IN_PROGRESS_MAX);
    client.give_up(first + 1);
    assert_eq!(client.submit([0; 16], Vec::new()), None);
    client.give_up(first);
    client.give_up(first + 2);
    let begun = { std::iter::from_fn(|| client.submit([0; 16], Vec::new())) }.count();
    assert_eq!(begun, 3);
}

// Once, the numbers went on in the next session, which another process may have.
#[test]
fn no_request_is_begun_beyond_the_last_place_of_a_session() {
    for session in [5, first_number(1) - 1, session_of(u64::MAX)] {
        let mut client = client();
        client.begin_session([0; 16], session);
        let last = first_number(session) + (first_number(1) - 1);
        client.last = last - 2;
        client.in_progress.clear();
        let begun = std::iter::from_fn(|| client.submit([0; 16], Vec::new()));
        assert!(begun.eq([last - 1, last]), "session {session}");
        assert!(is_last_of_session(last) && !is_last_of_session(last - 1));
        client.begin_session([0; 16], 6);
        assert_eq!(client.submit([0; 16], Vec::new()), Some(first_number(6) + 1));
    }
}

#[test]
fn a_request_that_takes_long_is_sent_to_all() {
    let mut client = client();
    client.submit([0; 16], Vec::new());
    client.asks();
    (0..10).for_each(|_| client.tick());
    assert!(matches!(client.asks().as_slice(), [Ask::All(_)]));
}
