// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server gets another certificate, or another trust in clients: new clients meet it, and
//! sessions go on.

use smt::pki::EphemeralCa;
use smt::{ClientAuth, Distrusted, KeyEnds, RegisteredKey, Suite};

use crate::support::{assert_echo, echo, serve};

/// An authority and a server's identity of it.
fn authority() -> (EphemeralCa, smt::Identity) {
    let authority = EphemeralCa::new().unwrap();
    let identity = authority.server(&["127.0.0.1"]).unwrap();
    (authority, identity)
}

#[test]
fn new_clients_meet_the_new_certificate_at_every_shard_and_sessions_go_on() {
    let [(old, old_identity), (new, new_identity)] = [authority(), authority()];
    let shards = smt::server(old_identity).bind_shards_blocking("127.0.0.1:0", 2).unwrap();
    shards.iter().for_each(|shard| serve(shard, 1, echo));
    let address = shards[0].local_address();
    let connect = |authority: &EphemeralCa| {
        let client = smt::client(authority.trust().unwrap());
        client.connect_shards_blocking(address, 2)
    };
    let before = connect(&old).unwrap();
    shards[1].set_identity(new_identity).unwrap();
    before.iter().for_each(|client| assert_echo(client, "hi"));
    let after = connect(&new).unwrap();
    after.iter().for_each(|client| assert_echo(client, "hi"));
    let error = connect(&old).unwrap_err().to_string();
    assert!(error.contains("unknown issuer"), "{error}");
    before.iter().for_each(|client| assert_echo(client, "hi"));
}

#[tokio::test]
async fn new_clients_are_asked_for_a_certificate_and_others_go_on_without() {
    let (authority, identity) = authority();
    let server = smt::server(identity).distrusted(Distrusted::Keep);
    let server = server.bind("127.0.0.1:0").await.unwrap();
    let serving = server.clone();
    tokio::spawn(async move {
        while let Some(request) = serving.accept_request().await {
            let body = request.body().clone();
            request.reply(body).unwrap();
        }
    });
    let client = || smt::client(authority.trust().unwrap());
    let connect = |client: smt::Builder<smt::TlsClient>| client.connect(server.local_address());
    let before = connect(client()).await.unwrap();
    let required = ClientAuth::Required(authority.trust().unwrap());
    server.set_client_auth(required).unwrap();
    assert_eq!(before.call("still here").await.unwrap(), "still here");
    let error = connect(client()).await.unwrap_err().to_string();
    assert!(error.contains("requires a certificate"), "{error}");
    let alice = client().identity(authority.client("alice").unwrap());
    let alice = connect(alice).await.unwrap();
    assert_eq!(alice.call("hi").await.unwrap(), "hi");
    // The identity is replaced beside it, and the trust stays.
    server.set_identity(authority.server(&["127.0.0.1"]).unwrap()).unwrap();
    assert!(connect(client()).await.is_err());
    server.set_client_auth(ClientAuth::None).unwrap();
    connect(client()).await.unwrap();
}

#[test]
fn a_polled_server_and_one_with_many_peers_have_it_too() {
    let [(_, old_identity), (new, new_identity)] = [authority(), authority()];
    let other = smt::TlsClient::new(new.trust().unwrap());
    let both = smt::server(old_identity.clone()).with_client(other);
    let endpoint = both.open_blocking("127.0.0.1:0").unwrap();
    endpoint.set_identity(new_identity.clone()).unwrap();
    let accepting = endpoint.clone();
    std::thread::spawn(move || {
        while let Some(request) = accepting.accept_request() {
            echo(request);
        }
    });
    let client = smt::client(new.trust().unwrap());
    let client = client.connect_blocking(endpoint.local_address()).unwrap();
    assert_echo(&client, "hi");
    let polled = smt::server(old_identity).bind_polled("127.0.0.1:0").unwrap();
    polled.set_identity(new_identity).unwrap();
    polled.set_client_auth(ClientAuth::None).unwrap();
}

#[test]
fn a_server_by_registered_keys_has_no_identity_to_replace() {
    let ends = KeyEnds { own: "server", peer: "client" };
    let key = RegisteredKey::from_secret(b"name", ends, Suite::Aes128Gcm, &[7; 32]).unwrap();
    let server = smt::server_by_keys([key]).bind_blocking("127.0.0.1:0").unwrap();
    let error = server.set_identity(authority().1).unwrap_err().to_string();
    assert!(error.contains("no clients by TLS"), "{error}");
}
