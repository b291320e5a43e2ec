// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server's application decides by a client's certificate whether it is served, and keeps what it
//! knows of the client with the session.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use smt::{
    Builder, CallFailure, ClientAuth, CloseCode, Error, ErrorKind, Execution, Failure, Peer,
    TlsClient, TlsServer,
};

use crate::support::{Credentials, eventually, on_every_runtime, serve, serve_all};

fn server(credentials: &Credentials) -> Builder<TlsServer> {
    let trust = credentials.authority().trust().unwrap();
    let server = credentials.server();
    server.client_auth(ClientAuth::Required(trust))
}

fn client(credentials: &Credentials, name: &str) -> Builder<TlsClient> {
    let identity = credentials.authority().client(name).unwrap();
    credentials.client().identity(identity)
}

/// Serves writers alone.
fn writers_alone(peer: &Peer) -> Result<(), Failure> {
    let certificate = peer.certificate();
    match certificate.and_then(|certificate| certificate.common_name.as_deref()) {
        Some("writer") => Ok(()),
        name => Err(Failure::refusal(403, format!("{name:?} is no writer"))),
    }
}

fn assert_is_refused(error: &Error) {
    let text = error.to_string();
    let says = "peer: the server's application refused the request: Some(\"reader\") is no writer (code 403)";
    assert!(text.contains(says), "{text}");
    assert_eq!(error.execution(), Execution::DidNotRun);
    assert!(!error.is_transient());
}

#[test]
fn a_client_that_is_not_served_reads_why_and_its_messages_reach_nobody() {
    let credentials = Credentials::new();
    let server = server(&credentials).authorize(writers_alone);
    let server = server.bind_blocking("127.0.0.1:0").unwrap();
    let address = server.local_address();
    serve_all(&server, 2, |message| {
        let certificate = message.peer().certificate().unwrap();
        assert_eq!(certificate.common_name.as_deref(), Some("writer"));
        if let Some(request) = message.into_request() {
            request.reply("served").unwrap();
        }
    });
    let reader = client(&credentials, "reader");
    let reader = reader.connect_blocking(address).unwrap();
    let writer = client(&credentials, "writer");
    let writer = writer.connect_blocking(address).unwrap();
    for _ in 0..3 {
        assert_is_refused(&reader.call("let me in").wait().unwrap_err());
        assert_eq!(writer.call("let me in").wait().unwrap(), "served");
    }
    let _ = reader.send("let me in").wait();
    assert_eq!(server.statistics().sessions_refused, 1);
}

#[test]
fn the_session_of_a_client_that_is_not_served_is_closed_and_the_next_one_tells_why_again() {
    let credentials = Credentials::new();
    let server = server(&credentials).authorize(writers_alone);
    let server = server.bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 1, |request| request.fail(0, "it was served"));
    let reader = client(&credentials, "reader");
    let reader = reader.connect_blocking(server.local_address()).unwrap();
    let session = reader.connect().unwrap();
    eventually("the session is closed", || session.facts().is_none());
    assert_eq!(server.statistics().sessions, 0);
    assert_is_refused(&reader.call("let me in").wait().unwrap_err());
}

#[test]
fn a_client_that_calls_when_its_session_is_closed_learns_that_it_is_not_served() {
    let credentials = Credentials::new();
    let server = server(&credentials).authorize(writers_alone);
    let server = server.bind_blocking("127.0.0.1:0").unwrap();
    let reader = client(&credentials, "reader");
    let reader = reader.connect_blocking(server.local_address()).unwrap();
    // No thread accepts, and the call is in progress until the session is closed.
    let error = reader.call("let me in").wait().unwrap_err();
    let ErrorKind::Call(ended) = error.kind() else {
        panic!("{error}");
    };
    let closed = smt::SessionEnd::ClosedByPeer(CloseCode::Refused);
    assert_eq!(ended.reason, CallFailure::SessionEnded(closed));
    assert!(!error.is_transient(), "{error}");
}

#[test]
fn a_client_of_tasks_that_is_not_served_reads_why() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let server = server(&credentials).authorize(writers_alone);
        let server = server.bind("127.0.0.1:0").await.unwrap();
        let address = server.local_address();
        tokio::spawn(async move {
            while let Some(request) = server.accept_request().await {
                request.reply("served").unwrap();
            }
        });
        let reader = client(&credentials, "reader");
        let reader = reader.connect(address).await.unwrap();
        assert_is_refused(&reader.call("let me in").await.unwrap_err());
        let writer = client(&credentials, "writer");
        let writer = writer.connect(address).await.unwrap();
        assert_eq!(writer.call("let me in").await.unwrap(), "served");
    });
}

/// The server keeps this with a session.
struct User {
    name: String,
    calls: AtomicU32,
}

#[test]
fn a_session_has_the_users_data_that_the_rule_has_found() {
    let credentials = Credentials::new();
    let server = server(&credentials).authorize(|peer| {
        let certificate = peer.certificate().unwrap();
        let name = certificate.common_name.clone().unwrap();
        let calls = AtomicU32::new(0);
        peer.data().insert(User { name, calls });
        Ok(())
    });
    let server = server.bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 2, |request| {
        let user: Arc<User> = request.session().peer().data().get().unwrap();
        let number = 1 + user.calls.fetch_add(1, Ordering::Relaxed);
        request.reply(format!("{} {number}", user.name)).unwrap();
    });
    let clients = ["a", "b"].map(|name| {
        let client = client(&credentials, name);
        (name, client.connect_blocking(server.local_address()).unwrap())
    });
    for number in 1..=3 {
        for (name, client) in &clients {
            let reply = client.call("who am I?").wait().unwrap();
            assert_eq!(reply, format!("{name} {number}"));
        }
    }
}

#[test]
fn an_endpoint_for_a_foreign_event_loop_takes_no_rule() {
    let credentials = Credentials::new();
    let refused = credentials.server().authorize(|_| Ok(()));
    let error = refused.bind_polled("127.0.0.1:0").unwrap_err();
    assert!(error.to_string().starts_with("caller: `authorize`"), "{error}");
    let refused = credentials.server().authorize_messages(|_, _| Ok(()));
    let error = refused.bind_polled("127.0.0.1:0").unwrap_err();
    assert!(error.to_string().starts_with("caller: `authorize_messages`"), "{error}");
}
