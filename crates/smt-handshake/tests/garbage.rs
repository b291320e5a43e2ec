// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whatever the flights hold, nothing panics, and nobody finishes who should not.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod harness;

use harness::{NAME, Random, params, providers, run_with};
use smt_handshake::{Algorithms, ClientAuth, ClientTls, Group, ServerTls, TlsProvider};
use smt_pki::EphemeralCa;
use smt_proto::key_exchange::{FailureKind, KeyExchangeProvider};

/// Mutual authentication without ML-KEM, so that flights are short.
fn mutual() -> (TlsProvider, TlsProvider) {
    let authority = EphemeralCa::new().unwrap();
    let trust = authority.trust().unwrap();
    let algorithms = Algorithms {
        groups: vec![Group::X25519],
        ..Algorithms::default()
    };
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
    let client_params = params(1, &client_provider, None);
    let server_params = params(2, &server_provider, None);
    let mut random = Random::from_env();
    for _ in 0..300 {
        let len = random.below(600);
        let mut bytes: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
        if random.below(2) == 0 && len > 5 {
            // Let it look like a TLS record of a handshake or an alert.
            bytes[..3].copy_from_slice(&[0x15 + random.below(2) as u8, 3, 3]);
            bytes[3..5].copy_from_slice(&(len as u16 - 5).to_be_bytes());
        }
        let mut server = server_provider.server(&client_params).unwrap();
        server.sent_params(&server_params);
        server.receive(1, &client_params, &bytes).unwrap_err();
        let mut client = client_provider.client(NAME).unwrap();
        client.sent_params(&client_params);
        let _ = client.next_flight();
        client.receive(2, &server_params, &bytes).unwrap_err();
        for side in [&mut server, &mut client] {
            let _ = side.next_flight();
            assert!(side.finished().is_none());
            assert!(
                side.receive(3, &[], &bytes).is_err(),
                "a failed attempt stays failed"
            );
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
        let failure = if changed == 2 {
            outcome.client_failure()
        } else {
            outcome.server_failure()
        };
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
fn a_late_failure_takes_the_result_back() {
    let (client_provider, server_provider) = mutual();
    let client_params = params(1, &client_provider, None);
    let server_params = params(2, &server_provider, None);
    let mut client = client_provider.client(NAME).unwrap();
    let mut server = server_provider.server(&client_params).unwrap();
    client.sent_params(&client_params);
    server.sent_params(&server_params);
    server
        .receive(1, &client_params, &client.next_flight().unwrap())
        .unwrap();
    client
        .receive(2, &server_params, &server.next_flight().unwrap())
        .unwrap();
    client
        .receive(4, &[], &[0x17, 3, 3, 0, 20, 1, 2, 3])
        .unwrap();
    client.receive(4, &[], &[0; 40]).unwrap_err();
    assert!(client.finished().is_none());
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
    assert!(
        failure.text.contains("65537 bytes, more than 65536"),
        "{failure}"
    );
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
