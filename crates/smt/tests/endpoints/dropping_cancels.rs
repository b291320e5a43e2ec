// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A message that is dropped is given up, and the other side learns it.

use std::sync::mpsc;
use std::time::Duration;

use smt::{CallFailure, ErrorKind, Execution};

use crate::support::{Credentials, echo, eventually, on_every_runtime};

#[test]
fn dropping_a_call_tells_the_server() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let server = credentials.server().bind("127.0.0.1:0").await.unwrap();
        let client = credentials.client().connect(server.local_address()).await.unwrap();
        let call = tokio::spawn({
            let client = client.clone();
            async move { client.call("work").await }
        });
        let request = server.accept_request().await.unwrap();
        assert!(!request.is_cancelled());
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
        tokio::task::spawn_blocking(move || {
            eventually("cancelled", || request.is_cancelled());
            // A reply that finds the endpoint's lock taken waits for it, and is dropped then.
            if let Err(error) = request.reply("too late") {
                assert!(error.to_string().contains("the call is over"), "{error}");
            }
        })
        .await
        .unwrap();
        // The last handle of a server closes its sessions, and what has not left then is lost.
        let echoing = server.clone();
        tokio::spawn(async move { echo(echoing.accept_request().await.unwrap()) });
        assert_eq!(client.call("next").await.unwrap(), "next");
    });
}

#[test]
fn a_call_that_is_never_awaited_is_not_made() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let server = credentials.server().bind("127.0.0.1:0").await.unwrap();
        let client = credentials.client().connect(server.local_address()).await.unwrap();
        drop(client.call("never"));
        tokio::spawn(async move {
            while let Some(request) = server.accept_request().await {
                assert_eq!(request.body(), "made");
                echo(request);
            }
        });
        assert_eq!(client.call("made").await.unwrap(), "made");
    });
}

#[test]
fn an_accept_that_is_dropped_loses_nothing() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let server = credentials.server().bind("127.0.0.1:0").await.unwrap();
        let client = credentials.client().connect(server.local_address()).await.unwrap();
        let patient = tokio::spawn({
            let server = server.clone();
            async move {
                while let Some(request) = server.accept_request().await {
                    echo(request);
                }
            }
        });
        for _ in 0..200 {
            // It takes the first place in the queue, and goes.
            let hasty = tokio::time::timeout(Duration::ZERO, server.accept_request()).await;
            if let Ok(Some(request)) = hasty {
                echo(request);
            }
            let call = client.call("x").deadline(Duration::from_secs(5));
            assert_eq!(call.await.unwrap(), "x");
        }
        patient.abort();
    });
}

#[test]
fn a_session_that_closes_cancels_its_requests() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let client = crate::support::connect(&credentials, server.local_address());
    let (ended, end) = mpsc::channel();
    let calling = client.clone();
    std::thread::spawn(move || ended.send(calling.call("work").wait()).unwrap());
    let request = server.accept_request().unwrap();
    client.connect().unwrap().close();
    let error = end.recv().unwrap().unwrap_err();
    assert_eq!(error.execution(), Execution::MayHaveRun);
    eventually("cancelled", || {
        // No thread waits here: the background thread takes the news in.
        request.is_cancelled()
    });
}

#[test]
fn a_dropped_request_may_have_run() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    crate::support::serve(&server, 1, drop);
    let client = crate::support::connect(&credentials, server.local_address());
    let error = client.call("work").wait().unwrap_err();
    assert_eq!(error.execution(), Execution::MayHaveRun);
    let ErrorKind::Call(call) = error.kind() else { panic!("{error}") };
    assert_eq!(call.reason, CallFailure::Dropped);
    assert!(error.to_string().contains("may have run"), "{error}");
}

#[test]
fn a_refused_request_did_not_run_and_its_caller_learns_why() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    crate::support::serve(&server, 1, |request| request.refuse(403, "not for you"));
    let client = crate::support::connect(&credentials, server.local_address());
    let error = client.call("work").wait().unwrap_err();
    assert_eq!(error.execution(), Execution::DidNotRun);
    let ErrorKind::Call(call) = error.kind() else { panic!("{error}") };
    let CallFailure::Refused(failure) = &call.reason else { panic!("{error}") };
    assert_eq!((failure.code, failure.text.as_str()), (403, "not for you"));
    assert!(error.to_string().contains("not for you"), "{error}");
    assert!(error.to_string().contains("did not run"), "{error}");
    assert!(error.to_string().contains(&server.local_address().to_string()), "{error}");
}

#[test]
fn a_request_that_is_given_up_ends_the_work_that_is_selected_against_it() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let server = credentials.server().bind("127.0.0.1:0").await.unwrap();
        let client = credentials.client().connect(server.local_address()).await;
        let client = client.unwrap();
        for is_closed in [false, true] {
            let calling = client.clone();
            let limit = Duration::from_secs(60);
            let call = tokio::spawn(async move { calling.call("work").deadline(limit).await });
            let request = server.accept_request().await.unwrap();
            let left = request.deadline().unwrap() - std::time::Instant::now();
            assert!(left <= limit && left > limit / 2);
            let cancelled = tokio::spawn(request.cancelled());
            match is_closed {
                false => call.abort(),
                true => client.connect().await.unwrap().close(),
            }
            cancelled.await.unwrap();
            assert!(request.is_cancelled());
        }
    });
}

#[test]
fn a_failed_request_may_have_run_and_its_caller_learns_code_and_text() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let server = credentials.server().bind("127.0.0.1:0").await.unwrap();
        let client = credentials.client().connect(server.local_address()).await;
        let client = client.unwrap();
        tokio::spawn(async move {
            while let Some(request) = server.accept_request().await {
                request.fail(7, "the disk is full");
            }
        });
        let error = client.call("work").await.unwrap_err();
        assert_eq!(error.execution(), Execution::MayHaveRun);
        let ErrorKind::Call(call) = error.kind() else { panic!("{error}") };
        let CallFailure::Failed(failure) = &call.reason else { panic!("{error}") };
        assert_eq!((failure.code, failure.text.as_str()), (7, "the disk is full"));
    });
}
