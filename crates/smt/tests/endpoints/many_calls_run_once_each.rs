// SPDX-License-Identifier: Apache-2.0 OR MIT
//! 10,000 mixed calls: each is executed once, and each caller gets its own reply.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use smt::{Builder, Request, TlsServer, blocking};

use crate::support::payload::{is_payload, number_of, payload};
use crate::support::polled_pair::{PolledClient, PolledServer};
use crate::support::random::{Random, seed};
use crate::support::{Credentials, connect, on_every_runtime, serve};

const CALLS: u64 = 10_000;
const LARGEST: usize = 300_000;

/// How often each request was executed, by its number.
type Executions = Arc<Mutex<HashMap<u64, u32>>>;

fn execute(executions: &Executions, request: Request) {
    *executions.lock().unwrap().entry(number_of(request.body())).or_default() += 1;
    let body = request.body().clone();
    request.reply(body).unwrap();
}

fn assert_once_each(executions: &Executions) {
    let executions = executions.lock().unwrap();
    assert_eq!(executions.len() as u64, CALLS);
    assert!((0..CALLS).all(|number| executions[&number] == 1));
}

fn counting_server(builder: Builder<TlsServer>, threads: usize) -> (blocking::Server, Executions) {
    let executions = Executions::default();
    let server = builder.bind_blocking("127.0.0.1:0").unwrap();
    let counted = Arc::clone(&executions);
    serve(&server, threads, move |request| execute(&counted, request));
    (server, executions)
}

fn size_of(seed: u64, number: u64) -> usize {
    8 + Random::new(seed ^ (number << 20)).size(LARGEST)
}

#[test]
fn calls_from_threads_that_share_one_client_run_once_each() {
    let (seed, credentials) = (seed(), Credentials::new());
    for threads in [1, 4, 32] {
        let (server, executions) = counting_server(credentials.server(), threads.min(4));
        let client = connect(&credentials, server.local_address());
        std::thread::scope(|scope| {
            for thread in 0..threads as u64 {
                let client = client.clone();
                scope.spawn(move || {
                    for number in (thread..CALLS).step_by(threads) {
                        let size = size_of(seed, number);
                        let reply = client.call(payload(number, size)).wait().unwrap();
                        assert!(is_payload(&reply, number, size), "{number}");
                    }
                });
            }
        });
        assert_once_each(&executions);
    }
}

#[test]
fn calls_from_many_clients_run_once_each() {
    let (seed, credentials) = (seed(), Credentials::new());
    let (server, executions) = counting_server(credentials.server(), 2);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let client = connect(&credentials, server.local_address());
            scope.spawn(move || {
                for number in (thread..CALLS).step_by(8) {
                    let size = size_of(seed, number);
                    let reply = client.call(payload(number, size)).wait().unwrap();
                    assert!(is_payload(&reply, number, size), "{number}");
                }
            });
        }
    });
    assert_once_each(&executions);
}

#[test]
fn calls_from_tasks_all_at_once_run_once_each() {
    on_every_runtime(async || {
        let (seed, credentials) = (seed(), Credentials::new());
        let executions = Executions::default();
        let server = credentials.server().bind("127.0.0.1:0").await.unwrap();
        let address = server.local_address();
        for _ in 0..4 {
            let (server, counted) = (server.clone(), Arc::clone(&executions));
            tokio::spawn(async move {
                while let Some(request) = server.accept_request().await {
                    execute(&counted, request);
                }
            });
        }
        let client = credentials.client().connect(address).await.unwrap();
        let calls: Vec<_> = (0..CALLS)
            .map(|number| {
                let client = client.clone();
                tokio::spawn(async move {
                    let size = size_of(seed, number);
                    let reply = client.call(payload(number, size)).await.unwrap();
                    assert!(is_payload(&reply, number, size), "{number}");
                })
            })
            .collect();
        for call in calls {
            call.await.unwrap();
        }
        assert_once_each(&executions);
        assert_eq!(client.statistics().memory, 0);
    });
}

#[test]
fn calls_from_an_event_loop_64_at_a_time_run_once_each() {
    let (seed, credentials) = (seed(), Credentials::new());
    let server = PolledServer::echoing(credentials.server().bind_polled("127.0.0.1:0").unwrap());
    let endpoint = credentials.client().open_polled("127.0.0.1:0").unwrap();
    let mut client = PolledClient::new(endpoint, server.address);
    for first in (0..CALLS).step_by(64) {
        let numbers = first..CALLS.min(first + 64);
        let calls: Vec<_> = numbers
            .map(|number| {
                let size = size_of(seed, number);
                (number, size, client.start_call(payload(number, size), None))
            })
            .collect();
        for (number, size, rpc) in calls {
            assert!(is_payload(&client.finish(rpc).unwrap(), number, size), "{number}");
        }
    }
}
