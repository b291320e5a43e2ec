// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sessions from keys that the application negotiated itself (SPEC §7.2).

use std::collections::HashSet;
use std::sync::Arc;

use smt::{Builder, RegisteredKey, Suite};

use crate::choices_are_honoured::Lines;
use crate::support::payload::payload;
use crate::support::{assert_echo, serve};

fn key(name: &str, suite: Suite) -> RegisteredKey {
    RegisteredKey::from_secret(name.as_bytes(), suite, &[7; 32]).unwrap()
}

#[test]
fn a_key_serves_and_names_the_client() {
    for suite in Suite::ALL {
        let server = Builder::new()
            .registered_key(key("one", suite))
            .registered_key(key("two", suite))
            .bind_blocking("127.0.0.1:0")
            .unwrap();
        serve(&server, 1, |request| {
            let mut reply = request.peer().key_name.clone().unwrap();
            reply.extend_from_slice(request.body());
            request.reply(reply).unwrap();
        });
        for name in ["one", "two"] {
            let client = Builder::new()
                .registered_key(key(name, suite))
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
    let server = Builder::new()
        .registered_key(key("k", Suite::Aes128Gcm))
        .bind_blocking("127.0.0.1:0")
        .unwrap();
    serve(&server, 1, crate::support::echo);
    for _ in 0..3 {
        let client = Builder::new()
            .registered_key(key("k", Suite::Aes128Gcm))
            .key_log(Arc::new(lines.clone()))
            .connect_blocking(server.local_address())
            .unwrap();
        assert_echo(&client, "hello");
    }
    let lines = lines.take();
    let secrets: HashSet<&str> = lines
        .iter()
        .filter_map(|line| line.rsplit(' ').next())
        .collect();
    assert_eq!((lines.len(), secrets.len()), (12, 12));
}

/// Neither waits for its deadline, and each reads what to look at.
#[test]
fn a_client_whose_keys_the_server_lacks_learns_so() {
    let credentials = crate::support::Credentials::new();
    let of_keys = Builder::new()
        .registered_key(key("k", Suite::Aes128Gcm))
        .bind_blocking("127.0.0.1:0")
        .unwrap();
    let of_tls = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let other = || Builder::new().registered_key(key("other", Suite::Aes128Gcm));
    let attempts = [
        (other(), of_keys.local_address()),
        (credentials.client(), of_keys.local_address()),
        (other(), of_tls.local_address()),
    ];
    for (client, server) in attempts {
        let error = client.connect_blocking(server).unwrap_err().to_string();
        assert!(error.contains("configure both alike"), "{error}");
    }
}

#[test]
fn another_secret_under_the_same_name_establishes_nothing() {
    let server = Builder::new()
        .registered_key(key("k", Suite::Aes128Gcm))
        .bind_blocking("127.0.0.1:0")
        .unwrap();
    serve(&server, 1, crate::support::echo);
    let other = RegisteredKey::from_secret(b"k", Suite::Aes128Gcm, &[8; 32]).unwrap();
    let error = Builder::new()
        .registered_key(other)
        .connect_deadline(std::time::Duration::from_millis(500))
        .connect_blocking(server.local_address())
        .unwrap_err();
    println!("{error}");
    assert_eq!(server.statistics().protocol.sessions_begun, 0);
}

#[test]
fn from_the_keys_of_a_tls_session() {
    let key = || {
        let (client, server) = (([1; 16], [2; 12]), ([3; 16], [4; 12]));
        RegisteredKey::from_tls_keys(
            b"tls",
            Suite::Aes128Gcm,
            (&client.0, &client.1),
            (&server.0, &server.1),
        )
        .unwrap()
    };
    let server = Builder::new()
        .registered_key(key())
        .bind_blocking("127.0.0.1:0")
        .unwrap();
    serve(&server, 1, crate::support::echo);
    let client = Builder::new()
        .registered_key(key())
        .connect_blocking(server.local_address())
        .unwrap();
    assert_echo(&client, "hello");
}
