// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One endpoint answers each client by the kind of key exchange that the client wants (SPEC §6.3).
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod harness;

use std::sync::Arc;

use harness::{Side, providers, run};
use smt_handshake::{
    Algorithms, ClientAuth, ClientTls, KeyEnds, PlaintextProvider, RegisteredKey,
    RegisteredProvider, ServerTls, SeveralKinds, TlsProvider,
};
use smt_pki::EphemeralCa;
use smt_proto::key_exchange::{ClientRequest, FailureKind, Fault, KeyExchangeProvider};
use smt_record::Suite;
use smt_wire::KeyExchange;

fn key(own: &str, peer: &str) -> RegisteredKey {
    let ends = KeyEnds { own, peer };
    RegisteredKey::from_secret(b"k", ends, Suite::Aes256Gcm, &[5; 32]).unwrap()
}

fn key_client() -> RegisteredProvider {
    RegisteredProvider::client(key("a", "b"))
}

fn key_server() -> RegisteredProvider {
    RegisteredProvider::server(vec![key("b", "a")]).unwrap()
}

fn tls() -> (TlsProvider, TlsProvider) {
    providers(&Algorithms::default(), &Algorithms::default())
}

fn both(tls: TlsProvider) -> SeveralKinds {
    SeveralKinds::new()
        .answers_by(KeyExchange::Tls13, Arc::new(tls))
        .answers_by(KeyExchange::Registered, Arc::new(key_server()))
}

#[test]
fn clients_of_either_kind_have_sessions_with_one_server() {
    let (tls_client, tls_server) = tls();
    let server = both(tls_server);
    let (at_client, at_server) = run(&tls_client, &server).both();
    assert_eq!(at_client.secrets, at_server.secrets);
    assert_eq!(at_client.peer.certificates.len(), 1);
    assert_eq!(at_server.peer.key_identity, None);
    let (at_client, at_server) = run(&key_client(), &server).both();
    assert_eq!(at_client.secrets, at_server.secrets);
    assert_eq!(at_server.peer.key_identity.as_deref(), Some("a"));
    assert!(at_server.peer.certificates.is_empty());
}

#[test]
fn attempts_name_the_kind_and_the_suites_that_the_client_is_answered_by() {
    let (tls_client, tls_server) = tls();
    let server = both(tls_server);
    let answer = |client: &dyn KeyExchangeProvider| {
        let attempt = server.server(&Side::client(client).params, None).unwrap();
        (attempt.kind, attempt.suites, attempt.key.is_some())
    };
    let (kind, suites, has_key) = answer(&tls_client);
    assert_eq!((kind, has_key), (KeyExchange::Tls13, false));
    assert_eq!(suites, Algorithms::default().suites);
    let by_key = (KeyExchange::Registered, vec![Suite::Aes256Gcm], true);
    assert_eq!(answer(&key_client()), by_key);
}

#[test]
fn certificates_that_tls_clients_must_show_are_not_asked_of_clients_with_a_key() {
    let authority = EphemeralCa::new().unwrap();
    let trust = authority.trust().unwrap();
    let server = ServerTls::new(authority.server(&[harness::NAME]).unwrap())
        .with_client_auth(ClientAuth::Required(trust.clone()));
    let server = both(server.build().unwrap());
    run(&key_client(), &server).both();
    let without = ClientTls::new(trust.clone()).build().unwrap();
    let failure = run(&without, &server).server_failure();
    assert_eq!(failure.kind, FailureKind::CertificateRefused, "{failure}");
    let with = ClientTls::new(trust).with_identity(authority.client("c").unwrap());
    let (_, at_server) = run(&with.build().unwrap(), &server).both();
    assert_eq!(at_server.peer.certificates.len(), 1);
}

#[test]
fn a_kind_that_the_server_has_not_is_refused_by_name() {
    let (tls_client, tls_server) = tls();
    let keys = SeveralKinds::new().answers_by(KeyExchange::Registered, Arc::new(key_server()));
    let certificates = SeveralKinds::new().answers_by(KeyExchange::Tls13, Arc::new(tls_server));
    let refusals = [
        (run(&tls_client, &keys), "Tls13"),
        (run(&key_client(), &certificates), "Registered"),
        (run(&key_client(), &SeveralKinds::default()), "Registered"),
    ];
    for (outcome, wanted) in refusals {
        let failure = outcome.server_failure();
        let refused = (failure.kind, failure.fault);
        assert_eq!(refused, (FailureKind::NoCommonParameters, Fault::Peer));
        let wanted = format!("the client wants key exchange {wanted}");
        assert!(failure.text.starts_with(&wanted), "{failure}");
    }
}

#[test]
fn the_plaintext_version_is_never_among_the_kinds() {
    let server = both(tls().1).answers_by(KeyExchange::Plaintext, Arc::new(PlaintextProvider));
    let failure = run(&PlaintextProvider, &server).server_failure();
    assert_eq!(failure.kind, FailureKind::NoCommonParameters);
    run(&key_client(), &server).both();
}

#[test]
fn a_provider_of_another_kind_than_it_was_given_for_refuses() {
    let server = SeveralKinds::new().answers_by(KeyExchange::Tls13, Arc::new(key_server()));
    let failure = run(&tls().0, &server).server_failure();
    assert_eq!(failure.kind, FailureKind::NoCommonParameters);
}

#[test]
fn parameters_that_cannot_be_read_are_malformed() {
    let server = both(tls().1);
    for params in [&[][..], &[1], &[0xFF; 40]] {
        let failure = server.server(params, None).err().unwrap();
        assert_eq!(failure.kind, FailureKind::Malformed, "{failure}");
    }
}

#[test]
fn calls_are_made_by_the_provider_that_was_given_for_them() {
    let (tls_client, tls_server) = tls();
    let server = both(tls_server);
    let none = server.client(ClientRequest::new(harness::NAME)).err().unwrap();
    assert_eq!(none.fault, Fault::Caller);
    let by_key = both(tls().1).calls_by(Arc::new(key_client()));
    let (at_client, _) = run(&by_key, &server).both();
    assert_eq!(at_client.peer.key_identity.as_deref(), Some("b"));
    let by_tls = by_key.calls_by(Arc::new(tls_client));
    let (at_client, _) = run(&by_tls, &server).both();
    assert_eq!(at_client.peer.certificates.len(), 1);
}
