// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A call ends by its deadline whatever it waits for, and no earlier.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use smt::{CallFailure, Error, ErrorKind, Execution};

use crate::support::forwarder::{Forwarder, Way};
use crate::support::polled_pair::{PolledClient, PolledServer};
use crate::support::{Credentials, connect, eventually, on_every_runtime, serve, within};

const DEADLINE: Duration = Duration::from_millis(150);
/// Far above what timers cost, far below the second after which threads look around anyway.
const LATE: Duration = Duration::from_millis(600);

fn assert_in_time(began: Instant) {
    let took = began.elapsed();
    assert!(took >= DEADLINE, "too early: {took:?}");
    assert!(took < within(LATE), "too late: {took:?}");
}

fn assert_deadline(error: &Error, execution: Execution) {
    assert_eq!(error.execution(), execution, "{error}");
    let ErrorKind::Call(call) = error.kind() else { panic!("{error}") };
    assert_eq!(call.reason, CallFailure::DeadlineExceeded);
}

#[test]
fn a_request_that_runs_too_long_may_have_run() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let client = connect(&credentials, server.local_address());
    let accepting = server.clone();
    let working = std::thread::spawn(move || accepting.accept_request().unwrap());
    let began = Instant::now();
    let error = client.call("work").deadline(DEADLINE).wait().unwrap_err();
    assert_deadline(&error, Execution::MayHaveRun);
    assert_in_time(began);
    let request = working.join().unwrap();
    assert!(request.time_left().unwrap() < DEADLINE);
    eventually("cancelled", || request.is_cancelled());
    assert_eq!(request.time_left(), Some(Duration::ZERO));
}

#[test]
fn a_deadline_that_passes_before_there_is_a_session_says_so() {
    let credentials = Credentials::new();
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let client = credentials.client().connect_lazy_blocking(nobody.local_addr().unwrap()).unwrap();
    let error = client.call("work").deadline(DEADLINE).wait().unwrap_err();
    assert_deadline(&error, Execution::DidNotRun);
    let text = "did not run; no session with the server had come about: check address, port";
    assert!(error.to_string().contains(text), "{error}");
}

#[test]
fn the_server_sees_the_time_that_is_left() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 1, |request| {
        let left = request.time_left().map_or(0, |left| left.as_millis() as u64);
        request.reply(left.to_be_bytes().to_vec()).unwrap();
    });
    let client = connect(&credentials, server.local_address());
    let left = |reply: smt::Bytes| u64::from_be_bytes(reply[..].try_into().unwrap());
    assert_eq!(left(client.call("").wait().unwrap()), 0);
    let limit = Duration::from_secs(100);
    let with = left(client.call("").deadline(limit).wait().unwrap());
    assert!((95_000..=100_000).contains(&with), "{with}");
}

#[test]
fn a_thread_that_follows_is_in_time_too() {
    let credentials = Credentials::new();
    // Without probes of the datagram size, which would wake the leader.
    let small = |config: &mut smt::TransportConfig| config.datagram_limit = 1_200;
    let server = credentials.server().configure(small).bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 1, crate::support::echo);
    let mut took = Vec::new();
    for _ in 0..8 {
        let is_cut = Arc::new(AtomicBool::new(false));
        let cut = Arc::clone(&is_cut);
        let forwarder = Forwarder::new(server.local_address(), move |way, datagram: &[u8]| {
            let is_lost = way == Way::ToClient && cut.load(Ordering::Relaxed);
            if is_lost { vec![] } else { vec![(way, datagram.to_vec())] }
        });
        let client =
            credentials.client().configure(small).connect_blocking(forwarder.address()).unwrap();
        // This one leads, and has no timer that is due soon.
        let leading = client.clone();
        std::thread::spawn(move || leading.accept_request());
        (0..10).for_each(|_| assert_eq!(client.call("x").wait().unwrap(), "x"));
        is_cut.store(true, Ordering::Relaxed);
        // Until the timers of those calls have run out, they would wake it.
        let quiet = Instant::now() + Duration::from_millis(50);
        while Instant::now() < quiet {
            std::thread::yield_now();
        }
        let (began, deadline) = (Instant::now(), Duration::from_millis(20));
        let error = client.call("work").deadline(deadline).wait().unwrap_err();
        assert_deadline(&error, Execution::MayHaveRun);
        took.push(began.elapsed());
    }
    // When the leader looks around by itself it is a quarter of a second.
    took.sort_unstable();
    assert!(took[6] < within(LATE / 4), "{took:?}");
}

#[test]
fn a_deadline_holds_with_tokio() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let server = credentials.server().bind("127.0.0.1:0").await.unwrap();
        let client = credentials.client().connect(server.local_address()).await.unwrap();
        let began = Instant::now();
        let error = client.call("work").deadline(DEADLINE).await.unwrap_err();
        // The server's application has never accepted it, and the server has said so.
        assert_deadline(&error, Execution::DidNotRun);
        assert_in_time(began);
    });
}

#[test]
fn a_deadline_holds_at_a_polled_endpoint_without_any_traffic() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let accepting = server.clone();
    let working = std::thread::spawn(move || accepting.accept_request().unwrap());
    let endpoint = credentials.client().open_polled("127.0.0.1:0").unwrap();
    let mut client = PolledClient::new(endpoint, server.local_address());
    let began = Instant::now();
    let rpc = client.start_call("work", Some(DEADLINE));
    let error = client.finish(rpc).unwrap_err();
    assert_in_time(began);
    assert_eq!(error.reason, CallFailure::DeadlineExceeded);
    drop(working.join().unwrap());
}

#[test]
fn a_deadline_holds_while_the_window_is_full() {
    let credentials = Credentials::new();
    let server = credentials
        .server()
        .configure(|config| config.window = 64)
        .bind_blocking("127.0.0.1:0")
        .unwrap();
    serve(&server, 1, crate::support::echo);
    let is_cut = Arc::new(AtomicBool::new(false));
    let cut = Arc::clone(&is_cut);
    let forwarder = Forwarder::new(server.local_address(), move |way, datagram: &[u8]| {
        match cut.load(Ordering::Relaxed) {
            true => Vec::new(),
            false => vec![(way, datagram.to_vec())],
        }
    });
    let client = connect(&credentials, forwarder.address());
    // From now on no request arrives: their ids stay unseen, and 64 fill the window.
    is_cut.store(true, Ordering::Relaxed);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..80 {
            scope.spawn(|| {
                let error = client.call("").deadline(DEADLINE).wait().unwrap_err();
                let ErrorKind::Call(call) = error.kind() else { panic!("{error}") };
                assert_eq!(call.reason, CallFailure::DeadlineExceeded);
            });
        }
    });
    assert_in_time(began);
}

#[test]
fn a_deadline_holds_while_connecting_anew() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let client = connect(&credentials, server.local_address());
    client.connect().unwrap().close();
    // The server is there, but nobody receives for it soon enough: its socket is a stranger's now.
    let address = server.local_address();
    drop(server);
    let _silent = crate::support::take_over(address);
    let began = Instant::now();
    let error = client.call("work").deadline(DEADLINE).wait().unwrap_err();
    assert_deadline(&error, Execution::DidNotRun);
    assert_in_time(began);
}

#[test]
fn a_deadline_holds_while_connecting_anew_with_tokio() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let server = credentials.server().bind("127.0.0.1:0").await.unwrap();
        let address = server.local_address();
        let client = credentials.client().connect(address).await.unwrap();
        client.connect().await.unwrap().close();
        drop(server);
        let taken = tokio::task::spawn_blocking(move || crate::support::take_over(address));
        let _silent = taken.await.unwrap();
        let began = Instant::now();
        let error = client.call("work").deadline(DEADLINE).await.unwrap_err();
        assert_deadline(&error, Execution::DidNotRun);
        assert_in_time(began);
    });
}

#[test]
fn a_deadline_of_a_one_way_message_holds_while_connecting_anew() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let client = connect(&credentials, server.local_address());
    client.connect().unwrap().close();
    let address = server.local_address();
    drop(server);
    let _silent = crate::support::take_over(address);
    let began = Instant::now();
    let error = client.send("news").deadline(DEADLINE).wait().unwrap_err();
    assert_in_time(began);
    let expected = ErrorKind::NotDelivered(CallFailure::DeadlineExceeded);
    assert_eq!(*error.kind(), expected);
}

#[test]
fn a_deadline_that_is_met_changes_nothing() {
    let credentials = Credentials::new();
    let server = PolledServer::echoing(credentials.server().bind_polled("127.0.0.1:0").unwrap());
    let client = connect(&credentials, server.address);
    for _ in 0..1_000 {
        let call = client.call("x").deadline(Duration::from_secs(30));
        assert_eq!(call.wait().unwrap(), "x");
    }
}
