// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The plaintext measurement version stays apart from the encrypted one (SPEC §14).
#![cfg(feature = "unstable-plaintext")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use smt::OpenError;
use smt::pki::EphemeralCa;
use smt::plaintext::{PlaintextClient, PlaintextServer};

fn echo_plaintext() -> std::net::SocketAddr {
    let server = PlaintextServer::bind_blocking("127.0.0.1:0").unwrap();
    let address = server.local_address();
    std::thread::spawn(move || {
        while let Some(request) = server.accept() {
            let body = request.body().clone();
            request.reply(body).unwrap();
        }
    });
    address
}

#[test]
fn plaintext_calls_are_answered() {
    let client = PlaintextClient::connect_blocking(echo_plaintext()).unwrap();
    for size in [0, 1, 1_142, 60_001, 1_000_000] {
        let body = vec![size as u8; size];
        assert_eq!(client.call(body.clone()).wait().unwrap(), body);
    }
}

#[test]
fn a_plaintext_client_gets_nothing_from_an_encrypted_server() {
    let authority = EphemeralCa::new().unwrap();
    let identity = authority.server(&["localhost"]).unwrap();
    let server = smt::server(identity).bind_blocking("127.0.0.1:0").unwrap();
    let accepting = server.clone();
    std::thread::spawn(move || accepting.accept_request());
    let outcome = PlaintextClient::connect_blocking(server.local_address());
    let Err(OpenError::Connect(error)) = outcome else { panic!("a session came about") };
    assert!(error.to_string().contains("does not speak SMT version 241"), "{error}");
    assert_eq!(server.statistics().protocol.sessions_begun, 0);
}

#[test]
fn an_encrypted_client_gets_nothing_from_a_plaintext_server() {
    let authority = EphemeralCa::new().unwrap();
    let outcome = smt::client(authority.trust().unwrap())
        .server_name("localhost")
        .connect_deadline(Duration::from_millis(300))
        .connect_blocking(echo_plaintext());
    let Err(OpenError::Connect(error)) = outcome else { panic!("a session came about") };
    assert!(error.to_string().contains("does not speak SMT version 1"), "{error}");
}

#[test]
fn an_encrypted_endpoint_does_not_speak_plaintext() {
    let authority = EphemeralCa::new().unwrap();
    let server = smt::server(authority.server(&["localhost"]).unwrap())
        .bind_blocking("127.0.0.1:0")
        .unwrap();
    let accepting = server.clone();
    std::thread::spawn(move || accepting.accept_request());
    assert!(PlaintextClient::connect_blocking(server.local_address()).is_err());
    let encrypted = smt::client(authority.trust().unwrap()).server_name("localhost");
    assert!(encrypted.connect_blocking(server.local_address()).is_ok());
}

// SMT [7.4-6]
#[test]
fn a_plaintext_session_exports_nothing() {
    let server = PlaintextServer::bind_blocking("127.0.0.1:0").unwrap();
    let address = server.local_address();
    let exporting = std::thread::spawn(move || {
        let request = server.accept().unwrap();
        let mut secret = [9; 32];
        let exported = request.session().export("label", b"", &mut secret);
        request.reply("").unwrap();
        (exported.unwrap_err().kind().clone(), secret)
    });
    let client = PlaintextClient::connect_blocking(address).unwrap();
    client.call("").wait().unwrap();
    let nothing = smt::Refused::Export(smt::ExportError::Plaintext);
    let outcome = exporting.join().unwrap();
    assert_eq!(outcome, (smt::ErrorKind::Refused(nothing), [9; 32]));
}
