// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A copy of a process (`fork`) leaves an endpoint to the original (SPEC §16): two that seal under
//! the same keys and numbers would tell what they seal. Here since forking is unsafe.
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]
#![cfg(target_os = "linux")]

use std::thread::JoinHandle;
use std::time::Duration;

use smt::blocking::Server;
use smt::pki::EphemeralCa;
use smt::polled::{Endpoint, Event};
use smt::{Builder, TlsClient};

/// An echo, for as long as it is not shut down.
struct Echo {
    authority: EphemeralCa,
    server: std::sync::Arc<Server>,
    thread: Option<JoinHandle<()>>,
}

impl Echo {
    fn new() -> Self {
        let authority = EphemeralCa::new().unwrap();
        let identity = authority.server(&["localhost"]).unwrap();
        let server = smt::server(identity);
        let server = std::sync::Arc::new(server.bind_blocking("127.0.0.1:0").unwrap());
        let echo = std::sync::Arc::clone(&server);
        let thread = std::thread::spawn(move || {
            while let Some(request) = echo.accept_request() {
                let body = request.body().clone();
                request.reply(body).unwrap();
            }
        });
        Self { authority, server, thread: Some(thread) }
    }

    fn client(&self) -> Builder<TlsClient> {
        let trust = self.authority.trust().unwrap();
        smt::client(trust).server_name("localhost")
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.server.close(Duration::ZERO);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// Datagrams that a client's socket has sent, as this process counts them: the original goes on
/// acknowledging beside a copy, so the server cannot tell.
fn sent(statistics: &smt::Statistics) -> u64 {
    let socket = statistics.socket.as_ref().unwrap();
    assert!(socket.datagrams_sent > 0);
    socket.datagrams_sent
}

/// Runs `does` in a copy of this process: true if it returns true and does not panic. A copy that
/// was made while a thread of the original held a lock can only say so: another one is made then.
fn in_a_copy(mut does: impl FnMut() -> bool) -> bool {
    let status = (0..100).map(|_| status_of_a_copy(&mut does)).find(|&status| status != IN_USE);
    status == Some(SAID_SO)
}

const SAID_SO: i32 = 0;
const SAID_NOT: i32 = 1;
const IN_USE: i32 = 2;

fn status_of_a_copy(does: &mut impl FnMut() -> bool) -> i32 {
    // SAFETY: the C library's allocator may be used in the child of a process with threads; locks
    // that other threads hold are what is tested. The child ends without running what the original
    // has registered for its end.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: a signal ends this process when it waits for threads that only the original has.
        unsafe { libc::alarm(30) };
        let status = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(does)) {
            Ok(true) => SAID_SO,
            Err(panic) if is_of_a_lock(&*panic) => IN_USE,
            Ok(false) | Err(_) => SAID_NOT,
        };
        // SAFETY: ends this process at once.
        unsafe { libc::_exit(status) };
    }
    assert!(child > 0, "no process for a child");
    let mut status = 0;
    // SAFETY: the number is that of a child of this process, and the place that of a number.
    let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(ended, child);
    assert!(libc::WIFEXITED(status), "the child ended by a signal");
    libc::WEXITSTATUS(status)
}

fn is_of_a_lock(panic: &(dyn std::any::Any + Send)) -> bool {
    let said = panic.downcast_ref::<&str>();
    said.is_some_and(|said| said.contains("was using the endpoint at that moment"))
}

#[test]
fn a_copied_client_sends_nothing_and_says_why() {
    let echo = Echo::new();
    let client = echo.client().connect_blocking(echo.server.local_address()).unwrap();
    assert_eq!(client.call("before").wait().unwrap(), "before");
    let mut client = Some(client);
    assert!(in_a_copy(|| {
        // The copy's only one, so that all ends there: a CLOSE would end the original's session
        // too.
        let copied = client.take().unwrap();
        let before = sent(&copied.statistics());
        let error = copied.call("copied").wait().unwrap_err().to_string();
        error.contains("copy (fork)") && sent(&copied.statistics()) == before
    }));
    let client = client.unwrap();
    assert_eq!(client.call("after").wait().unwrap(), "after");
}

#[test]
fn a_polled_client_in_a_copy_fails_and_sends_nothing() {
    let echo = Echo::new();
    let address = echo.server.local_address();
    let mut client = echo.client().open_polled("127.0.0.1:0").unwrap();
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
    assert!(in_a_copy(|| {
        let before = sent(&client.statistics());
        let _ = client.call(session, "copied", None);
        client.process().unwrap();
        let events: Vec<Event> = std::iter::from_fn(|| client.next_event()).collect();
        let has_ended = |event: &Event| matches!(event, Event::SessionEnded { end, .. } if end.to_string().contains("copy of (fork)"));
        let is_refused = client.call(session, "again", None).is_err();
        events.iter().any(has_ended) && is_refused && sent(&client.statistics()) == before
    }));
    assert_eq!(reply(&mut client, "after"), "after");
}

/// The original's threads lead: they have what is received into.
#[test]
fn a_copy_that_shuts_down_waits_for_no_thread_of_the_original() {
    let echo = Echo::new();
    let client = echo.client().connect_blocking(echo.server.local_address()).unwrap();
    let accepting = client.clone();
    let acceptor = std::thread::spawn(move || accepting.accept_request().is_none());
    assert_eq!(client.call("before").wait().unwrap(), "before");
    assert!(in_a_copy(|| {
        echo.server.close(Duration::ZERO);
        echo.server.accept_request().is_none()
    }));
    assert!(in_a_copy(|| {
        client.close(Duration::ZERO);
        let error = client.call("copied").wait().unwrap_err();
        error.to_string().contains("copy (fork)")
    }));
    assert_eq!(client.call("after").wait().unwrap(), "after");
    client.close(Duration::ZERO);
    assert!(acceptor.join().unwrap());
}
