// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Back-pressure: more calls than the peer's window of ids, or its memory, has room for.

use std::future::IntoFuture;
use std::pin::pin;
use std::task::Poll;

use smt::{Builder, Bytes, ConnectError, ErrorKind, blocking};

use crate::support::payload::payload;
use crate::support::polled_pair::{PolledClient, PolledServer};
use crate::support::{Credentials, assert_echo, connect, echo, on_every_runtime, serve};

fn small_window<R>(builder: Builder<R>) -> Builder<R> {
    builder.configure(|config| config.window = 64)
}

#[test]
fn five_hundred_threads_share_64_ids() {
    let credentials = Credentials::new();
    let server: blocking::Server =
        small_window(credentials.server()).bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 2, echo);
    let client = connect(&credentials, server.local_address());
    std::thread::scope(|scope| {
        for thread in 0..500_u64 {
            let client = &client;
            scope.spawn(move || {
                for round in 0..10 {
                    assert_echo(client, payload(thread, (thread * 37 + round) as usize % 4_000));
                }
            });
        }
    });
}

#[test]
fn ten_thousand_tasks_share_64_ids() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let server = small_window(credentials.server()).bind("127.0.0.1:0").await.unwrap();
        let client = credentials.client().connect(server.local_address()).await.unwrap();
        tokio::spawn(async move {
            while let Some(request) = server.accept_request().await {
                echo(request);
            }
        });
        let calls: Vec<_> = (0..10_000)
            .map(|number| {
                let client = client.clone();
                tokio::spawn(async move {
                    let body = payload(number, number as usize % 2_000);
                    assert!(client.call(body.clone()).await.unwrap() == body);
                })
            })
            .collect();
        for call in calls {
            call.await.unwrap();
        }
    });
}

#[test]
fn an_event_loop_is_told_to_wait() {
    let credentials = Credentials::new();
    let server = small_window(credentials.server()).bind_polled("127.0.0.1:0").unwrap();
    let server = PolledServer::echoing(server);
    let endpoint = credentials.client().open_polled("127.0.0.1:0").unwrap();
    let mut client = PolledClient::new(endpoint, server.address);
    // `begin` waits for room.
    let calls: Vec<_> = (0..2_000_u64)
        .map(|number| (number, client.start_call(payload(number, 100), None)))
        .collect();
    for (number, rpc) in calls {
        assert!(client.finish(rpc).unwrap() == payload(number, 100));
    }
}

#[test]
fn large_messages_share_little_memory() {
    let credentials = Credentials::new();
    let server = credentials
        .server()
        .message_limit(3_000_000)
        .configure(|config| config.memory_max = 3_000_000)
        .bind_blocking("127.0.0.1:0")
        .unwrap();
    serve(&server, 2, echo);
    let client = connect(&credentials, server.local_address());
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let client = &client;
            scope.spawn(move || assert_echo(client, payload(thread, 2_000_000)));
        }
    });
    assert_eq!(server.statistics().memory, 0);
}

/// Polls a future once.
async fn poll_once<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Poll<T> {
    std::future::poll_fn(|context| Poll::Ready(std::pin::Pin::new(&mut *future).poll(context)))
        .await
}

#[tokio::test]
async fn a_client_is_ready_when_a_call_would_begin_at_once() {
    let credentials = Credentials::new();
    let server = small_window(credentials.server());
    let server = server.bind("127.0.0.1:0").await.unwrap();
    let address = server.local_address();
    let mut client = credentials.client().connect(address).await.unwrap();
    client.ready().await.unwrap();
    let calls = (0..64).map(|_| client.call("one of many").into_future());
    let mut calls: Vec<_> = calls.collect();
    for call in &mut calls {
        assert!(poll_once(call).await.is_pending());
    }
    // The only thread has not driven the endpoint meanwhile: no answer may have come.
    let waiting = client.clone();
    let mut ready = pin!(waiting.ready());
    assert!(poll_once(&mut ready).await.is_pending());
    let polled = std::future::poll_fn(|context| Poll::Ready(client.poll_ready(context)));
    assert!(polled.await.is_pending());
    tokio::spawn(async move {
        while let Some(request) = server.accept_request().await {
            echo(request);
        }
    });
    ready.await.unwrap();
    std::future::poll_fn(|context| client.poll_ready(context)).await.unwrap();
    for call in calls {
        assert_eq!(call.await.unwrap(), "one of many");
    }
    waiting.close(std::time::Duration::from_secs(5)).await;
    let error = client.ready().await.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Connect(ConnectError::ShutDown));
}

#[test]
fn threads_that_wait_until_the_client_is_ready_are_all_served() {
    let credentials = Credentials::new();
    let server = small_window(credentials.server());
    let server = server.bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 2, echo);
    let client = connect(&credentials, server.local_address());
    std::thread::scope(|scope| {
        for thread in 0..200 {
            let client = &client;
            scope.spawn(move || {
                client.ready().unwrap();
                assert_echo(client, payload(thread, 100));
            });
        }
    });
}

#[test]
fn a_client_is_a_service_of_tower() {
    use tower_service::Service;
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let server = small_window(credentials.server());
        let server = server.bind("127.0.0.1:0").await.unwrap();
        let address = server.local_address();
        tokio::spawn(async move {
            while let Some(request) = server.accept_request().await {
                echo(request);
            }
        });
        let client = credentials.client().connect(address).await.unwrap();
        let calls = (0..500).map(|number| {
            let mut service = client.clone();
            tokio::spawn(async move {
                std::future::poll_fn(|context| Service::<Bytes>::poll_ready(&mut service, context))
                    .await
                    .unwrap();
                let body = payload(number, 100);
                let reply = Service::call(&mut service, body.clone()).await.unwrap();
                assert_eq!(reply.body, body);
            })
        });
        for call in calls.collect::<Vec<_>>() {
            call.await.unwrap();
        }
    });
}
