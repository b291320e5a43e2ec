// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whole messages that nobody accepts are memory in use (what that keeps out: `smt-proto`, `memory_is_bounded`), and those
//! of callers that have given up are never delivered.

use std::time::Duration;

use smt::{Bytes, CallFailure, ErrorKind};

use crate::support::{Credentials, connect, echo, eventually};

const MIB: usize = 1 << 20;

#[test]
fn they_count_until_they_are_accepted() {
    let credentials = Credentials::new();
    let server = credentials
        .server()
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
    // Whoever accepts makes room.
    for _ in 0..8 {
        assert_eq!(server.accept().unwrap().body().len(), MIB);
    }
    assert_eq!(server.accept().unwrap().body().as_ref(), b"one more");
    waiting.join().unwrap().unwrap();
    assert_eq!(server.statistics().memory, 0);
}

#[test]
fn a_request_that_was_given_up_is_not_delivered() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let client = connect(&credentials, server.local_address());
    let given_up = client.call("given up").deadline(Duration::from_millis(50));
    let error = given_up.wait().unwrap_err();
    let ErrorKind::Call(error) = error.kind else {
        panic!("{error}");
    };
    assert_eq!(error.reason, CallFailure::DeadlineExceeded);
    let calling = std::thread::spawn(move || client.call("wanted").wait());
    // The second came after the first one's end.
    eventually("both requests have come", || {
        server.statistics().protocol.messages_delivered == 2
    });
    let request = server.accept().unwrap();
    assert_eq!(request.body().as_ref(), b"wanted");
    echo(request);
    assert_eq!(calling.join().unwrap().unwrap().as_ref(), b"wanted");
}
