// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server's application decides on each message by its sender and its metadata, before it sees
//! the message.

use smt::{
    Builder, CallFailure, ClientAuth, Error, ErrorKind, Execution, Failure, MessageHead, Metadata,
    OutgoingMessage, Peer, TlsClient, TlsServer,
};

use crate::support::{Credentials, eventually, on_every_runtime, serve_all};

/// Readers read, and the administrator does all.
#[expect(clippy::panic_in_result_fn, reason = "the rule of the test has a bug")]
fn by_method(peer: &Peer, head: MessageHead<'_>) -> Result<(), Failure> {
    let certificate = peer.certificate().unwrap();
    let is_admin = certificate.common_name.as_deref() == Some("admin");
    match head.metadata.get("method") {
        Some(b"read") => Ok(()),
        _ if is_admin => Ok(()),
        Some(method) => {
            let text = format!("{:?} is for admin", String::from_utf8_lossy(method));
            Err(Failure::refusal(403, text))
        }
        None => panic!("a message without a method"),
    }
}

fn server(credentials: &Credentials) -> Builder<TlsServer> {
    let trust = credentials.authority().trust().unwrap();
    let server = credentials.server().client_auth(ClientAuth::Required(trust));
    server.authorize_messages(by_method)
}

fn client(credentials: &Credentials, name: &str) -> Builder<TlsClient> {
    let identity = credentials.authority().client(name).unwrap();
    credentials.client().identity(identity)
}

fn message(method: &str) -> OutgoingMessage {
    let mut metadata = Metadata::new();
    metadata.push("method", method.as_bytes()).unwrap();
    OutgoingMessage::new("x").with_metadata(metadata)
}

fn refused(error: &Error) -> Failure {
    let ErrorKind::Call(call) = error.kind() else {
        panic!("{error}");
    };
    let CallFailure::Refused(failure) = &call.reason else {
        panic!("{error}");
    };
    assert_eq!(error.execution(), Execution::DidNotRun);
    (**failure).clone()
}

#[test]
fn a_message_that_is_refused_reaches_nobody_and_others_of_the_session_go_on() {
    let credentials = Credentials::new();
    let server = server(&credentials).bind_blocking("127.0.0.1:0").unwrap();
    serve_all(&server, 2, |message| {
        let certificate = message.peer().certificate().unwrap();
        let is_admin = certificate.common_name.as_deref() == Some("admin");
        if let Some(request) = message.into_request() {
            assert!(is_admin || request.metadata().get("method") == Some(b"read"));
            request.reply("served").unwrap();
        } else {
            assert!(is_admin, "a one-way message was refused");
        }
    });
    let [reader, admin] = ["reader", "admin"].map(|name| {
        let client = client(&credentials, name);
        client.connect_blocking(server.local_address()).unwrap()
    });
    let session = reader.connect().unwrap();
    for _ in 0..3 {
        assert_eq!(reader.call(message("read")).wait().unwrap(), "served");
        let failure = refused(&reader.call(message("write")).wait().unwrap_err());
        assert_eq!(failure, Failure::refusal(403, "\"write\" is for admin"));
        assert_eq!(admin.call(message("write")).wait().unwrap(), "served");
    }
    // The rule has a bug for these.
    let failure = refused(&reader.call("no method").wait().unwrap_err());
    assert!(failure.text.contains("could not decide"), "{}", failure.text);
    reader.send(message("write")).wait().unwrap();
    admin.send(message("write")).wait().unwrap();
    eventually("the one-way message is refused too", || server.statistics().messages_refused == 5);
    assert_eq!(reader.connect().unwrap(), session);
    assert_eq!(server.statistics().sessions_refused, 0);
}

#[test]
fn a_caller_of_tasks_reads_why_its_message_is_refused() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let server = server(&credentials).bind("127.0.0.1:0").await.unwrap();
        let address = server.local_address();
        tokio::spawn(async move {
            while let Some(request) = server.accept_request().await {
                assert_eq!(request.metadata().get("method"), Some(&b"read"[..]));
                request.reply("served").unwrap();
            }
        });
        let reader = client(&credentials, "reader").connect(address).await.unwrap();
        // Many at once: those that are taken together are judged one by one.
        let calls: Vec<_> = (0..40)
            .map(|n| {
                let method = if n % 3 == 0 { "write" } else { "read" };
                let reader = reader.clone();
                let call = tokio::spawn(async move { reader.call(message(method)).await });
                (method, call)
            })
            .collect();
        for (method, call) in calls {
            match method {
                "read" => assert_eq!(call.await.unwrap().unwrap(), "served"),
                _ => assert_eq!(refused(&call.await.unwrap().unwrap_err()).code, 403),
            }
        }
    });
}
