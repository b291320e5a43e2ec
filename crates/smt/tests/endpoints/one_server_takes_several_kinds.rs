// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server with a certificate and registered keys takes each client by the kind that it comes
//! with.

use smt::pki::CertificateText;
use smt::{
    Builder, ClientAuth, KeyClient, KeyEnds, RegisteredKey, Request, Suite, TlsServer, blocking,
};

use crate::support::{Credentials, serve};

fn key(name: &str, ends: KeyEnds<'_>) -> RegisteredKey {
    RegisteredKey::from_secret(name.as_bytes(), ends, Suite::Aes256Gcm, &[7; 32]).unwrap()
}

fn key_client(name: &str, own: &str) -> Builder<KeyClient> {
    let ends = KeyEnds { own, peer: "server" };
    smt::client_by_key(key(name, ends))
}

/// A server that tells each client who it is.
fn server(builder: Builder<TlsServer>) -> blocking::Server {
    let ends = |peer| KeyEnds { own: "server", peer };
    let server = builder
        .registered_key(key("one", ends("web-1")))
        .registered_key(key("two", ends("web-2")))
        .bind_blocking("127.0.0.1:0")
        .unwrap();
    serve(&server, 2, |request| {
        let told = identity(&request);
        request.reply(told).unwrap();
    });
    server
}

fn identity(request: &Request) -> String {
    let peer = request.peer();
    match (&peer.key_identity, peer.certificates.first()) {
        (Some(identity), None) => format!("key of {identity}"),
        (None, Some(leaf)) => CertificateText::from_der(leaf).unwrap().to_string(),
        (None, None) => "anonymous".to_owned(),
        (Some(_), Some(_)) => "two identities".to_owned(),
    }
}

fn told(client: &blocking::Client) -> String {
    let reply = client.call("who am I?").wait().unwrap();
    String::from_utf8(reply.to_vec()).unwrap()
}

#[test]
fn tls_clients_and_clients_of_keys_call_one_server_at_the_same_time() {
    let credentials = Credentials::new();
    let server = server(credentials.server());
    let address = server.local_address();
    let by_tls = credentials.client().connect_blocking(address).unwrap();
    let by_key = key_client("one", "web-1").connect_blocking(address).unwrap();
    let by_other_key = key_client("two", "web-2").connect_blocking(address).unwrap();
    for _ in 0..3 {
        assert_eq!(told(&by_tls), "anonymous");
        assert_eq!(told(&by_key), "key of web-1");
        assert_eq!(told(&by_other_key), "key of web-2");
    }
}

#[test]
fn a_certificate_is_required_of_tls_clients_alone() {
    let credentials = Credentials::new();
    let authority = credentials.authority();
    let required = ClientAuth::Required(authority.trust().unwrap());
    let server = server(credentials.server().client_auth(required));
    let address = server.local_address();
    let by_key = key_client("one", "web-1").connect_blocking(address).unwrap();
    assert_eq!(told(&by_key), "key of web-1");
    let alice = credentials.client().identity(authority.client("alice").unwrap());
    assert!(told(&alice.connect_blocking(address).unwrap()).contains("alice"));
    let error = credentials.client().connect_blocking(address).unwrap_err().to_string();
    assert!(error.contains("certificate"), "{error}");
}

#[test]
fn a_key_that_the_server_lacks_is_no_way_in() {
    let credentials = Credentials::new();
    let server = server(credentials.server());
    let other = key_client("three", "web-1").connect_blocking(server.local_address());
    let error = other.unwrap_err().to_string();
    assert!(error.contains("configure both alike"), "{error}");
}
