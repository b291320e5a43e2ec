// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Key exchanges without key exchange bytes: registered keys and the plaintext version.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod harness;

use std::collections::HashSet;

use harness::{Flight, Side, run, run_with};
use smt_handshake::{
    Algorithms, KeyEnds, PlaintextProvider, RegisteredKey, RegisteredProvider, TlsTrafficKey,
};
use smt_proto::key_exchange::{ClientRequest, FailureKind, Fault, KeyExchangeProvider, NamedKey};
use smt_record::Suite;

const CLIENT: KeyEnds<'static> = KeyEnds { own: "client", peer: "server" };

const SERVER: KeyEnds<'static> = KeyEnds { own: "server", peer: "client" };

fn key(name: &[u8], ends: KeyEnds<'_>, secret: u8) -> RegisteredKey {
    RegisteredKey::from_secret(name, ends, Suite::Aes256Gcm, &[secret; 32]).unwrap()
}

fn providers() -> (RegisteredProvider, RegisteredProvider) {
    let keys = vec![key(b"other", SERVER, 1), key(b"one", SERVER, 2)];
    let server = RegisteredProvider::server(keys).unwrap();
    (RegisteredProvider::client(key(b"one", CLIENT, 2)), server)
}

mod registered {
    use super::*;

    #[test]
    fn both_sides_get_the_same_secrets_and_the_keys_name() {
        let (client, server) = providers();
        let outcome = run(&client, &server);
        assert_eq!(outcome.flights, 3);
        let (at_client, at_server) = outcome.both();
        assert_eq!(at_client.secrets, at_server.secrets);
        assert_eq!(at_client.secrets.suite, Suite::Aes256Gcm);
        for finished in [&at_client, &at_server] {
            assert_eq!(finished.peer.key_name.as_deref(), Some(&b"one"[..]));
            assert!(finished.peer.certificates.is_empty());
        }
    }

    #[test]
    fn the_same_key_gives_different_secrets_each_time() {
        let (client, server) = providers();
        let (one, _) = run(&client, &server).both();
        let (two, _) = run(&client, &server).both();
        assert_ne!(one.secrets.client, two.secrets.client);
        assert_ne!(one.secrets.server, two.secrets.server);
        assert_ne!(one.secrets.client, one.secrets.server);
    }

    #[test]
    fn tls_keys_of_every_suite_are_taken() {
        for suite in Suite::ALL {
            let of = |ends| {
                let keys = [vec![1; suite.key_len()], vec![2; suite.key_len()]];
                let [client, server] = [(&keys[0], &[3; 12]), (&keys[1], &[4; 12])]
                    .map(|(key, iv)| TlsTrafficKey { key, iv });
                RegisteredKey::from_tls_keys(b"k", ends, suite, client, server).unwrap()
            };
            let server = RegisteredProvider::server(vec![of(SERVER)]).unwrap();
            let (at_client, at_server) =
                run(&RegisteredProvider::client(of(CLIENT)), &server).both();
            assert_eq!(at_client.secrets, at_server.secrets);
        }
    }

    #[test]
    fn a_key_of_the_same_name_and_another_content_gives_other_secrets() {
        let server = RegisteredProvider::server(vec![key(b"one", SERVER, 9)]).unwrap();
        let (at_client, at_server) = run(&providers().0, &server).both();
        assert_ne!(at_client.secrets, at_server.secrets);
    }

    #[test]
    fn an_unknown_name_is_refused_by_name() {
        let client = RegisteredProvider::client(key(b"nobody", CLIENT, 2));
        let failure = run(&client, &providers().1).server_failure();
        assert_eq!((failure.kind, failure.fault), (FailureKind::NoCommonParameters, Fault::Peer));
        assert!(failure.text.contains("registered key \"nobody\""), "{failure}");
    }

    // SMT [6.3-11]
    #[test]
    fn another_suite_is_refused() {
        let other = RegisteredKey::from_secret(b"one", CLIENT, Suite::Aes128Gcm, &[2; 32]).unwrap();
        let failure = run(&RegisteredProvider::client(other), &providers().1).server_failure();
        assert_eq!(failure.kind, FailureKind::NoCommonParameters);
        assert!(failure.text.contains("another suite than TLS_AES_256_GCM_SHA384"), "{failure}");
    }

    #[test]
    fn parameters_changed_in_flight_give_different_secrets() {
        let (client, server) = providers();
        for changed in [1, 2] {
            let outcome = run_with(&client, &server, |flight| {
                if flight.number == changed {
                    // Behind the random stand the two bytes of tag 15.
                    *flight.params.iter_mut().nth_back(2).unwrap() ^= 1;
                }
            });
            let (at_client, at_server) = outcome.both();
            assert_ne!(at_client.secrets.client, at_server.secrets.client);
        }
    }

    // SMT [6.1-24]
    #[test]
    fn key_exchange_bytes_are_refused_in_every_flight() {
        let (client, server) = providers();
        for changed in [1, 2, 3] {
            let outcome = run_with(&client, &server, |flight| {
                if flight.number == changed {
                    flight.bytes.push(0);
                }
            });
            let side =
                if changed == 2 { outcome.client_failure() } else { outcome.server_failure() };
            assert_eq!(side.kind, FailureKind::Malformed);
        }
    }

    // SMT [6.3-10]
    #[test]
    fn another_name_in_the_servers_answer_is_refused() {
        let (client, server) = providers();
        let outcome = run_with(&client, &server, |flight| {
            if flight.number == 2 {
                let place = flight.params.windows(3).position(|name| name == b"one").unwrap();
                flight.params[place] ^= 1;
            }
        });
        assert_eq!(outcome.client_failure().kind, FailureKind::NoCommonParameters);
    }

    #[test]
    fn flights_out_of_turn_are_refused_and_end_the_attempt() {
        let (client, server) = providers();
        let offered = Side::client(&client).params;
        for first in [0, 2, 3, 255] {
            let mut server = Side::server(&server, &offered).unwrap();
            assert!(server.receive(&Flight::of(first, &[], &[])).is_err());
            assert!(server.finished().is_none() && server.flight(2).is_none());
            assert!(server.receive(&Flight::of(1, &offered, &[])).is_err());
            assert!(server.finished().is_none() && server.flight(2).is_none());
        }
        let answer = Side::server(&server, &offered).unwrap().params;
        let mut client = Side::client(&client);
        assert!(client.receive(&Flight::of(4, &answer, &[])).is_err());
        assert!(client.finished().is_none());
        assert!(client.receive(&Flight::of(2, &answer, &[])).is_err());
        assert!(client.finished().is_none() && client.flight(3).is_none());
    }

    // SMT [6.3-10]
    #[test]
    fn the_random_of_either_side_is_fresh() {
        let (client, server) = providers();
        let offered = Side::client(&client).params;
        let of_client = || client.client(ClientRequest::new("")).unwrap().key.unwrap();
        let of_server = || server.server(&offered, None).unwrap().key.unwrap();
        let keys = [of_client(), of_client(), of_server(), of_server()];
        let randoms: HashSet<[u8; 32]> = keys.iter().map(|key| key.random).collect();
        assert_eq!(randoms.len(), keys.len());
        for NamedKey { name, random } in &keys {
            assert_eq!(name, b"one");
            assert_ne!(*random, [0; 32]);
        }
    }

    #[test]
    fn a_server_alone_makes_no_calls() {
        let failure = providers().1.client(ClientRequest::new("")).err().unwrap();
        assert_eq!(failure.fault, Fault::Caller);
    }

    #[test]
    fn tls_parameters_are_refused() {
        let (tls, _) = harness::providers(&Algorithms::default(), &Algorithms::default());
        let offered = Side::client(&tls).params;
        let failure = providers().1.server(&offered, None).err().unwrap();
        assert_eq!(failure.kind, FailureKind::NoCommonParameters);
    }
}

mod plaintext {
    use super::*;

    // SMT [14-2]
    #[test]
    fn both_sides_get_plaintext_secrets() {
        let mut sent = Vec::new();
        let outcome = run_with(&PlaintextProvider, &PlaintextProvider, |flight| {
            sent.push((flight.number, flight.params.get(5).copied(), flight.bytes.len()));
        });
        // Tag 2 has one byte, which stands behind the only version.
        assert_eq!(sent, [(1, Some(0xF1), 0), (2, Some(0xF1), 0), (3, None, 0)]);
        let (at_client, at_server) = outcome.both();
        assert!(at_client.secrets.is_plaintext() && at_server.secrets.is_plaintext());
    }

    // SMT [14-4]
    #[test]
    fn a_side_refuses_parameters_that_name_a_suite() {
        for changed in [1, 2] {
            let outcome = run_with(&PlaintextProvider, &PlaintextProvider, |flight| {
                if flight.number == changed {
                    let place = flight.params.windows(2).position(|tag| tag == [4, 2]).unwrap();
                    flight.params[place + 2..place + 4].copy_from_slice(&[0x13, 0x01]);
                }
            });
            let failure = match changed {
                1 => outcome.server_failure(),
                _ => outcome.client_failure(),
            };
            assert_eq!(failure.kind, FailureKind::Malformed);
        }
    }

    // SMT [14-2]
    #[test]
    fn a_side_refuses_parameters_of_another_exchange() {
        let (client, server) = providers();
        let offered = Side::client(&client).params;
        let failure = PlaintextProvider.server(&offered, None).err().unwrap();
        assert_eq!(failure.kind, FailureKind::NoCommonParameters);
        let mut client = Side::client(&PlaintextProvider);
        assert!(server.server(&client.params, None).is_err());
        assert!(client.receive(&Flight::of(2, &offered, &[])).is_err());
        assert!(client.finished().is_none());
    }
}
