// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sessions from keys that the application negotiated itself (SPEC §7.2).

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use smt::{KeyEnds, RegisteredKey, Suite, TlsTrafficKey};

use crate::choices_are_honoured::Lines;
use crate::support::forwarder::{Forwarder, Way};
use crate::support::payload::payload;
use crate::support::{assert_echo, serve};

const CLIENT: KeyEnds<'static> = KeyEnds { own: "client", peer: "server" };

const SERVER: KeyEnds<'static> = KeyEnds { own: "server", peer: "client" };

fn key(name: &str, ends: KeyEnds<'_>, suite: Suite) -> RegisteredKey {
    RegisteredKey::from_secret(name.as_bytes(), ends, suite, &[7; 32]).unwrap()
}

#[test]
fn a_key_serves_and_names_the_client() {
    for suite in Suite::ALL {
        let server = smt::server_by_keys(["one", "two"].map(|name| key(name, SERVER, suite)))
            .bind_blocking("127.0.0.1:0")
            .unwrap();
        serve(&server, 1, |request| {
            assert_eq!(request.peer().key_identity.as_deref(), Some("client"));
            let mut reply = request.peer().key_name.clone().unwrap();
            reply.extend_from_slice(request.body());
            request.reply(reply).unwrap();
        });
        for name in ["one", "two"] {
            let client = smt::client_by_key(key(name, CLIENT, suite))
                .connect_blocking(server.local_address())
                .unwrap();
            let body = payload(1, 100_000);
            let reply = client.call(body.clone()).wait().unwrap();
            assert!(reply[..3] == *name.as_bytes() && reply[3..] == body);
        }
    }
}

#[test]
fn every_session_of_one_key_has_secrets_of_its_own() {
    let lines = Lines::default();
    let server = smt::server_by_keys([key("k", SERVER, Suite::Aes128Gcm)])
        .bind_blocking("127.0.0.1:0")
        .unwrap();
    serve(&server, 1, crate::support::echo);
    for _ in 0..3 {
        let client = smt::client_by_key(key("k", CLIENT, Suite::Aes128Gcm))
            .key_log(Arc::new(lines.clone()))
            .connect_blocking(server.local_address())
            .unwrap();
        assert_echo(&client, "hello");
    }
    let lines = lines.take();
    let secrets: HashSet<&str> = lines.iter().filter_map(|line| line.rsplit(' ').next()).collect();
    assert_eq!((lines.len(), secrets.len()), (12, 12));
}

/// Neither waits for its deadline, and each reads what to look at.
#[test]
fn a_client_whose_keys_the_server_lacks_learns_so() {
    let credentials = crate::support::Credentials::new();
    let of_keys = smt::server_by_keys([key("k", SERVER, Suite::Aes128Gcm)])
        .bind_blocking("127.0.0.1:0")
        .unwrap();
    let of_tls = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let other = || smt::client_by_key(key("other", CLIENT, Suite::Aes128Gcm));
    let attempts = [
        other().connect_blocking(of_keys.local_address()),
        credentials.client().connect_blocking(of_keys.local_address()),
        other().connect_blocking(of_tls.local_address()),
    ];
    for attempt in attempts {
        let error = attempt.unwrap_err().to_string();
        assert!(error.contains("configure both alike"), "{error}");
    }
}

#[test]
fn another_secret_under_the_same_name_establishes_nothing_and_says_what_to_compare() {
    let other = RegisteredKey::from_secret(b"k", CLIENT, Suite::Aes128Gcm, &[8; 32]).unwrap();
    assert_unproven(other, key("k", SERVER, Suite::Aes128Gcm));
}

#[test]
fn keys_of_a_tls_session_establish_sessions() {
    let key = |ends| {
        let [client, server] =
            [(&[1; 16], &[2; 12]), (&[3; 16], &[4; 12])].map(|(key, iv)| TlsTrafficKey { key, iv });
        RegisteredKey::from_tls_keys(b"tls", ends, Suite::Aes128Gcm, client, server).unwrap()
    };
    let server = smt::server_by_keys([key(SERVER)]).bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 1, crate::support::echo);
    let client = smt::client_by_key(key(CLIENT)).connect_blocking(server.local_address()).unwrap();
    assert_echo(&client, "hello");
}

/// With the same secret under the same name at client and server.
#[test]
fn sides_that_disagree_in_an_identity_or_in_who_is_who_establish_nothing() {
    let ends = |own, peer| key("k", KeyEnds { own, peer }, Suite::Aes128Gcm);
    for (own, peer) in [("client", "Server"), ("Client", "server"), ("server", "client")] {
        assert_unproven(ends(own, peer), ends("server", "client"));
    }
}

/// Everything that a host's client sends to another host comes to the server on its own host, which
/// has the same key, and is answered from there ("Selfie").
#[test]
fn a_session_that_is_turned_around_to_the_host_that_begins_it_delivers_nothing() {
    let key = |own, peer| key("k", KeyEnds { own, peer }, Suite::Aes128Gcm);
    let here = || key("here", "there");
    assert_unproven(here(), here());
}

/// Everything that the client sends reaches the server, by way of somebody who sees that there is
/// an answer; and there is no session, which the client learns with what to look at.
#[track_caller]
fn assert_unproven(client: RegisteredKey, server: RegisteredKey) {
    let server = smt::server_by_keys([server]).bind_blocking("127.0.0.1:0").unwrap();
    let delivered = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&delivered);
    serve(&server, 1, move |request| {
        counter.fetch_add(1, Ordering::Relaxed);
        crate::support::echo(request);
    });
    let answers = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&answers);
    let turned = Forwarder::new(server.local_address(), move |way, datagram| {
        if way == Way::ToClient {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        vec![(way, datagram.to_vec())]
    });
    let client = smt::client_by_key(client)
        .connect_deadline(std::time::Duration::from_millis(500))
        .connect_blocking(turned.address());
    let error = match client {
        Ok(client) => panic!("connected, and a call ends with {:?}", client.call("pay").wait()),
        Err(error) => error.to_string(),
    };
    assert!(error.contains("registered key \"k\""), "{error}");
    assert!(error.contains("the same two identities"), "{error}");
    assert_eq!(server.statistics().protocol.sessions_begun, 0);
    assert_eq!(delivered.load(Ordering::Relaxed), 0);
    assert!(answers.load(Ordering::Relaxed) > 0, "the server answers");
}
