// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The tokio runtime that an endpoint was opened on ends, has no timers, or is none: whoever waits
//! learns of it.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use smt::{ConnectError, ErrorKind, OpenError, Refused};
use tokio::runtime::{Builder, Runtime};

use crate::support::{Credentials, echo_server};

#[test]
fn calls_after_the_end_of_a_runtime_fail_at_once() {
    let credentials = Credentials::new();
    let server = echo_server(&credentials);
    let runtime = Runtime::new().unwrap();
    let connecting = credentials.client().connect(server.local_address());
    let client = runtime.block_on(connecting).unwrap();
    let session = runtime.block_on(client.connect()).unwrap();
    drop(runtime);
    let in_session = session.call_blocking("hi").wait().unwrap_err();
    assert_eq!(in_session.kind, ErrorKind::Refused(Refused::NoSession));
    let elsewhere = Runtime::new().unwrap();
    let anew = elsewhere.block_on(async { client.call("hi").await });
    let expected = ErrorKind::Connect(ConnectError::Undriven);
    assert_eq!(anew.unwrap_err().kind, expected);
}

#[test]
fn a_call_in_progress_fails_with_its_runtime() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let runtime = Runtime::new().unwrap();
    let connecting = credentials.client().connect(server.local_address());
    let client = runtime.block_on(connecting).unwrap();
    let session = runtime.block_on(client.connect()).unwrap();
    let waiting = std::thread::spawn(move || session.call_blocking("hi").wait());
    let request = server.accept().unwrap();
    drop(runtime);
    let error = waiting.join().unwrap().unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Call(_)), "{error}");
    drop(request);
}

#[test]
fn a_runtime_without_timers_connects_no_client() {
    let credentials = Credentials::new();
    let server = echo_server(&credentials);
    let runtime = Builder::new_current_thread().enable_io().build().unwrap();
    let outcome = runtime.block_on(credentials.client().connect(server.local_address()));
    let Err(OpenError::Connect(error)) = outcome else {
        panic!("it has connected");
    };
    let expected = ErrorKind::Connect(ConnectError::Undriven);
    assert_eq!(error.kind, expected);
}

#[test]
fn an_endpoint_is_not_opened_without_a_runtime() {
    let binding = pin!(Credentials::new().server().bind("127.0.0.1:0"));
    let mut context = Context::from_waker(Waker::noop());
    let Poll::Ready(Err(error)) = binding.poll(&mut context) else {
        panic!("it is open");
    };
    assert!(error.to_string().starts_with("caller: "), "{error}");
    assert!(error.to_string().contains("no tokio runtime"), "{error}");
}
