// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whole messages that nobody accepts are memory in use (what that keeps out: `smt-proto`,
//! `memory_is_bounded`), and those of callers that have given up are never delivered.

use std::time::Duration;

use smt::{Bytes, CallFailure, ErrorKind};

use crate::support::{Credentials, connect, echo, eventually};

const MIB: usize = 1 << 20;

#[test]
fn messages_count_until_they_are_accepted() {
    let credentials = Credentials::new();
    let server = credentials
        .server()
        .message_limit(8 << 20)
        .configure(|config| config.memory_max = 8 * MIB)
        .bind_blocking("127.0.0.1:0")
        .unwrap();
    let client = connect(&credentials, server.local_address());
    let body = Bytes::from(vec![1; MIB]);
    for _ in 0..8 {
        client.send(body.clone()).wait().unwrap();
    }
    assert!(server.statistics().memory >= 8 * MIB);
    let waiting = std::thread::spawn(move || client.send("one more").wait());
    // An accepted message makes room.
    for _ in 0..8 {
        assert_eq!(server.accept().unwrap().body().len(), MIB);
    }
    assert_eq!(server.accept().unwrap().body().as_ref(), b"one more");
    waiting.join().unwrap().unwrap();
    assert_eq!(server.statistics().memory, 0);
}

/// A client that only calls has no use for what its server starts.
#[test]
fn a_client_that_has_never_accepted_holds_next_to_nothing() {
    const LENGTH: usize = 10_000;
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let client = connect(&credentials, server.local_address());
    client.send("here I am").wait().unwrap();
    let to_client = server.accept().unwrap().into_message().unwrap();
    let to_client = to_client.session().clone();
    // No answer comes: meanwhile the call's thread drives the client.
    let calling = client.clone();
    let call = calling.call("hold").deadline(Duration::from_millis(800));
    let driving = std::thread::spawn(move || call.wait());
    let sending = (0..60_u8).map(|number| {
        let to_client = to_client.clone();
        std::thread::spawn(move || {
            let send = to_client.send_blocking(vec![number; LENGTH]);
            send.deadline(Duration::from_millis(500)).wait()
        })
    });
    let sending: Vec<_> = sending.collect();
    let outcomes = sending.into_iter().map(|sending| sending.join().unwrap());
    let delivered = outcomes.map(|outcome| outcome.is_ok()).collect::<Vec<_>>();
    let most = (128 << 10) / LENGTH;
    let count = delivered.iter().filter(|is_ok| **is_ok).count();
    assert!((1..=most).contains(&count), "{count}");
    driving.join().unwrap().unwrap_err();
    // Packets of the others have a bound of their own.
    let memory = client.statistics().memory;
    assert!(memory < 60 * LENGTH, "{memory}");
    // From the first `accept` on it takes what comes.
    let more = std::thread::spawn(move || to_client.send_blocking(vec![99; MIB]).wait());
    let mut taken = [0_u32; 100];
    while taken[99] == 0 {
        taken[usize::from(client.accept().unwrap().body()[0])] += 1;
    }
    more.join().unwrap().unwrap();
    // The others are late: their senders have given no more than half a second.
    let late: u32 = taken[..60].iter().sum();
    assert_eq!(late, 0, "{taken:?}");
}

#[test]
fn a_request_that_was_given_up_is_not_delivered() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let client = connect(&credentials, server.local_address());
    let given_up = client.call("given up").deadline(Duration::from_millis(50));
    let error = given_up.wait().unwrap_err();
    let ErrorKind::Call(error) = error.kind() else {
        panic!("{error}");
    };
    assert_eq!(error.reason, CallFailure::DeadlineExceeded);
    let calling = std::thread::spawn(move || client.call("wanted").wait());
    // The second came after the first one's end.
    eventually("both requests have come", || server.statistics().protocol.messages_delivered == 2);
    let request = server.accept().unwrap();
    assert_eq!(request.body().as_ref(), b"wanted");
    echo(request.into_request().unwrap());
    assert_eq!(calling.join().unwrap().unwrap().as_ref(), b"wanted");
}
