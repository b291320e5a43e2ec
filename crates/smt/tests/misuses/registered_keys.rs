// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Registered keys that are weak, contradict each other, or do not fit the peer's.

use std::time::Duration;

use smt::Fault::{Caller, Peer};
use smt::{KeyEnds, RegisteredKey, RegisteredKeyError, Suite, TlsTrafficKey};

use crate::bystander::ANY;
use crate::misuse::{Misuse, Told, failed, misuse};

const SECRET: [u8; 32] = [7; 32];

fn key(name: &[u8], own: &str, peer: &str) -> Result<RegisteredKey, RegisteredKeyError> {
    RegisteredKey::from_secret(name, KeyEnds { own, peer }, Suite::Aes128Gcm, &SECRET)
}

fn served(keys: impl IntoIterator<Item = RegisteredKey>) -> Told {
    failed(smt::server_by_keys(keys).bind_blocking(ANY))
}

/// The answer to a client with this key at a server with that one.
fn met(server: RegisteredKey, client: RegisteredKey) -> Told {
    let server = smt::server_by_keys([server]).bind_blocking(ANY).unwrap();
    let client = smt::client_by_key(client).connect_deadline(Duration::from_millis(400));
    failed(client.connect_blocking(server.local_address()))
}

pub(crate) fn table() -> Vec<Misuse> {
    let mut all = keys();
    all.extend(ends());
    all
}

fn keys() -> Vec<Misuse> {
    vec![
        misuse("a password as secret", Caller, "random ones", |_| {
            let ends = KeyEnds { own: "a", peer: "b" };
            failed(RegisteredKey::from_secret(b"k", ends, Suite::Aes128Gcm, b"swordfish"))
        }),
        misuse("a name of 1,000 bytes", Caller, "at most", |_| {
            failed(key(&[b'k'; 1_000], "a", "b"))
        }),
        misuse("an end without identity", Caller, "give 1 to", |_| failed(key(b"k", "", "b"))),
        misuse("both ends alike", Caller, "different identities", |_| failed(key(b"k", "a", "a"))),
        misuse("a TLS key of another suite", Caller, "whose keys have", |_| {
            let direction = TlsTrafficKey { key: &[1; 16], iv: &[2; 12] };
            let ends = KeyEnds { own: "a", peer: "b" };
            let suite = Suite::Aes256Gcm;
            failed(RegisteredKey::from_tls_keys(b"k", ends, suite, direction, direction))
        }),
        misuse("a server without keys", Caller, "needs at least one key", |_| served([])),
        misuse("two keys of one name", Caller, "give each its own", |_| {
            served([key(b"k", "a", "b").unwrap(), key(b"k", "a", "c").unwrap()])
        }),
        misuse("a server of two identities", Caller, "one identity of its own", |_| {
            served([key(b"k", "a", "b").unwrap(), key(b"l", "z", "b").unwrap()])
        }),
        misuse("keys of two suites", Caller, "an endpoint of its own", |_| {
            let ends = KeyEnds { own: "a", peer: "c" };
            let other = RegisteredKey::from_secret(b"l", ends, Suite::Aes256Gcm, &SECRET).unwrap();
            served([key(b"k", "a", "b").unwrap(), other])
        }),
    ]
}

fn ends() -> Vec<Misuse> {
    vec![
        misuse("another secret than the server's", Peer, "registered the same secret", |_| {
            let ends = KeyEnds { own: "b", peer: "a" };
            let other = RegisteredKey::from_secret(b"k", ends, Suite::Aes128Gcm, &[8; 32]);
            met(key(b"k", "a", "b").unwrap(), other.unwrap())
        }),
        misuse("a name that the server does not know", Peer, "", |_| {
            met(key(b"k", "a", "b").unwrap(), key(b"l", "b", "a").unwrap())
        }),
        misuse("both sides name themselves alike", Peer, "its own and the other's", |_| {
            met(key(b"k", "a", "b").unwrap(), key(b"k", "a", "b").unwrap())
        }),
        misuse("a registered key at a server of TLS", Peer, "configure both alike", |by| {
            let client = smt::client_by_key(key(b"k", "b", "a").unwrap());
            let client = client.connect_deadline(Duration::from_millis(400));
            failed(client.connect_blocking(by.server.local_address()))
        }),
        misuse("TLS at a server of registered keys", Peer, "configure both alike", |by| {
            let server = smt::server_by_keys([key(b"k", "a", "b").unwrap()]);
            let server = server.bind_blocking(ANY).unwrap();
            by.connecting(by.client_builder(), server.local_address())
        }),
    ]
}
