// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client repeats what did not run, and what its caller has called idempotent; within the
//! deadline, and never what the application refuses.

use std::future::{Future, IntoFuture};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use smt::{Execution, Request, Retry, blocking};

use crate::support::{Credentials, echo, serve};

/// Longer than any machine takes here.
const LONG: Duration = Duration::from_secs(120);

/// A port at which nobody listens.
fn closed() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap()
}

/// A server that hands requests to `answer` with their number, and counts them.
fn counting(
    credentials: &Credentials,
    answer: impl Fn(usize, Request) + Send + Sync + 'static,
) -> (blocking::Server, Arc<AtomicUsize>) {
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let requests = Arc::clone(&count);
    serve(&server, 1, move |request| {
        answer(requests.fetch_add(1, Ordering::SeqCst), request);
    });
    (server, count)
}

/// It fails the first request so that it may have run.
fn drop_first(number: usize, request: Request) {
    match number {
        0 => drop(request),
        _ => echo(request),
    }
}

#[test]
fn a_call_that_did_not_run_is_repeated_until_its_server_is_there() {
    let credentials = Credentials::new();
    let address = closed();
    let client = credentials.client().call_deadline(LONG);
    let client = client.connect_lazy_blocking(address).unwrap();
    let error = client.call("hi").wait().unwrap_err();
    assert_eq!(error.execution(), Execution::DidNotRun);
    let again = client.clone();
    let calling = std::thread::spawn(move || {
        let call = again.call("hi").retry(Retry::within(LONG));
        call.wait()
    });
    let server = credentials.server().bind_blocking(address).unwrap();
    serve(&server, 1, echo);
    assert_eq!(calling.join().unwrap().unwrap(), "hi");
}

#[test]
fn a_call_that_may_have_run_is_repeated_only_if_it_is_idempotent() {
    let credentials = Credentials::new();
    for is_idempotent in [false, true] {
        let (server, count) = counting(&credentials, drop_first);
        let retry = Retry::times(1).idempotent(is_idempotent);
        let client = credentials.client().retry(retry);
        let client = client.connect_blocking(server.local_address()).unwrap();
        match client.call("hi").wait() {
            Ok(reply) => assert!(is_idempotent && reply == "hi"),
            Err(error) => {
                assert!(!is_idempotent);
                assert_eq!(error.execution(), Execution::MayHaveRun, "{error}");
            }
        }
        let expected = if is_idempotent { 2 } else { 1 };
        assert_eq!(count.load(Ordering::SeqCst), expected);
    }
}

#[tokio::test]
async fn a_task_repeats_as_a_thread_does() {
    let credentials = Credentials::new();
    let (server, count) = counting(&credentials, drop_first);
    let client = credentials.client().retry(Retry::times(1).idempotent(true));
    let client = client.connect(server.local_address()).await.unwrap();
    assert_eq!(client.call("hi").await.unwrap(), "hi");
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

#[test]
fn a_message_says_for_itself_whether_it_is_repeated() {
    let credentials = Credentials::new();
    let (server, count) = counting(&credentials, |_, request| drop(request));
    let client = credentials.client().retry(Retry::times(1).idempotent(true));
    let client = client.connect_blocking(server.local_address()).unwrap();
    assert!(client.call("hi").retry(Retry::times(0)).wait().is_err());
    assert_eq!(count.load(Ordering::SeqCst), 1);
    assert!(client.call("hi").wait().is_err());
    assert_eq!(count.load(Ordering::SeqCst), 3);
}

#[test]
fn a_refusal_by_the_application_is_told_and_not_repeated() {
    let credentials = Credentials::new();
    let (server, count) = counting(&credentials, |_, request| request.refuse(7, "not today"));
    let client = credentials.client().retry(Retry::times(9).idempotent(true));
    let client = client.connect_blocking(server.local_address()).unwrap();
    let error = client.call("hi").wait().unwrap_err();
    let refusal = error.refusal().unwrap();
    assert_eq!((refusal.code, refusal.text.as_str()), (7, "not today"));
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[test]
fn no_attempt_begins_that_the_deadline_would_not_let_end() {
    let credentials = Credentials::new();
    let (server, count) = counting(&credentials, |_, request| drop(request));
    // The pause is longer than the deadline.
    let retry = Retry::times(9).idempotent(true).pause(2 * LONG, 2 * LONG);
    let client = credentials.client().retry(retry);
    let client = client.connect_blocking(server.local_address()).unwrap();
    let error = client.call("hi").deadline(LONG).wait().unwrap_err();
    assert_eq!(error.execution(), Execution::MayHaveRun, "{error}");
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_call_that_is_dropped_in_its_pause_is_not_made_again() {
    let credentials = Credentials::new();
    let (server, count) = counting(&credentials, drop_first);
    let client = credentials.client();
    let client = client.connect(server.local_address()).await.unwrap();
    let retry = Retry::times(9).idempotent(true).pause(LONG, LONG);
    let calling = client.call("first").retry(retry);
    let mut calling = Box::pin(calling.into_future());
    while count.load(Ordering::SeqCst) == 0 {
        let poll =
            std::future::poll_fn(|context| std::task::Poll::Ready(calling.as_mut().poll(context)));
        assert!(poll.await.is_pending());
        tokio::task::yield_now().await;
    }
    drop(calling);
    assert_eq!(client.call("second").await.unwrap(), "second");
    assert_eq!(count.load(Ordering::SeqCst), 2);
}
