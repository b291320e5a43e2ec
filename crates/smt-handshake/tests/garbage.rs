// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whatever the flights hold, nothing panics, and nobody finishes who should not.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod harness;

use harness::{Flight, NAME, Random, Side, providers, run_with};
use smt_handshake::{Algorithms, ClientAuth, ClientTls, Group, ServerTls, TlsProvider};
use smt_pki::EphemeralCa;
use smt_proto::key_exchange::FailureKind;

/// Mutual authentication without ML-KEM, so that flights are short.
fn mutual() -> (TlsProvider, TlsProvider) {
    let authority = EphemeralCa::new().unwrap();
    let trust = authority.trust().unwrap();
    let algorithms = Algorithms { groups: vec![Group::X25519], ..Algorithms::default() };
    let client = ClientTls::new(trust.clone()).with_identity(authority.client("c").unwrap());
    let server = ServerTls::new(authority.server(&[NAME]).unwrap())
        .with_client_auth(ClientAuth::Required(trust));
    (
        TlsProvider::new(Some(client), None, &algorithms).unwrap(),
        TlsProvider::new(None, Some(server), &algorithms).unwrap(),
    )
}

#[test]
fn random_bytes_fail_at_either_side() {
    let (client_provider, server_provider) = mutual();
    let mut random = Random::from_env();
    for _ in 0..300 {
        let len = random.below(600);
        let mut bytes: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
        if random.below(2) == 0 && len > 5 {
            // Let it look like a TLS record of a handshake or an alert.
            bytes[..3].copy_from_slice(&[0x15 + random.below(2) as u8, 3, 3]);
            bytes[3..5].copy_from_slice(&(len as u16 - 5).to_be_bytes());
        }
        let mut client = Side::client(&client_provider);
        let mut server = Side::server(&server_provider, &client.params).unwrap();
        let to_server = Flight::of(1, &client.params, &bytes);
        let to_client = Flight::of(2, &server.params, &bytes);
        server.receive(&to_server).unwrap_err();
        client.receive(&to_client).unwrap_err();
        for side in [&mut server, &mut client] {
            assert!(side.finished().is_none());
            let again = side.receive(&Flight::of(3, &[], &bytes));
            assert!(again.is_err(), "a failed attempt stays failed");
            assert!(side.finished().is_none());
        }
    }
}

#[test]
fn a_flipped_bit_fails_or_changes_nothing() {
    let (client, server) = mutual();
    let mut random = Random::from_env();
    for round in 0..120 {
        let changed = 1 + round % 3;
        let outcome = run_with(&client, &server, |flight| {
            if flight.number == changed {
                let place = random.below(flight.bytes.len());
                flight.bytes[place] ^= 1 << random.below(8);
            }
        });
        if let (Ok(client), Ok(server)) = (&outcome.client, &outcome.server) {
            // Only bytes without a meaning may have changed, e.g. a record's legacy version
            // (RFC 8446 §5.1): then everything else must be right.
            assert_eq!(client.secrets, server.secrets);
            assert_eq!(server.peer.certificates.len(), 1);
        }
    }
}

#[test]
fn a_flight_cut_anywhere_is_malformed() {
    let (client, server) = mutual();
    let mut random = Random::from_env();
    for round in 0..60 {
        let changed = 1 + round % 3;
        let outcome = run_with(&client, &server, |flight| {
            if flight.number == changed {
                let keep = random.below(flight.bytes.len());
                flight.bytes.truncate(keep);
            }
        });
        let failure =
            if changed == 2 { outcome.client_failure() } else { outcome.server_failure() };
        assert_eq!(failure.kind, FailureKind::Malformed, "{failure}");
    }
}

#[test]
fn a_client_says_nothing_to_a_lone_server_hello() {
    let (client, server) = mutual();
    let outcome = run_with(&client, &server, |flight| {
        if flight.number == 2 {
            let hello = usize::from(u16::from_be_bytes([flight.bytes[3], flight.bytes[4]]));
            flight.bytes.truncate(5 + hello);
        }
    });
    assert_eq!(outcome.client_failure().kind, FailureKind::Malformed);
    assert_eq!(outcome.flights, 2);
}

#[test]
fn a_failure_after_the_result_is_told_and_yields_no_other_result() {
    let (client, server) = mutual();
    let mut client = Side::client(&client);
    let mut server = Side::server(&server, &client.params).unwrap();
    server.receive(&client.flight(1).unwrap()).unwrap();
    client.receive(&server.flight(2).unwrap()).unwrap();
    assert!(client.finished().is_some());
    let partial = Flight::of(4, &[], &[0x17, 3, 3, 0, 20, 1, 2, 3]);
    client.receive(&partial).unwrap();
    assert!(client.finished().is_none(), "there is one result");
    for _ in 0..2 {
        let rest = Flight::of(4, &[], &[0; 40]);
        client.receive(&rest).unwrap_err();
        assert!(client.finished().is_none());
    }
}

#[test]
fn a_flight_beyond_the_limit_is_refused() {
    let (client, server) = mutual();
    let outcome = run_with(&client, &server, |flight| {
        if flight.number == 1 {
            flight.bytes.resize(65_537, 0);
        }
    });
    let failure = outcome.server_failure();
    assert_eq!(failure.kind, FailureKind::Malformed);
    assert!(failure.text.contains("65537 bytes, more than 65536"), "{failure}");
}

#[test]
fn a_repeated_or_reflected_flight_is_refused() {
    let (client, server) = providers(&Algorithms::default(), &Algorithms::default());
    let mut first = Vec::new();
    let outcome = run_with(&client, &server, |flight| match flight.number {
        1 => first.clone_from(&flight.bytes),
        2 => flight.bytes.clone_from(&first),
        _ => {}
    });
    assert!(outcome.client.is_err() && outcome.server.is_err());
    let outcome = run_with(&client, &server, |flight| match flight.number {
        1 => first.clone_from(&flight.bytes),
        3 => flight.bytes.clone_from(&first),
        _ => {}
    });
    assert!(outcome.server.is_err());
}
