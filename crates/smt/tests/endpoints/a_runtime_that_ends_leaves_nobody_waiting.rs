// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The tokio runtime that an endpoint was opened on ends, lacks its drivers, or is none: whoever
//! waits learns of it.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use smt::runtime::TokioRuntime;
use smt::{ConnectError, ErrorKind, Fault, OpenError, Refused};
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
    assert_eq!(*in_session.kind(), ErrorKind::Refused(Refused::NoSession));
    let elsewhere = Runtime::new().unwrap();
    let anew = elsewhere.block_on(async { client.call("hi").await });
    let expected = ErrorKind::Connect(ConnectError::Undriven);
    assert_eq!(*anew.unwrap_err().kind(), expected);
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
    let request = server.accept_request().unwrap();
    drop(runtime);
    let error = waiting.join().unwrap().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Call(_)), "{error}");
    drop(request);
}

/// The error of a client that is opened on a runtime which was built like this.
fn refusal_of(runtime: &mut Builder) -> OpenError {
    let credentials = Credentials::new();
    let server = echo_server(&credentials);
    let runtime = runtime.build().unwrap();
    let connecting = credentials.client().connect(server.local_address());
    runtime.block_on(connecting).unwrap_err()
}

#[test]
fn a_runtime_that_was_built_without_its_drivers_is_refused_with_the_remedy() {
    for make in [Builder::new_current_thread, Builder::new_multi_thread] {
        let without_io = refusal_of(make().enable_time());
        let without_timers = refusal_of(make().enable_io());
        for (error, remedy) in [(without_io, "enable_io"), (without_timers, "enable_time")] {
            assert_eq!(error.fault(), Fault::Caller, "{error}");
            assert!(!error.is_transient(), "{error}");
            assert!(error.to_string().contains(remedy), "{error}");
        }
    }
}

#[test]
fn a_thread_of_its_own_drives_an_endpoint_on_a_runtime_without_drivers() {
    let credentials = Credentials::new();
    let server = echo_server(&credentials);
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let client = credentials.client().io_thread(true);
        let client = client.connect(server.local_address()).await.unwrap();
        assert_eq!(client.call("hi").await.unwrap(), "hi");
    });
}

#[test]
fn an_endpoint_is_opened_outside_of_the_runtime_that_is_named() {
    let credentials = Credentials::new();
    let server = echo_server(&credentials);
    let runtime = Runtime::new().unwrap();
    let builder = credentials.client();
    let builder = builder.runtime(TokioRuntime::of(runtime.handle()));
    let client = builder.connect_lazy(server.local_address()).unwrap();
    let reply = runtime.block_on(async { client.call("hi").await });
    assert_eq!(reply.unwrap(), "hi");
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
