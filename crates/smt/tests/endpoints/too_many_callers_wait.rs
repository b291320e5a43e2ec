// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Back-pressure: more calls than the peer's window of ids, or its memory, has room for.

use smt::{Builder, blocking};

use crate::support::payload::payload;
use crate::support::polled_pair::{PolledClient, PolledServer};
use crate::support::{Credentials, assert_echo, connect, echo, on_every_runtime, serve};

fn small_window(builder: Builder) -> Builder {
    builder.configure(|config| config.window = 64)
}

#[test]
fn five_hundred_threads_share_64_ids() {
    let credentials = Credentials::new();
    let server: blocking::Server = small_window(credentials.server())
        .bind_blocking("127.0.0.1:0")
        .unwrap();
    serve(&server, 2, echo);
    let client = connect(&credentials, server.local_address());
    std::thread::scope(|scope| {
        for thread in 0..500_u64 {
            let client = &client;
            scope.spawn(move || {
                for round in 0..10 {
                    assert_echo(
                        client,
                        payload(thread, (thread * 37 + round) as usize % 4_000),
                    );
                }
            });
        }
    });
}

#[test]
fn ten_thousand_tasks_share_64_ids() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let server = small_window(credentials.server())
            .bind("127.0.0.1:0")
            .await
            .unwrap();
        let client = credentials
            .client()
            .connect(server.local_address())
            .await
            .unwrap();
        tokio::spawn(async move {
            while let Some(request) = server.accept().await {
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
    let server = small_window(credentials.server())
        .bind_polled("127.0.0.1:0")
        .unwrap();
    let server = PolledServer::echoing(server);
    let endpoint = credentials.client().connect_polled(server.address).unwrap();
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
