// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A registered key joins the two ends that it names, each in its role, and nobody else who has the
//! secret (SPEC §7.2; RFC 9257 on reflection and rerouting).
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod harness;

use harness::{run, run_with};
use smt_handshake::{KeyEnds, RegisteredKey, RegisteredProvider};
use smt_record::Suite;

/// The secret that all hosts of these tests have.
const SECRET: [u8; 32] = [5; 32];

fn key(own: &str, peer: &str) -> RegisteredKey {
    let ends = KeyEnds { own, peer };
    RegisteredKey::from_secret(b"group", ends, Suite::Aes128Gcm, &SECRET).unwrap()
}

/// The messages of `client` reach `server`, and the other way round. Both finish their exchange,
/// but they have no session, since they have no secret in common.
#[track_caller]
fn assert_no_session(client: RegisteredKey, server: RegisteredKey) {
    let client = RegisteredProvider::client(client);
    let server = RegisteredProvider::server(vec![server]).unwrap();
    assert_nothing_in_common(&client, &server);
}

#[track_caller]
fn assert_nothing_in_common(client: &RegisteredProvider, server: &RegisteredProvider) {
    let (at_client, at_server) = run(client, server).both();
    let (one, other) = (at_client.secrets, at_server.secrets);
    for (one, other) in [(&one.client, &other.client), (&one.server, &other.server)] {
        assert_ne!(one.data, other.data);
        assert_ne!(one.control, other.control);
    }
}

#[track_caller]
fn assert_session(client: RegisteredKey, server: RegisteredKey) {
    let ends = [client.ends().peer, server.ends().peer].map(str::to_owned);
    let client = RegisteredProvider::client(client);
    let server = RegisteredProvider::server(vec![server]).unwrap();
    let (at_client, at_server) = run(&client, &server).both();
    assert_eq!(at_client.secrets, at_server.secrets);
    let told = [at_client.peer.key_identity, at_server.peer.key_identity];
    assert_eq!(told, ends.map(Some));
}

#[test]
fn each_end_is_told_who_the_other_is() {
    assert_session(key("a", "b"), key("b", "a"));
}

// SMT [7.2-7]
#[test]
fn no_identity_is_sent() {
    let client = RegisteredProvider::client(key("web-identity", "store-identity"));
    let server = RegisteredProvider::server(vec![key("store-identity", "web-identity")]).unwrap();
    let mut sent = Vec::new();
    let outcome = run_with(&client, &server, |flight| {
        sent.extend_from_slice(&flight.params);
        sent.extend_from_slice(&flight.bytes);
    });
    outcome.both();
    let has = |word: &[u8]| sent.windows(word.len()).any(|window| window == word);
    assert!(has(b"group"), "the key's name is");
    assert!(!has(b"identity"));
}

// SMT [7.2-12]
#[test]
fn one_key_serves_both_directions_of_calls() {
    let both = |own, peer| RegisteredProvider::both(key(own, peer), vec![key(own, peer)]).unwrap();
    for (client, server) in [("a", "b"), ("b", "a")] {
        let (at_client, at_server) = run(&both(client, server), &both(server, client)).both();
        assert_eq!(at_client.secrets, at_server.secrets);
    }
}

#[test]
fn a_session_that_is_turned_around_to_the_servers_endpoint_of_the_same_host_fails() {
    assert_no_session(key("a", "b"), key("a", "b"));
}

#[test]
fn a_session_that_is_turned_around_to_the_same_endpoint_fails() {
    let endpoint = RegisteredProvider::both(key("a", "b"), vec![key("a", "b")]).unwrap();
    assert_nothing_in_common(&endpoint, &endpoint);
}

#[test]
fn a_session_that_is_led_to_another_host_with_the_same_secret_fails() {
    assert_no_session(key("a", "b"), key("c", "a"));
}

#[test]
fn another_client_with_the_same_secret_cannot_come_in_as_the_one_that_is_awaited() {
    assert_no_session(key("c", "b"), key("b", "a"));
}

// SMT [7.2-8]
#[test]
fn sides_that_disagree_in_the_servers_identity_have_no_session() {
    assert_no_session(key("a", "B"), key("b", "a"));
    assert_no_session(key("a", "b"), key("b.", "a"));
}

// SMT [7.2-8]
#[test]
fn sides_that_disagree_in_the_clients_identity_have_no_session() {
    assert_no_session(key("A", "b"), key("b", "a"));
    assert_no_session(key("a", "b"), key("b", "a."));
}

#[test]
fn sides_that_disagree_in_who_is_who_have_no_session() {
    assert_no_session(key("b", "a"), key("b", "a"));
}

#[test]
fn a_byte_that_moves_from_one_identity_to_the_other_is_another_session() {
    assert_no_session(key("web-1", "store"), key("1store", "web-"));
    assert_no_session(key("web", "store"), key("tore", "webs"));
}
