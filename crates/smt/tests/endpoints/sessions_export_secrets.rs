// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The two ends of a session export equal secrets, and nobody else has them (SPEC §7.4).

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use smt::polled::Event;
use smt::{
    Builder, ClientRole, ErrorKind, ExportError, KeyEnds, KeyLimits, Refused, RegisteredKey,
    ServerRole, Session,
};
use smt::{Suite, blocking};

use crate::choices_are_honoured::Lines;
use crate::support::polled_pair::{PolledClient, turn, watch};
use crate::support::{Credentials, assert_echo, echo, on_every_runtime, serve};

/// A server that echoes, and the sessions by which its requests come.
struct Server {
    server: blocking::Server,
    sessions: Receiver<Session>,
}

impl Server {
    fn new<R: ServerRole>(builder: Builder<R>) -> Self {
        let server = builder.bind_blocking("127.0.0.1:0").unwrap();
        let (sender, sessions) = channel();
        serve(&server, 1, move |request| {
            sender.send(request.session()).unwrap();
            echo(request);
        });
        Self { server, sessions }
    }

    /// Both ends of a new session; the endpoint of the client lives as long as its end.
    fn session_with<R: ClientRole>(&self, client: Builder<R>) -> [Session; 2] {
        let client = client.connect_blocking(self.server.local_address()).unwrap();
        assert_echo(&client, "hello");
        [client.connect().unwrap(), self.sessions.recv().unwrap()]
    }
}

fn exported(session: &Session, label: &str, context: &[u8]) -> [u8; 32] {
    let mut secret = [0; 32];
    session.export(label, context, &mut secret).unwrap();
    secret
}

/// Exports at both ends, where it must be the same.
#[track_caller]
fn exported_by_both(ends: &[Session; 2], label: &str, context: &[u8]) -> [u8; 32] {
    let [one, other] = [0, 1].map(|end| exported(&ends[end], label, context));
    assert_eq!(one, other);
    one
}

fn registered(own: &str, peer: &str) -> RegisteredKey {
    let ends = KeyEnds { own, peer };
    RegisteredKey::from_secret(b"k", ends, Suite::Aes128Gcm, &[7; 32]).unwrap()
}

// SMT [7.4-1]
#[test]
fn both_ends_have_the_same_and_other_labels_contexts_and_sessions_have_others() {
    let credentials = Credentials::new();
    let of_tls = Server::new(credentials.server());
    let of_key = Server::new(smt::server_by_keys([registered("store", "web")]));
    let mut all = Vec::new();
    for suite in Suite::ALL {
        all.push(of_tls.session_with(credentials.client().suites([suite])));
    }
    for _ in 0..2 {
        all.push(of_tls.session_with(credentials.client()));
        all.push(of_key.session_with(smt::client_by_key(registered("web", "store"))));
    }
    let mut secrets = HashSet::new();
    for ends in &all {
        for (label, context) in [("a", &b""[..]), ("a", b"b"), ("ab", b""), ("a", b"c")] {
            secrets.insert(exported_by_both(ends, label, context));
        }
    }
    assert_eq!(secrets.len(), 4 * all.len());
}

#[test]
fn both_ends_have_the_same_with_tokio() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let server = credentials.server().bind("127.0.0.1:0").await.unwrap();
        let client = credentials.client();
        let client = client.connect(server.local_address()).await.unwrap();
        let calling = client.clone();
        let call = tokio::spawn(async move { calling.call("hello").await });
        let request = server.accept_request().await.unwrap();
        let ends = [client.connect().await.unwrap(), request.session()];
        exported_by_both(&ends, "label", b"context");
        echo(request);
        call.await.unwrap().unwrap();
    });
}

#[test]
fn both_ends_have_the_same_with_polled_endpoints() {
    let credentials = Credentials::new();
    let mut server = credentials.server().bind_polled("127.0.0.1:0").unwrap();
    let address = server.local_address();
    let at_server = std::thread::spawn(move || {
        let epoll = watch(&server);
        loop {
            match server.next_event() {
                None => turn(&mut server, &epoll),
                Some(Event::Request { rpc, body, .. }) => {
                    let mut secret = [0; 32];
                    let session = rpc.session;
                    server.export(session, "label", &body, &mut secret).unwrap();
                    server.reply(rpc, body).unwrap();
                    // Dropping the endpoint sends the reply.
                    return secret;
                }
                Some(_) => {}
            }
        }
    });
    let endpoint = credentials.client().open_polled("127.0.0.1:0").unwrap();
    let mut client = PolledClient::new(endpoint, address);
    let mut secret = [0; 32];
    let (endpoint, session) = (&client.endpoint, client.session);
    let export = endpoint.export(session, "label", b"context", &mut secret);
    export.unwrap();
    client.call("context").unwrap();
    assert_eq!(secret, at_server.join().unwrap());
    client.endpoint.close(session);
    let refused = client.endpoint.export(session, "label", b"", &mut secret);
    assert_eq!(refused, Err(Refused::NoSession));
}

// SMT [7.4-5]
#[test]
fn key_updates_change_nothing_in_it() {
    let credentials = Credentials::new();
    let limits = KeyLimits::new(16, 12, 1 << 20).unwrap();
    let server = Server::new(credentials.server().key_limits(limits));
    let client = credentials.client().key_limits(limits);
    let client = client.connect_blocking(server.server.local_address()).unwrap();
    let session = client.connect().unwrap();
    let before = exported(&session, "label", b"");
    for _ in 0..64 {
        assert_echo(&client, "hello");
    }
    assert!(session.facts().unwrap().seal_epoch > 0);
    let ends = [session, server.sessions.recv().unwrap()];
    assert_eq!(exported_by_both(&ends, "label", b""), before);
}

// SMT [13-2]
#[test]
fn a_key_log_has_nothing_of_it() {
    let credentials = Credentials::new();
    let server = Server::new(credentials.server());
    let lines = Lines::default();
    let client = credentials.client().key_log(Arc::new(lines.clone()));
    let ends = server.session_with(client);
    exported_by_both(&ends, "label", b"");
    let lines = lines.take();
    assert_eq!(lines.len(), 4);
    let purposes = [" client data ", " client control ", " server data ", " server control "];
    for purpose in purposes {
        assert!(lines.iter().any(|line| line.contains(purpose)), "{purpose}");
    }
}

#[test]
fn an_ended_session_and_bad_arguments_export_nothing_and_say_why() {
    let credentials = Credentials::new();
    let server = Server::new(credentials.server());
    let [session, _] = server.session_with(credentials.client());
    let failure = |label: &str, length: usize| {
        let mut secret = vec![9; length];
        let error = session.export(label, b"", &mut secret).unwrap_err();
        assert!(secret.iter().all(|byte| *byte == 9));
        error
    };
    let kind = ErrorKind::Refused(Refused::Export(ExportError::Label { len: 0 }));
    assert_eq!(*failure("", 32).kind(), kind);
    let kind = ErrorKind::Refused(Refused::Export(ExportError::Length { len: 8_161 }));
    let error = failure("label", 8_161);
    assert_eq!(*error.kind(), kind);
    let text = format!(
        "export from the session with {}: caller: 8161 bytes of an exported secret were asked for; \
         ask for 1 to 8160",
        server.server.local_address()
    );
    assert_eq!(error.to_string(), text);
    session.close();
    assert_eq!(*failure("label", 32).kind(), ErrorKind::Refused(Refused::NoSession));
}
