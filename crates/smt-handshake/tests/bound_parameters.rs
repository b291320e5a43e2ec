// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The clear parameters are bound: by the exporter's context, and by the suite in force.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod harness;

use harness::{Flight, NAME, Side, providers, run_with};
use smt_handshake::{Algorithms, KeyEnds, RegisteredKey, RegisteredProvider};
use smt_proto::key_exchange::{ClientRequest, FailureKind, Fault, KeyExchangeProvider};
use smt_record::Suite;

/// Where the window's lowest byte stands: a change there leaves the parameters valid.
fn window_byte(params: &[u8]) -> usize {
    let head = params.windows(2).position(|pair| pair == [8, 4]).expect("tag 8 has 4 bytes");
    head + 5
}

fn registered_key(own: &str, peer: &str) -> RegisteredKey {
    let ends = KeyEnds { own, peer };
    RegisteredKey::from_secret(b"k", ends, Suite::Aes128Gcm, &[5; 32]).unwrap()
}

fn registered_client() -> RegisteredProvider {
    RegisteredProvider::client(registered_key("a", "b"))
}

fn registered_server() -> RegisteredProvider {
    RegisteredProvider::server(vec![registered_key("b", "a")]).unwrap()
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
        assert_every_byte_is_bound(&registered_client(), &registered_server(), &[1, 0x80]);
    }

    // SMT [6.1-1]
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

    // SMT [6.1-1]
    #[test]
    fn missing_parameters_of_the_server_are_refused() {
        let algorithms = Algorithms::default();
        let (client, server) = providers(&algorithms, &algorithms);
        let outcome = run_with(&client, &server, |flight| {
            flight.params.truncate(if flight.number == 2 { 0 } else { usize::MAX })
        });
        assert_eq!(outcome.client_failure().kind, FailureKind::Malformed);
    }
}

mod suite {
    use super::*;

    fn without_aes_128(params: &mut [u8]) {
        let place = params.windows(2).position(|pair| pair == [0x13, 0x01]).expect("AES-128");
        params[place + 1] = 0x03;
    }

    // SMT [6.3-11], [6.3-12]
    #[test]
    fn one_that_the_clients_parameters_lack_is_refused_by_the_server_with_an_alert() {
        let algorithms = Algorithms::default();
        let (client, server) = providers(&algorithms, &algorithms);
        let mut answer = Vec::new();
        let outcome = run_with(&client, &server, |flight| match flight.number {
            1 => without_aes_128(&mut flight.params),
            _ => answer.clone_from(&flight.bytes),
        });
        assert_eq!(answer, [0x15, 3, 3, 0, 2, 2, 47], "illegal_parameter, which nothing protects");
        let failure = outcome.server_failure();
        assert_eq!((failure.kind, failure.fault), (FailureKind::NoCommonParameters, Fault::Peer));
        assert!(failure.text.contains("TLS_AES_128_GCM_SHA256"), "{failure}");
        assert!(failure.text.contains("the client's parameters"), "{failure}");
        assert_eq!(outcome.client_failure().kind, FailureKind::AlertReceived);
        assert_eq!(outcome.flights, 2);
    }

    // SMT [6.3-11]
    #[test]
    fn one_that_the_servers_parameters_lack_is_refused_by_the_client_and_the_server_learns_it() {
        let algorithms = Algorithms::default();
        let (client, server) = providers(&algorithms, &algorithms);
        let outcome = run_with(&client, &server, |flight| {
            if flight.number == 2 {
                without_aes_128(&mut flight.params);
            }
        });
        assert_eq!(outcome.client_failure().kind, FailureKind::NoCommonParameters);
        let failure = outcome.server_failure();
        assert_eq!(failure.kind, FailureKind::AlertReceived);
        assert!(failure.text.starts_with("the client gave this attempt up"), "{failure}");
    }

    #[test]
    fn one_that_the_servers_own_parameters_lack_is_refused_by_the_server_itself_with_an_alert() {
        let algorithms = Algorithms::default();
        let (client, server) = providers(&algorithms, &algorithms);
        let mut client = Side::client(&client);
        let attempt = server.server(&client.params, None).unwrap();
        assert_eq!(attempt.suites[0], Suite::Aes128Gcm);
        let mut server = Side::of(attempt, 2);
        let mut lacking = server.params.clone();
        without_aes_128(&mut lacking);
        server.start(&lacking);
        let failure = server.receive(&client.flight(1).unwrap()).unwrap_err();
        assert_eq!(failure.kind, FailureKind::NoCommonParameters);
        assert!(server.finished().is_none());
        let told = client.receive(&server.flight(2).unwrap()).unwrap_err();
        assert_eq!(told.kind, FailureKind::AlertReceived);
        assert!(client.finished().is_none());
    }
}

mod never_given {
    use super::*;

    #[test]
    fn parameters_of_a_server_over_tls_are_the_callers_fault() {
        let algorithms = Algorithms::default();
        let (client, server) = providers(&algorithms, &algorithms);
        let mut client = Side::client(&client);
        let mut server = Side::of(server.server(&client.params, None).unwrap(), 2);
        server.receive(&client.flight(1).unwrap()).unwrap();
        client.receive(&server.flight(2).unwrap()).unwrap();
        let failure = server.receive(&client.flight(3).unwrap()).unwrap_err();
        assert_eq!(failure.fault, Fault::Caller);
        assert!(server.finished().is_none());
    }

    #[test]
    fn parameters_of_a_client_over_tls_are_the_callers_fault() {
        let algorithms = Algorithms::default();
        let (client, server) = providers(&algorithms, &algorithms);
        let mut client = Side::of(client.client(ClientRequest::new(NAME)).unwrap(), 1);
        // A client that has not begun has said nothing yet: an empty flight makes it speak.
        client.receive(&Flight::of(2, &[], &[])).unwrap();
        let mut server = Side::server(&server, &client.params).unwrap();
        server.receive(&client.flight(1).unwrap()).unwrap();
        let failure = client.receive(&server.flight(2).unwrap()).unwrap_err();
        assert_eq!(failure.fault, Fault::Caller);
        assert!(client.finished().is_none());
    }

    #[test]
    fn parameters_of_either_side_with_a_registered_key_are_the_callers_fault() {
        let (client, server) = (registered_client(), registered_server());
        let mut client = Side::of(client.client(ClientRequest::new(NAME)).unwrap(), 1);
        let mut server = Side::of(server.server(&client.params, None).unwrap(), 2);
        server.receive(&Flight::of(1, &client.params, &[])).unwrap();
        let at_client = client.receive(&server.flight(2).unwrap()).unwrap_err();
        let at_server = server.receive(&Flight::of(3, &[], &[])).unwrap_err();
        assert_eq!([at_client.fault, at_server.fault], [Fault::Caller; 2]);
        assert!(client.finished().is_none() && server.finished().is_none());
    }
}
