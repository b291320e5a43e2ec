// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server that does not accept keeps no more than its bound, and nothing for callers that have given up.

use std::time::Duration;

use smt::{Bytes, CallFailure, ErrorKind};

use crate::support::{Credentials, connect, echo, eventually};

const MIB: usize = 1 << 20;

#[test]
fn what_comes_beyond_the_bound_waits_at_its_sender() {
    let credentials = Credentials::new();
    let server = credentials
        .server()
        .configure(|config| config.memory_max = 8 * MIB)
        .bind_blocking("127.0.0.1:0")
        .unwrap();
    let client = connect(&credentials, server.local_address());
    let body = Bytes::from(vec![1; MIB]);
    let senders: Vec<_> = (0..24)
        .map(|_| {
            let (client, body) = (client.clone(), body.clone());
            std::thread::spawn(move || client.send(body).wait())
        })
        .collect();
    // Until nothing more comes: as much as the bound, and what had begun before it was reached.
    let taken = loop {
        let before = server.statistics().memory;
        std::thread::sleep(Duration::from_millis(300));
        let now = server.statistics().memory;
        if now == before && now > 0 {
            break now;
        }
    };
    // And a little of each of the others.
    assert!((8 * MIB..12 * MIB).contains(&taken), "{taken} B");
    // Whoever accepts gets them all.
    for _ in 0..24 {
        assert_eq!(server.accept().unwrap().body().len(), MIB);
    }
    for sender in senders {
        sender.join().unwrap().unwrap();
    }
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
