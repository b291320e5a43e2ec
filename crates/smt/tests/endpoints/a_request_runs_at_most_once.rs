// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The table "What happens when" of the crate's documentation, row by row where no other file has
//! the row.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use smt::{CallFailure, CloseCode, ErrorKind, Execution, SessionEnd};

use crate::support::{Credentials, connect, echo, echo_server, eventually, serve, within};

fn ended_by(error: &smt::Error) -> &SessionEnd {
    match error.kind() {
        ErrorKind::Call(call) => match &call.reason {
            CallFailure::SessionEnded(end) => end,
            other => panic!("{other}"),
        },
        other => panic!("{other}"),
    }
}

#[test]
fn a_reply_returns_before_the_caller_has_it() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let client = connect(&credentials, server.local_address());
    std::thread::scope(|scope| {
        let call = scope.spawn(|| client.call("x").wait().unwrap());
        let request = server.accept_request().unwrap();
        // 20 MB do not fit any buffer: what returns has only been queued.
        request.reply(vec![7; 20_000_000]).unwrap();
        let accepting = server.clone();
        std::thread::spawn(move || accepting.accept_request());
        assert_eq!(call.join().unwrap().len(), 20_000_000);
    });
}

#[test]
fn dropping_the_last_handle_of_a_server_ends_calls_at_once() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let client = connect(&credentials, server.local_address());
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || ended.send(client.call("work").wait()).unwrap());
    let request = server.accept_request().unwrap();
    let began = Instant::now();
    // The request is a handle too, but answered by its drop only as long as the endpoint lives.
    drop(server);
    drop(request);
    let error = end.recv().unwrap().unwrap_err();
    assert_eq!(error.execution(), Execution::MayHaveRun);
    assert!(began.elapsed() < within(Duration::from_secs(1)), "{:?}", began.elapsed());
}

#[test]
fn dropping_the_last_handle_of_a_client_cancels_at_the_server() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let address = server.local_address();
    let client = credentials.client().open_polled("127.0.0.1:0").unwrap();
    let accepting = server.clone();
    let request = std::thread::spawn(move || accepting.accept_request().unwrap());
    let mut client = crate::support::polled_pair::PolledClient::new(client, address);
    let _ = client.start_call("work", None);
    let request = request.join().unwrap();
    assert!(!request.is_cancelled());
    drop(client);
    let began = Instant::now();
    eventually("cancelled", || request.is_cancelled());
    assert!(began.elapsed() < within(Duration::from_secs(1)), "{:?}", began.elapsed());
}

#[test]
fn a_closed_session_is_told_as_such() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let client = connect(&credentials, server.local_address());
    let (ended, end) = mpsc::channel();
    let calling = client.clone();
    std::thread::spawn(move || ended.send(calling.call("work").wait()).unwrap());
    let request = server.accept_request().unwrap();
    request.session().close();
    let error = end.recv().unwrap().unwrap_err();
    assert_eq!(*ended_by(&error), SessionEnd::ClosedByPeer(CloseCode::Done));
    assert_eq!(error.execution(), Execution::MayHaveRun);
    // The next call has a session of its own.
    serve(&server, 1, echo);
    assert_eq!(client.call("again").wait().unwrap(), "again");
}

#[test]
fn a_lost_server_fails_calls_after_two_seconds() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let forwarder = lost_after_a_request(&server);
    let client = connect(&credentials, forwarder.address());
    let began = Instant::now();
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || ended.send(client.call("work").wait()).unwrap());
    let request = server.accept_request().unwrap();
    let error = end.recv().unwrap().unwrap_err();
    assert!(matches!(ended_by(&error), SessionEnd::Silent(_)), "{error}");
    assert_eq!(error.execution(), Execution::MayHaveRun);
    let took = began.elapsed();
    assert!(
        took > Duration::from_millis(1_900) && took < within(Duration::from_secs(4)),
        "{took:?}"
    );
    drop(request);
}

/// A way to the server on which nothing comes back any more once a message has gone.
fn lost_after_a_request(server: &smt::blocking::Server) -> crate::support::forwarder::Forwarder {
    use crate::support::forwarder::{Forwarder, Way};
    let mut is_lost = false;
    Forwarder::new(server.local_address(), move |way, datagram| {
        is_lost |= way == Way::ToServer && datagram[1] == 0x01;
        let is_dropped = is_lost && way == Way::ToClient;
        if is_dropped { vec![] } else { vec![(way, datagram.to_vec())] }
    })
}

#[test]
fn a_message_over_the_limit_is_refused_with_both_numbers() {
    let credentials = Credentials::new();
    let server = credentials.server().message_limit(10_000).bind_blocking("127.0.0.1:0").unwrap();
    let runs = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&runs);
    serve(&server, 1, move |request| {
        counted.fetch_add(1, Ordering::Relaxed);
        echo(request);
    });
    let client = connect(&credentials, server.local_address());
    let error = client.call(vec![0; 10_001]).wait().unwrap_err();
    let text = error.to_string();
    assert!(text.contains("10001 bytes") && text.contains("at most 10000"), "{text}");
    assert_eq!(error.execution(), Execution::DidNotRun);
    assert_eq!(client.call(vec![0; 10_000]).wait().unwrap().len(), 10_000);
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[test]
fn a_reply_over_the_limit_fails_at_both_ends() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let (told, refusal) = mpsc::channel();
    serve(&server, 1, move |request| {
        told.send(request.reply(vec![0; 10_001])).unwrap();
    });
    let client = credentials
        .client()
        .message_limit(10_000)
        .connect_blocking(server.local_address())
        .unwrap();
    let error = client.call("x").wait().unwrap_err();
    assert_eq!(error.execution(), Execution::MayHaveRun);
    let text = error.to_string();
    assert!(text.contains("limit: the reply is larger than this side accepts"), "{text}");
    let error = refusal.recv().unwrap().unwrap_err();
    assert_eq!(error.execution(), Execution::MayHaveRun);
    let text = error.to_string();
    assert!(text.starts_with("reply to ") && text.contains("10001 bytes"), "{text}");
}

#[test]
fn idle_sessions_are_closed_by_the_server_and_replaced_unseen() {
    let credentials = Credentials::new();
    let server = credentials
        .server()
        .configure(|config| config.idle_life = Duration::from_millis(100))
        .bind_blocking("127.0.0.1:0")
        .unwrap();
    serve(&server, 1, echo);
    let client = connect(&credentials, server.local_address());
    let waiting = client.clone();
    std::thread::spawn(move || waiting.accept_request());
    let first = client.connect().unwrap();
    eventually("the session is closed", || first.facts().is_none());
    assert_eq!(client.call("again").wait().unwrap(), "again");
    assert_eq!(client.statistics().protocol.sessions_begun, 2);
}

#[test]
#[should_panic(expected = "polled after its end")]
fn a_call_that_has_ended_is_not_sent_again() {
    let (credentials, runtime) = (Credentials::new(), tokio::runtime::Runtime::new().unwrap());
    let server = echo_server(&credentials);
    runtime.block_on(async {
        let connecting = credentials.client().connect(server.local_address());
        let client = connecting.await.unwrap();
        let mut calling = client.call("once").into_future();
        assert!((&mut calling).await.is_ok());
        let _ = calling.await;
    });
}
