// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Peers that are let in or refused, and the error that says why: phase, peer, whose fault.

use std::time::{Duration, Instant, SystemTime};

use smt::pki::{CertificatePlan, CertificateText, EphemeralCa, KeyKind, Validity};
use smt::{Builder, ClientAuth, OpenError, TlsClient, TlsServer, blocking};

use crate::support::{Credentials, assert_echo, echo, serve, within};

/// A server of this builder that echoes.
fn server(builder: Builder<TlsServer>) -> blocking::Server {
    let server = builder.bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 1, echo);
    server
}

/// The text of the error that connecting ends with; it must name phase and peer, and come soon.
fn refusal(client: Builder<TlsClient>, server: &blocking::Server) -> String {
    let began = Instant::now();
    let error = client.connect_blocking(server.local_address()).unwrap_err();
    assert!(matches!(error, OpenError::Connect(_)), "{error:?}");
    let text = error.to_string();
    let start = format!("connect to {}: ", server.local_address());
    println!("{text}");
    assert!(began.elapsed() < within(Duration::from_secs(3)), "{:?}: {text}", began.elapsed());
    text.strip_prefix(&start).unwrap_or_else(|| panic!("{text}")).to_owned()
}

#[test]
fn both_sides_learn_who_the_other_is() {
    let credentials = Credentials::new();
    let authority = credentials.authority();
    let server = credentials
        .server()
        .client_auth(ClientAuth::Required(authority.trust().unwrap()))
        .bind_blocking("127.0.0.1:0")
        .unwrap();
    serve(&server, 1, |request| {
        let leaf = CertificateText::from_der(&request.peer().certificates[0]).unwrap();
        request.reply(leaf.to_string()).unwrap();
    });
    let client = credentials
        .client()
        .identity(authority.client("alice").unwrap())
        .connect_blocking(server.local_address())
        .unwrap();
    let reply = client.call("who am I?").wait().unwrap();
    assert!(String::from_utf8_lossy(&reply).contains("alice"), "{reply:?}");
    let session = client.connect().unwrap();
    let leaf = CertificateText::from_der(&session.peer().certificates[0]).unwrap();
    assert!(leaf.to_string().contains("localhost"), "{leaf}");
}

#[test]
fn certificates_of_every_kind_reach_the_other_side() {
    for kind in KeyKind::ALL {
        let authority = EphemeralCa::with_keys(kind).unwrap();
        let trust = authority.trust().unwrap();
        let identity = authority.server(&["localhost"]).unwrap();
        let server = smt::server(identity).client_auth(ClientAuth::Required(trust.clone()));
        let server = self::server(server);
        let client = smt::client(trust)
            .server_name("localhost")
            .identity(authority.client("alice").unwrap())
            .connect_blocking(server.local_address())
            .unwrap();
        assert_echo(&client, "post-quantum or not");
    }
}

#[test]
fn a_client_without_a_certificate_is_refused_if_one_is_required() {
    let credentials = Credentials::new();
    let trust = credentials.authority().trust().unwrap();
    let server = server(credentials.server().client_auth(ClientAuth::Required(trust)));
    let text = refusal(credentials.client(), &server);
    assert!(text.starts_with("caller: ") && text.contains("certificate"), "{text}");
}

#[test]
fn a_client_without_a_certificate_is_let_in_if_it_is_optional() {
    let credentials = Credentials::new();
    let trust = credentials.authority().trust().unwrap();
    let server = server(credentials.server().client_auth(ClientAuth::Optional(trust)));
    let client = credentials.client().connect_blocking(server.local_address()).unwrap();
    assert_echo(&client, "hello");
}

#[test]
fn a_client_of_another_authority_is_refused() {
    let credentials = Credentials::new();
    let trust = credentials.authority().trust().unwrap();
    let stranger = EphemeralCa::new().unwrap().client("mallory").unwrap();
    for auth in [ClientAuth::Required(trust.clone()), ClientAuth::Optional(trust)] {
        let server = server(credentials.server().client_auth(auth));
        let text = refusal(credentials.client().identity(stranger.clone()), &server);
        assert!(text.contains("certificate"), "{text}");
    }
}

#[test]
fn a_server_of_another_authority_is_refused() {
    let server = server(Credentials::new().server());
    let text = refusal(Credentials::new().client(), &server);
    assert!(text.contains("certificate") && text.contains("issuer"), "{text}");
}

#[test]
fn an_expired_server_is_refused() {
    let credentials = Credentials::new();
    let server = server(smt::server(expired(&credentials)));
    let text = refusal(credentials.client(), &server);
    assert!(text.starts_with("peer: ") && text.contains("expired"), "{text}");
}

fn expired(credentials: &Credentials) -> smt::Identity {
    let day = Duration::from_secs(86_400);
    let now = SystemTime::now();
    let plan = CertificatePlan {
        validity: Validity::between(now - 2 * day, now - day).unwrap(),
        ..CertificatePlan::server(&["localhost"]).unwrap()
    };
    credentials.authority().identity(&plan).unwrap()
}

#[test]
fn an_expired_client_is_refused() {
    let credentials = Credentials::new();
    let authority = credentials.authority();
    let trust = authority.trust().unwrap();
    let server = server(credentials.server().client_auth(ClientAuth::Required(trust)));
    let day = Duration::from_secs(86_400);
    let now = SystemTime::now();
    let plan = CertificatePlan {
        validity: Validity::between(now - 2 * day, now - day).unwrap(),
        ..CertificatePlan::client("alice").unwrap()
    };
    let identity = authority.identity(&plan).unwrap();
    let text = refusal(credentials.client().identity(identity), &server);
    assert!(text.contains("expired"), "{text}");
}

#[test]
fn a_server_of_another_name_is_refused() {
    let credentials = Credentials::new();
    let server = server(credentials.server());
    let text = refusal(credentials.client().server_name("db7"), &server);
    assert!(text.contains("db7") && text.contains("localhost"), "{text}");
}

#[test]
fn a_client_certificate_is_none_for_a_server() {
    let credentials = Credentials::new();
    let identity = credentials.authority().client("localhost").unwrap();
    let server = server(smt::server(identity));
    let text = refusal(credentials.client(), &server);
    assert!(text.contains("certificate"), "{text}");
}
