// SPDX-License-Identifier: Apache-2.0 OR MIT
//! After the handshake either side may start RPCs.

use smt::ErrorKind;

use crate::support::payload::payload;
use crate::support::{Credentials, connect, echo, on_every_runtime, serve};

#[test]
fn a_server_calls_its_client_while_it_is_called() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 2, |request| {
        let back = request.session().call_blocking(request.body().clone()).wait().unwrap();
        request.reply(back).unwrap();
    });
    let client = connect(&credentials, server.local_address());
    for _ in 0..2 {
        let answering = client.clone();
        std::thread::spawn(move || {
            while let Some(request) = answering.accept_request() {
                echo(request);
            }
        });
    }
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let client = &client;
            scope.spawn(move || {
                for round in 0..250 {
                    let body = payload(round, (round as usize * 211) % 20_000 + thread);
                    assert!(client.call(body.clone()).wait().unwrap() == body);
                }
            });
        }
    });
}

#[test]
fn a_server_calls_its_client_while_it_is_called_with_tokio() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let server = credentials.server().bind("127.0.0.1:0").await.unwrap();
        let client = credentials.client().connect(server.local_address()).await.unwrap();
        tokio::spawn(async move {
            while let Some(request) = server.accept_request().await {
                tokio::spawn(async move {
                    let back = request.session().call(request.body().clone()).await.unwrap();
                    request.reply(back)
                });
            }
        });
        let answering = client.clone();
        tokio::spawn(async move {
            while let Some(request) = answering.accept_request().await {
                echo(request);
            }
        });
        let calls = (0..500).map(|number| {
            let client = client.clone();
            tokio::spawn(async move {
                let body = payload(number, 3_000);
                assert!(client.call(body.clone()).await.unwrap() == body);
            })
        });
        for call in calls.collect::<Vec<_>>() {
            call.await.unwrap();
        }
    });
}

#[test]
fn a_thread_may_wait_at_an_endpoint_that_a_task_drives() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let server = credentials.server().bind("127.0.0.1:0").await.unwrap();
        let client = credentials.client().connect(server.local_address()).await.unwrap();
        tokio::spawn(async move {
            while let Some(request) = server.accept_request().await {
                echo(request);
            }
        });
        let session = client.connect().await.unwrap();
        let calls = tokio::task::spawn_blocking(move || {
            for number in 0..100 {
                let body = payload(number, 10_000);
                assert!(session.call_blocking(body.clone()).wait().unwrap() == body);
            }
        });
        calls.await.unwrap();
    });
}

#[test]
fn a_session_that_has_ended_takes_no_calls() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let client = connect(&credentials, server.local_address());
    let session = client.connect().unwrap();
    session.close();
    let error = session.call_blocking("x").wait().unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Refused(smt::Refused::NoSession));
    assert_eq!(session.peer().address, server.local_address());
}
