// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A copy of a process (`fork`) leaves an endpoint to the original (SPEC §16): two that seal under the same keys and numbers
//! would tell what they seal. Here since forking is unsafe.
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]
#![cfg(target_os = "linux")]

use std::thread::JoinHandle;
use std::time::Duration;

use smt::blocking::Server;
use smt::polled::{Endpoint, Event};
use smt::{Builder, ThrowAway};

/// An echo, for as long as it is not shut down.
struct Echo {
    authority: ThrowAway,
    server: std::sync::Arc<Server>,
    thread: Option<JoinHandle<()>>,
}

impl Echo {
    fn new() -> Self {
        let authority = ThrowAway::new().unwrap();
        let identity = authority.server(&["localhost"]).unwrap();
        let server = Builder::new().identity(identity);
        let server = std::sync::Arc::new(server.bind_blocking("127.0.0.1:0").unwrap());
        let echo = std::sync::Arc::clone(&server);
        let thread = std::thread::spawn(move || {
            while let Some(request) = echo.accept() {
                let body = request.body().clone();
                request.reply(body).unwrap();
            }
        });
        Self {
            authority,
            server,
            thread: Some(thread),
        }
    }

    fn client(&self) -> Builder {
        let trust = self.authority.trust().unwrap();
        Builder::new().trust(trust).server_name("localhost")
    }

    /// Datagrams that have come so far.
    fn received(&self) -> u64 {
        self.server.statistics().protocol.datagrams_received
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.server.shutdown(Duration::ZERO);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// What becomes of this in a copy of this process: true if it says so and does not panic.
fn in_a_copy(does: impl FnOnce() -> bool) -> bool {
    // SAFETY: the C library's allocator may be used in the child of a process with threads; locks that other threads hold
    // are what is tested. The child ends without running what the original has registered for its end.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let does = std::panic::AssertUnwindSafe(does);
        let status = i32::from(!std::panic::catch_unwind(does).unwrap_or(false));
        // SAFETY: ends this process at once.
        unsafe { libc::_exit(status) };
    }
    assert!(child > 0, "no process for a child");
    let mut status = 0;
    // SAFETY: the number is that of a child of this process, and the place that of a number.
    let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(ended, child);
    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}

#[test]
fn a_copied_client_sends_nothing_and_says_why() {
    let echo = Echo::new();
    let client = echo
        .client()
        .connect_blocking(echo.server.local_address())
        .unwrap();
    assert_eq!(client.call("before").wait().unwrap(), "before");
    let before = echo.received();
    let copied = client.clone();
    assert!(in_a_copy(move || {
        let error = copied.call("copied").wait().unwrap_err().to_string();
        drop(copied);
        error.contains("copy (fork)")
    }));
    assert_eq!(echo.received(), before, "the copy has sent something");
    assert_eq!(client.call("after").wait().unwrap(), "after");
}

#[test]
fn so_does_a_polled_one() {
    let echo = Echo::new();
    let address = echo.server.local_address();
    let mut client = echo.client().connect_polled(address).unwrap();
    let patience = Duration::from_secs(10);
    client.connect(address, "localhost", patience).unwrap();
    let session = loop {
        client.process().unwrap();
        if let Some(Event::Connected { session, .. }) = client.next_event() {
            break session;
        }
    };
    let reply = |client: &mut Endpoint, text: &'static str| {
        client.call(session, text, None).unwrap();
        loop {
            client.process().unwrap();
            if let Some(Event::Reply { body, .. }) = client.next_event() {
                break body;
            }
        }
    };
    assert_eq!(reply(&mut client, "before"), "before");
    let before = echo.received();
    assert!(in_a_copy(|| {
        let _ = client.call(session, "copied", None);
        client.process().unwrap();
        let events: Vec<Event> = std::iter::from_fn(|| client.next_event()).collect();
        let has_ended = |event: &Event| matches!(event, Event::SessionEnded { end, .. } if end.to_string().contains("copy of (fork)"));
        events.iter().any(has_ended) && client.call(session, "again", None).is_err()
    }));
    assert_eq!(echo.received(), before, "the copy has sent something");
    assert_eq!(reply(&mut client, "after"), "after");
}
