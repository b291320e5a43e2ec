// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A session is handed over to another process as a value: both ends export a secret of it, and
//! endpoints that know nothing else connect by it as a registered key (SPEC §7.2, §7.4).

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::channel;

use smt::{Builder, KeyClient, KeyEnds, RegisteredKey, Session, Suite, blocking};

use crate::choices_are_honoured::Lines;
use crate::support::forwarder::{Forwarder, Way};
use crate::support::{Credentials, assert_echo, echo, serve};

const LABEL: &str = "EXPORTER-hand-over";

/// All that goes from one process to another: the name of the key, and its secret.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Handover {
    name: [u8; 8],
    secret: [u8; 32],
}

impl Handover {
    fn of(session: &Session) -> Self {
        let (mut name, mut secret) = ([0; 8], [0; 32]);
        session.export(LABEL, b"name", &mut name).unwrap();
        session.export(LABEL, b"secret", &mut secret).unwrap();
        Self { name, secret }
    }

    fn key(&self, own: &str, peer: &str) -> RegisteredKey {
        let ends = KeyEnds { own, peer };
        RegisteredKey::from_secret(&self.name, ends, Suite::Aes256Gcm, &self.secret).unwrap()
    }

    /// A server of a process that adopts the secret.
    fn server(&self) -> blocking::Server {
        let server = smt::server_by_keys([self.key("store", "web")]);
        let server = server.bind_blocking("127.0.0.1:0");
        let server = server.unwrap();
        serve(&server, 1, |request| {
            assert_eq!(request.peer().key_identity.as_deref(), Some("web"));
            echo(request);
        });
        server
    }

    /// A client of such a process.
    fn client(&self) -> Builder<KeyClient> {
        smt::client_by_key(self.key("web", "store"))
    }
}

/// Makes a TLS session, and what both of its ends hand over, which is the same.
fn handed_over() -> Handover {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let (sender, at_server) = channel();
    serve(&server, 1, move |request| {
        sender.send(Handover::of(&request.session())).unwrap();
        echo(request);
    });
    let client = crate::support::connect(&credentials, server.local_address());
    assert_echo(&client, "hello");
    let at_client = Handover::of(&client.connect().unwrap());
    assert_eq!(at_client, at_server.recv().unwrap());
    at_client
}

#[test]
fn endpoints_that_have_nothing_else_connect_by_an_exported_secret() {
    let handover = handed_over();
    let server = handover.server();
    let client = handover.client().connect_blocking(server.local_address());
    assert_echo(&client.unwrap(), "hello");
}

/// Each session has the fresh randoms of both ends in its keys, and its ends confirm them.
#[test]
fn a_secret_that_is_adopted_twice_never_gives_the_same_keys() {
    let handover = handed_over();
    let lines = Lines::default();
    let (mut sessions, mut exported) = (0, HashSet::new());
    // Two processes that adopt the secret on each side.
    for server in [handover.server(), handover.server()] {
        for client in [handover.client(), handover.client()] {
            let client = client.key_log(Arc::new(lines.clone()));
            let client = client.connect_blocking(server.local_address()).unwrap();
            assert_echo(&client, "hello");
            // The new session's exported secrets are its own again.
            exported.insert(Handover::of(&client.connect().unwrap()).secret);
            sessions += 1;
        }
    }
    let lines = lines.take();
    let secrets: HashSet<&str> = lines.iter().filter_map(|line| line.rsplit(' ').next()).collect();
    assert_eq!((lines.len(), secrets.len()), (4 * sessions, 4 * sessions));
    exported.insert(handover.secret);
    assert_eq!(exported.len(), sessions + 1);
}

/// All that a client has said is said again to the server by somebody who has seen it.
#[test]
fn a_recorded_handshake_begins_no_second_session() {
    let handover = handed_over();
    let server = handover.server();
    let (sender, recorded) = channel();
    let network = Forwarder::new(server.local_address(), move |way, datagram| {
        if way == Way::ToServer {
            let _ = sender.send(datagram.to_vec());
        }
        vec![(way, datagram.to_vec())]
    });
    let client = handover.client().connect_blocking(network.address());
    assert_echo(&client.unwrap(), "hello");
    drop(network);
    let began = server.statistics().protocol.sessions_begun;
    let attacker = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    for datagram in recorded.try_iter() {
        attacker.send_to(&datagram, server.local_address()).unwrap();
    }
    // An honest client comes after that and is served.
    let client = handover.client().connect_blocking(server.local_address());
    assert_echo(&client.unwrap(), "hello");
    assert_eq!(server.statistics().protocol.sessions_begun, began + 1);
}
