// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The clear parameters are bound: by the exporter's context, and by the suite in force.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod harness;

use harness::{NAME, params, providers, run_with};
use smt_handshake::{Algorithms, KeyEnds, RegisteredKey, RegisteredProvider};
use smt_proto::key_exchange::{FailureKind, Fault, KeyExchangeProvider};
use smt_record::Suite;

/// Where the window's lowest byte stands: a change there leaves the parameters valid.
fn window_byte(params: &[u8]) -> usize {
    let head = params
        .windows(2)
        .position(|pair| pair == [8, 4])
        .expect("tag 8 has 4 bytes");
    head + 5
}

mod changed_in_flight {
    use super::*;

    #[test]
    fn either_sides_change_gives_the_two_sides_different_secrets() {
        let algorithms = Algorithms::default();
        let (client, server) = providers(&algorithms, &algorithms);
        for changed in [1, 2] {
            let outcome = run_with(&client, &server, |flight| {
                if flight.number == changed {
                    let place = window_byte(&flight.params);
                    flight.params[place] ^= 1;
                }
            });
            let (at_client, at_server) = outcome.both();
            for (one, other) in [
                (&at_client.secrets.client, &at_server.secrets.client),
                (&at_client.secrets.server, &at_server.secrets.server),
            ] {
                assert_ne!(one.data, other.data);
                assert_ne!(one.control, other.control);
            }
        }
    }

    /// Whether a change of one byte of `flight`'s parameters lets both sides finish with secrets
    /// of which any is the same.
    fn is_overlooked(
        (client, server): (&dyn KeyExchangeProvider, &dyn KeyExchangeProvider),
        flight: u8,
        place: usize,
        change: u8,
    ) -> bool {
        let outcome = run_with(client, server, |sent| {
            if sent.number == flight {
                sent.params[place] ^= change;
            }
        });
        let (Ok(at_client), Ok(at_server)) = (outcome.client, outcome.server) else {
            return false;
        };
        [
            (&at_client.secrets.client, &at_server.secrets.client),
            (&at_client.secrets.server, &at_server.secrets.server),
        ]
        .iter()
        .any(|(one, other)| one.data == other.data || one.control == other.control)
    }

    /// Lengths of both sides' parameters.
    fn lengths(client: &dyn KeyExchangeProvider, server: &dyn KeyExchangeProvider) -> [usize; 2] {
        let mut lengths = [0; 2];
        let outcome = run_with(client, server, |sent| {
            if let Some(length) = lengths.get_mut(usize::from(sent.number) - 1) {
                *length = sent.params.len();
            }
        });
        outcome.both();
        lengths
    }

    #[track_caller]
    fn assert_every_byte_is_bound(
        client: &dyn KeyExchangeProvider,
        server: &dyn KeyExchangeProvider,
        changes: &[u8],
    ) {
        for (flight, length) in [1, 2].into_iter().zip(lengths(client, server)) {
            for place in 0..length {
                for &change in changes {
                    assert!(
                        !is_overlooked((client, server), flight, place, change),
                        "byte {place} of flight {flight}'s parameters, changed by {change:#x}"
                    );
                }
            }
        }
    }

    #[test]
    fn no_byte_of_either_sides_parameters_changes_without_other_secrets_or_a_refusal() {
        let algorithms = Algorithms::default();
        let (client, server) = providers(&algorithms, &algorithms);
        assert_every_byte_is_bound(&client, &server, &[1]);
    }

    #[test]
    fn no_byte_of_a_registered_keys_parameters_changes_without_other_secrets_or_a_refusal() {
        let key = |own, peer| {
            let ends = KeyEnds { own, peer };
            RegisteredKey::from_secret(b"k", ends, Suite::Aes128Gcm, &[5; 32]).unwrap()
        };
        let client = RegisteredProvider::client(key("a", "b"));
        let server = RegisteredProvider::server(vec![key("b", "a")]).unwrap();
        assert_every_byte_is_bound(&client, &server, &[1, 0x80]);
    }

    #[test]
    fn parameters_in_a_later_flight_are_refused() {
        let algorithms = Algorithms::default();
        let (client, server) = providers(&algorithms, &algorithms);
        let outcome = run_with(&client, &server, |flight| {
            if flight.number == 3 {
                flight.params = vec![1, 1, 1];
            }
        });
        assert_eq!(outcome.server_failure().kind, FailureKind::Malformed);
    }

    #[test]
    fn missing_parameters_of_the_server_are_refused() {
        let algorithms = Algorithms::default();
        let (client, server) = providers(&algorithms, &algorithms);
        let outcome = run_with(&client, &server, |flight| {
            flight
                .params
                .truncate(if flight.number == 2 { 0 } else { usize::MAX })
        });
        assert_eq!(outcome.client_failure().kind, FailureKind::Malformed);
    }
}

mod suite {
    use super::*;

    fn without_aes_128(params: &mut [u8]) {
        let place = params
            .windows(2)
            .position(|pair| pair == [0x13, 0x01])
            .expect("AES-128");
        params[place + 1] = 0x03;
    }

    #[test]
    fn one_that_the_clients_parameters_lack_is_refused_by_the_server_with_an_alert() {
        let algorithms = Algorithms::default();
        let (client, server) = providers(&algorithms, &algorithms);
        let outcome = run_with(&client, &server, |flight| {
            if flight.number == 1 {
                without_aes_128(&mut flight.params);
            }
        });
        let failure = outcome.server_failure();
        assert_eq!(
            (failure.kind, failure.fault),
            (FailureKind::NoCommonParameters, Fault::Peer)
        );
        assert!(failure.text.contains("TLS_AES_128_GCM_SHA256"), "{failure}");
        assert!(
            failure.text.contains("the client's parameters"),
            "{failure}"
        );
        assert_eq!(outcome.client_failure().kind, FailureKind::AlertReceived);
        assert_eq!(outcome.flights, 2);
    }

    #[test]
    fn one_that_the_servers_parameters_lack_is_refused_by_the_client_and_the_server_learns_it() {
        let algorithms = Algorithms::default();
        let (client, server) = providers(&algorithms, &algorithms);
        let outcome = run_with(&client, &server, |flight| {
            if flight.number == 2 {
                without_aes_128(&mut flight.params);
            }
        });
        assert_eq!(
            outcome.client_failure().kind,
            FailureKind::NoCommonParameters
        );
        let failure = outcome.server_failure();
        assert_eq!(failure.kind, FailureKind::AlertReceived);
        assert!(
            failure.text.starts_with("the client gave this attempt up"),
            "{failure}"
        );
    }

    #[test]
    fn one_that_the_servers_own_parameters_lack_never_finishes() {
        let algorithms = Algorithms::default();
        let (client_provider, server_provider) = providers(&algorithms, &algorithms);
        let client_params = params(1, &client_provider, None);
        let mut server_params = params(2, &server_provider, None);
        let mut client = client_provider.client(NAME).unwrap();
        let mut server = server_provider.server(&client_params).unwrap();
        client.sent_params(&client_params);
        server
            .receive(1, &client_params, &client.next_flight().unwrap())
            .unwrap();
        let honest = server_params.clone();
        without_aes_128(&mut server_params);
        server.sent_params(&server_params);
        client
            .receive(2, &honest, &server.next_flight().unwrap())
            .unwrap();
        server
            .receive(3, &[], &client.next_flight().unwrap())
            .unwrap_err();
        assert!(server.finished().is_none());
        assert_eq!(server_provider.suites()[0], Suite::Aes128Gcm);
    }

    #[test]
    fn parameters_that_were_never_given_are_the_callers_fault() {
        let algorithms = Algorithms::default();
        let (client_provider, server_provider) = providers(&algorithms, &algorithms);
        let client_params = params(1, &client_provider, None);
        let mut client = client_provider.client(NAME).unwrap();
        let mut server = server_provider.server(&client_params).unwrap();
        server
            .receive(1, &client_params, &client.next_flight().unwrap())
            .unwrap();
        let server_params = params(2, &server_provider, None);
        let failure = client
            .receive(2, &server_params, &server.next_flight().unwrap())
            .unwrap_err();
        assert_eq!(failure.fault, Fault::Caller);
        assert!(client.finished().is_none());
    }
}
