// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Peers that show public keys alone, in the place of certificates (RFC 7250).
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod harness;

use harness::{NAME, run};
use smt_handshake::{
    ClientAuth, ClientTls, CredentialError, Identity, ServerTls, TicketIssuer, TicketKeys,
    TicketPlan, TicketServer, TicketVerifier, TlsConfigError, Trust,
};
use smt_pki::{EphemeralCa, KeyKind, RawKey};

fn key() -> RawKey {
    RawKey::new(KeyKind::default()).unwrap()
}

fn identity(key: &RawKey) -> Identity {
    Identity::from_pem(key.public_key_pem.as_bytes(), key.key_pem.as_bytes()).unwrap()
}

fn trust(keys: &[&RawKey]) -> Trust {
    let text: String = keys.iter().map(|key| key.public_key_pem.as_str()).collect();
    Trust::pinned_from_pem(text.as_bytes()).unwrap()
}

// SMT [6.1-27]
#[test]
fn keys_of_every_kind_prove_both_sides_without_a_certificate() {
    for kind in KeyKind::ALL {
        let [server, client] = [kind; 2].map(|kind| RawKey::new(kind).unwrap());
        let own = identity(&client);
        let at_client = ClientTls::new(trust(&[&server])).with_identity(own.clone());
        let at_server = ServerTls::new(identity(&server))
            .with_client_auth(ClientAuth::Required(trust(&[&key(), &client])));
        let (client, server) = (at_client.build().unwrap(), at_server.build().unwrap());
        let (at_client, at_server) = run(&client, &server).both();
        assert_eq!(at_client.secrets, at_server.secrets);
        assert_eq!(at_server.peer.public_key.as_deref(), own.raw_public_key());
        assert!(at_client.peer.public_key.is_some());
        assert!(at_server.peer.certificates.is_empty() && at_client.peer.certificates.is_empty());
        assert_eq!((at_client.peer.expires, at_server.peer.expires), (None, None));
        assert_eq!(own.certificates().count(), 0);
    }
}

// SMT [6.1-27]
#[test]
fn a_server_with_another_key_is_refused() {
    let client = ClientTls::new(trust(&[&key()])).build().unwrap();
    let server = ServerTls::new(identity(&key())).build().unwrap();
    let outcome = run(&client, &server);
    println!("{}", outcome.client_failure().text);
    assert!(outcome.client_failure().text.contains("pinned"));
    outcome.server_failure();
}

#[test]
fn a_client_with_another_key_is_refused() {
    let own = key();
    let client = ClientTls::new(trust(&[&own])).with_identity(identity(&key()));
    let clients = ClientAuth::Required(trust(&[&key()]));
    let server = ServerTls::new(identity(&own)).with_client_auth(clients);
    let outcome = run(&client.build().unwrap(), &server.build().unwrap());
    println!("{}", outcome.server_failure().text);
    assert!(outcome.server_failure().text.contains("pinned"));
}

#[test]
fn a_client_that_shows_no_key_is_let_in_only_where_none_is_required() {
    let own = key();
    let client = ClientTls::new(trust(&[&own])).build().unwrap();
    let server = |auth| ServerTls::new(identity(&own)).with_client_auth(auth).build();
    let (_, at_server) = run(&client, &server(ClientAuth::None).unwrap()).both();
    assert_eq!(at_server.peer.public_key, None);
    let required = server(ClientAuth::Required(trust(&[&key()])));
    let outcome = run(&client, &required.unwrap());
    assert!(outcome.server_failure().text.contains("public key"));
    assert!(outcome.client_failure().text.contains("public key"));
    let optional = server(ClientAuth::Optional(trust(&[&key()]))).err().unwrap();
    assert!(optional.to_string().contains("require them"), "{optional}");
}

#[test]
fn peers_of_which_one_has_a_certificate_and_one_wants_a_key_are_told_so() {
    let authority = EphemeralCa::new().unwrap();
    let by_certificate = ServerTls::new(authority.server(&[NAME]).unwrap());
    let by_key = ServerTls::new(identity(&key()));
    let wants_key = ClientTls::new(trust(&[&key()])).build().unwrap();
    let wants_certificate = ClientTls::new(authority.trust().unwrap()).build().unwrap();
    for (client, server) in [(wants_key, by_certificate), (wants_certificate, by_key)] {
        let outcome = run(&client, &server.build().unwrap());
        for text in [&outcome.client_failure().text, &outcome.server_failure().text] {
            println!("{text}");
            assert!(text.contains("public key"), "{text}");
        }
    }
}

#[test]
fn a_private_key_of_another_public_key_is_refused() {
    let (one, other) = (key(), key());
    let error = Identity::from_pem(one.public_key_pem.as_bytes(), other.key_pem.as_bytes());
    let error = error.unwrap_err();
    assert!(matches!(error, CredentialError::KeyMismatch { .. }), "{error}");
}

#[test]
fn a_text_with_keys_and_certificates_is_refused() {
    let authority = EphemeralCa::new().unwrap();
    let text = [&key().public_key_pem, authority.authority().certificate_pem()].concat();
    let error = Trust::pinned_from_pem(text.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("give either"), "{error}");
}

// SMT [6.1-27]
#[test]
fn tickets_go_by_certificates_alone() {
    let key = key();
    let unusable = |error: TlsConfigError| assert!(error.to_string().contains("certificates"));
    unusable(TicketVerifier::new(trust(&[&key])).unwrap_err());
    let clients = ClientAuth::Required(trust(&[&key]));
    unusable(TicketServer::new(TicketKeys::new(), clients).err().unwrap());
    let issuer = TicketIssuer::new(&identity(&key), TicketPlan::new([NAME]));
    assert!(issuer.err().unwrap().text.contains("certificates"));
}
