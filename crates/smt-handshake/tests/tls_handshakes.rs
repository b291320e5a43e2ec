// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Full TLS handshakes: every suite and group, client certificates, HelloRetryRequest.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod harness;

use std::collections::BTreeMap;

use harness::{EARLY_DATA, NAME, PRE_SHARED_KEY, Side, providers, run, run_request, run_with};
use smt_handshake::{
    Algorithms, ClientAuth, ClientTls, Group, Identity, ServerTls, TlsProvider, Trust,
};
use smt_pki::{CertificatePlan, CertificateText, EphemeralCa, IssuedCertificate, KeyKind};
use smt_proto::key_exchange::{ClientRequest, KeyExchangeProvider};
use smt_record::Suite;

const GROUPS: [(Group, &str); 3] = [
    (Group::X25519MlKem768, "X25519MLKEM768"),
    (Group::X25519, "X25519"),
    (Group::P256, "secp256r1"),
];

fn only(suite: Suite, group: Group) -> Algorithms {
    Algorithms { suites: vec![suite], groups: vec![group] }
}

mod handshake {
    use super::*;

    // SMT [6.1-13]
    #[test]
    fn every_suite_and_group_gives_both_sides_the_same_secrets() {
        for suite in Suite::ALL {
            for (group, name) in GROUPS {
                let algorithms = only(suite, group);
                let (client, server) = providers(&algorithms, &algorithms);
                let outcome = run(&client, &server);
                assert_eq!(outcome.flights, 3);
                let (client, server) = outcome.both();
                assert_eq!(client.secrets, server.secrets);
                assert_eq!(client.secrets.suite, suite);
                assert_eq!((client.key_exchange, server.key_exchange), (name, name));
            }
        }
    }

    #[test]
    fn the_four_secrets_differ() {
        let algorithms = Algorithms::default();
        let (client, server) = providers(&algorithms, &algorithms);
        let (finished, _) = run(&client, &server).both();
        let secrets = [
            &finished.secrets.client.data,
            &finished.secrets.client.control,
            &finished.secrets.server.data,
            &finished.secrets.server.control,
        ];
        for (place, secret) in secrets.iter().enumerate() {
            assert!(!secrets[..place].contains(secret));
        }
    }

    #[test]
    fn two_handshakes_never_share_secrets() {
        let algorithms = Algorithms::default();
        let (client, server) = providers(&algorithms, &algorithms);
        let (one, _) = run(&client, &server).both();
        let (two, _) = run(&client, &server).both();
        assert_ne!(one.secrets, two.secrets);
    }

    #[test]
    fn the_default_is_post_quantum_and_aes_128() {
        let algorithms = Algorithms::default();
        let (client, server) = providers(&algorithms, &algorithms);
        let (finished, _) = run(&client, &server).both();
        assert_eq!(finished.key_exchange, "X25519MLKEM768");
        assert_eq!(finished.secrets.suite, Suite::Aes128Gcm);
    }

    #[test]
    fn the_servers_order_of_suites_decides() {
        let reversed = Algorithms {
            suites: vec![Suite::ChaCha20Poly1305, Suite::Aes256Gcm, Suite::Aes128Gcm],
            ..Algorithms::default()
        };
        let (client, server) = providers(&Algorithms::default(), &reversed);
        let (finished, _) = run(&client, &server).both();
        assert_eq!(finished.secrets.suite, Suite::ChaCha20Poly1305);
    }

    #[test]
    fn disjoint_key_shares_cost_two_more_flights() {
        let client = Algorithms {
            groups: vec![Group::X25519MlKem768, Group::X25519, Group::P256],
            ..Algorithms::default()
        };
        let server = Algorithms { groups: vec![Group::P256], ..Algorithms::default() };
        let (client, server) = providers(&client, &server);
        let outcome = run(&client, &server);
        assert_eq!(outcome.flights, 5);
        let (client, server) = outcome.both();
        assert_eq!(client.secrets, server.secrets);
        assert_eq!(client.key_exchange, "secp256r1");
    }

    // SMT [6.1-3]
    #[test]
    fn a_server_is_not_finished_before_the_clients_finished() {
        let algorithms = Algorithms::default();
        let (client, server) = providers(&algorithms, &algorithms);
        let mut client = Side::client(&client);
        let mut server = Side::server(&server, &client.params).unwrap();
        server.receive(&client.flight(1).unwrap()).unwrap();
        assert!(server.finished().is_none());
        client.receive(&server.flight(2).unwrap()).unwrap();
        assert!(client.finished().is_some());
        server.receive(&client.flight(3).unwrap()).unwrap();
        assert!(server.finished().is_some());
        assert!(server.flight(4).is_none(), "tickets leave beside CONFIRM");
        assert!(server.parting(4).is_some());
    }
}

/// A client's first words.
mod hello {
    use super::*;

    const SERVER_NAME: u16 = 0;
    const SUPPORTED_VERSIONS: u16 = 43;

    // SMT [6.1-12]
    #[test]
    fn of_a_first_session_offers_tls_1_3_and_neither_a_psk_nor_early_data() {
        let (client, _) = providers(&Algorithms::default(), &Algorithms::default());
        let hello = Side::client(&client).flight(1).unwrap().extensions();
        let hello: BTreeMap<_, _> = hello.into_iter().collect();
        assert_eq!(hello[&SUPPORTED_VERSIONS], [2, 3, 4]);
        let has = |number| hello.contains_key(&number);
        assert!(!has(PRE_SHARED_KEY) && !has(EARLY_DATA));
    }

    // SMT [6.1-16], [6.1-17], [6.1-25]
    #[test]
    fn names_a_server_by_its_dns_name_alone_and_one_without_a_name_is_taken() {
        let authority = EphemeralCa::new().unwrap();
        let client = ClientTls::new(authority.trust().unwrap()).build().unwrap();
        let spiffe_id = "spiffe://prod.example/db";
        let identity = authority.server(&[NAME, "192.0.2.1", spiffe_id]).unwrap();
        let server = ServerTls::new(identity).build().unwrap();
        for (name, is_sent) in [(NAME, true), ("192.0.2.1", false), (spiffe_id, false)] {
            let mut hello = Vec::new();
            let request = ClientRequest::new(name);
            let outcome = run_request(request, &client, &server, |flight| {
                if flight.number == 1 {
                    hello = flight.extensions();
                }
            });
            outcome.both();
            let sent = hello.into_iter().find(|(number, _)| *number == SERVER_NAME);
            let sent = sent.map(|(_, content)| content);
            // A list of one name, of the kind that has number 0.
            let expected = [&[0, 12, 0, 0, 9], NAME.as_bytes()].concat();
            assert_eq!(sent, is_sent.then_some(expected), "{name}");
        }
    }
}

mod compatibility_mode {
    use super::*;

    /// The byte 1 in a record of its own, which a side has sent before its flight.
    const CHANGE_CIPHER_SPEC: [u8; 6] = [0x14, 3, 3, 0, 1, 1];

    // SMT [6.1-20]
    #[test]
    fn one_more_change_cipher_spec_of_either_side_changes_nothing() {
        let (client, server) = providers(&Algorithms::default(), &Algorithms::default());
        for flight in [2, 3] {
            let outcome = run_with(&client, &server, |sent| {
                if sent.number == flight {
                    // Behind the ServerHello, or before what the client has protected.
                    let hello = usize::from(u16::from_be_bytes([sent.bytes[3], sent.bytes[4]]));
                    let place = if flight == 2 { 5 + hello } else { 0 };
                    sent.bytes.splice(place..place, CHANGE_CIPHER_SPEC);
                }
            });
            let (at_client, at_server) = outcome.both();
            assert_eq!(at_client.secrets, at_server.secrets, "flight {flight}");
        }
    }
}

mod client_certificates {
    use super::*;

    fn server(authority: &EphemeralCa, auth: ClientAuth) -> TlsProvider {
        let identity = authority.server(&[NAME]).unwrap();
        ServerTls::new(identity).with_client_auth(auth).build().unwrap()
    }

    #[test]
    fn each_side_learns_the_others_chain() {
        let authority = EphemeralCa::new().unwrap();
        let trust = authority.trust().unwrap();
        let identity = authority.client("c").unwrap();
        let leaf: Vec<u8> = identity.certificates().next().unwrap().to_vec();
        let client = ClientTls::new(trust.clone()).with_identity(identity).build().unwrap();
        for auth in [ClientAuth::Required(trust.clone()), ClientAuth::Optional(trust.clone())] {
            let (at_client, at_server) = run(&client, &server(&authority, auth)).both();
            assert_eq!(at_client.secrets, at_server.secrets);
            assert_eq!(at_server.peer.certificates, std::slice::from_ref(&leaf));
            assert_eq!(at_client.peer.certificates.len(), 1);
            assert_ne!(at_client.peer.certificates, at_server.peer.certificates);
        }
    }

    #[test]
    fn keys_of_every_kind_prove_both_sides() {
        for kind in KeyKind::ALL {
            let authority = EphemeralCa::with_keys(kind).unwrap();
            let trust = authority.trust().unwrap();
            let client = ClientTls::new(trust.clone())
                .with_identity(authority.client("c").unwrap())
                .build()
                .unwrap();
            let server = server(&authority, ClientAuth::Required(trust));
            let (at_client, at_server) = run(&client, &server).both();
            assert_eq!(at_client.secrets, at_server.secrets);
            for peer in [at_client.peer, at_server.peer] {
                let text = CertificateText::from_der(&peer.certificates[0]).unwrap();
                let letters = |name: &str| name.to_lowercase().replace([' ', '-'], "");
                assert_eq!(letters(&text.key_kind), letters(kind.name()));
            }
        }
    }

    #[test]
    fn an_optional_one_may_be_missing() {
        let authority = EphemeralCa::new().unwrap();
        let trust = authority.trust().unwrap();
        let client = ClientTls::new(trust.clone()).build().unwrap();
        let (_, at_server) = run(&client, &server(&authority, ClientAuth::Optional(trust))).both();
        assert!(at_server.peer.certificates.is_empty());
    }

    #[test]
    fn an_optional_pinned_one_may_be_missing() {
        let authority = EphemeralCa::new().unwrap();
        let pinned = authority.authority().certificate_pem();
        let pinned = Trust::pinned_from_pem(pinned.as_bytes()).unwrap();
        let client = ClientTls::new(authority.trust().unwrap()).build().unwrap();
        let optional = server(&authority, ClientAuth::Optional(pinned.clone()));
        run(&client, &optional).both();
        let required = server(&authority, ClientAuth::Required(pinned));
        assert!(run(&client, &required).server.is_err());
    }

    #[test]
    fn one_that_was_not_asked_for_is_not_shown() {
        let authority = EphemeralCa::new().unwrap();
        let client = ClientTls::new(authority.trust().unwrap())
            .with_identity(authority.client("c").unwrap());
        let server = server(&authority, ClientAuth::None);
        let (_, at_server) = run(&client.build().unwrap(), &server).both();
        assert!(at_server.peer.certificates.is_empty());
    }

    // SMT [6.1-18]
    #[test]
    fn pinned_certificates_work_in_both_directions_without_names() {
        let authority = EphemeralCa::new().unwrap();
        let issue = |plan| authority.authority().issue(&plan).unwrap();
        let server_pair = issue(CertificatePlan::server(&["other.example"]).unwrap());
        let client_pair = issue(CertificatePlan::client("c").unwrap());
        let identity = |pair: &IssuedCertificate| {
            Identity::from_pem(pair.certificate_pem.as_bytes(), pair.key_pem.as_bytes()).unwrap()
        };
        let pin = |pair: &IssuedCertificate| {
            Trust::pinned_from_pem(pair.certificate_pem.as_bytes()).unwrap()
        };
        let client = ClientTls::new(pin(&server_pair)).with_identity(identity(&client_pair));
        let server = ServerTls::new(identity(&server_pair))
            .with_client_auth(ClientAuth::Required(pin(&client_pair)));
        let (at_client, at_server) = run(&client.build().unwrap(), &server.build().unwrap()).both();
        assert_eq!(at_client.secrets, at_server.secrets);
    }

    #[test]
    fn one_endpoint_is_client_and_server() {
        let authority = EphemeralCa::new().unwrap();
        let trust = authority.trust().unwrap();
        let client = ClientTls::new(trust.clone()).with_identity(authority.client("c").unwrap());
        let server = ServerTls::new(authority.server(&[NAME]).unwrap())
            .with_client_auth(ClientAuth::Required(trust));
        let both = TlsProvider::new(Some(client), Some(server), &Algorithms::default()).unwrap();
        let (at_client, at_server) = run(&both, &both).both();
        assert_eq!(at_client.secrets, at_server.secrets);
    }
}

mod provider {
    use super::*;
    use smt_proto::key_exchange::Fault;

    #[test]
    fn a_side_that_was_not_set_up_is_the_callers_fault() {
        let algorithms = Algorithms::default();
        let (client, server) = providers(&algorithms, &algorithms);
        let params = Side::client(&client).params;
        assert_eq!(server.client(ClientRequest::new(NAME)).err().unwrap().fault, Fault::Caller);
        assert_eq!(client.server(&params, None).err().unwrap().fault, Fault::Caller);
    }

    #[test]
    fn what_is_no_name_is_the_callers_fault_and_named() {
        let algorithms = Algorithms::default();
        let (client, _) = providers(&algorithms, &algorithms);
        let failure = client.client(ClientRequest::new("a b")).err().unwrap();
        assert_eq!(failure.fault, Fault::Caller);
        assert!(failure.text.starts_with("\"a b\" is no server name"), "{failure}");
    }

    #[test]
    fn empty_lists_of_algorithms_are_refused() {
        let none = Algorithms { suites: Vec::new(), ..Algorithms::default() };
        assert!(TlsProvider::new(None, None, &none).is_err());
        let none = Algorithms { groups: Vec::new(), ..Algorithms::default() };
        assert!(TlsProvider::new(None, None, &none).is_err());
    }
}
