// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls between tasks succeed whoever drives: a runtime of one worker or of several, a future in
//! `block_on`, or a thread of the endpoint's own; with handlers in the accept loop and as tasks,
//! and beside handlers that block all workers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use smt::{Builder, Client, Server};
use tokio::runtime::{Builder as RuntimeBuilder, Runtime};
use tokio::task::JoinSet;

use crate::support::payload::payload;
use crate::support::{Credentials, echo};

const CALLERS: u64 = 50;
const CALLS: u64 = 100;

fn runtimes() -> [Runtime; 3] {
    let workers = |count| {
        let mut builder = RuntimeBuilder::new_multi_thread();
        builder.worker_threads(count).enable_all().build().unwrap()
    };
    let current = RuntimeBuilder::new_current_thread().enable_all().build();
    [current.unwrap(), workers(1), workers(4)]
}

/// How an endpoint is driven; by default as the runtime suggests.
#[derive(Clone, Copy, Default)]
struct Drive {
    has_io_thread: bool,
    spin: Option<Duration>,
}

/// Driven by a thread of its own.
const IO_THREAD: Drive = Drive { has_io_thread: true, spin: None };

impl Drive {
    fn choose<R>(self, builder: Builder<R>) -> Builder<R> {
        let builder = builder.io_thread(self.has_io_thread);
        match self.spin {
            Some(bound) => builder.spin(bound),
            None => builder,
        }
    }
}

async fn pair(drive: Drive) -> (Client, Server) {
    let credentials = Credentials::new();
    let server = drive.choose(credentials.server()).bind("127.0.0.1:0").await;
    let server = server.unwrap();
    let client = drive.choose(credentials.client());
    let client = client.connect(server.local_address());
    (client.await.unwrap(), server)
}

/// How a server answers.
#[derive(Clone, Copy, Debug)]
enum Handlers {
    Inline,
    Spawned,
}

async fn serve(server: Server, handlers: Handlers) {
    while let Some(request) = server.accept_request().await {
        match handlers {
            Handlers::Inline => echo(request),
            Handlers::Spawned => drop(tokio::spawn(async move { echo(request) })),
        }
    }
}

/// Callers that each call again when they have their reply, in messages of several lengths.
async fn call(client: &Client) {
    let mut callers = JoinSet::new();
    for number in 0..CALLERS {
        let client = client.clone();
        callers.spawn(async move {
            for call in 0..CALLS {
                let length = if call % 10 == 9 { 20_000 } else { 64 };
                let body = payload(number * CALLS + call, length);
                assert_eq!(client.call(body.clone()).await.unwrap(), body);
            }
        });
    }
    while let Some(outcome) = callers.join_next().await {
        outcome.unwrap();
    }
}

#[test]
fn every_runtime_drives_with_every_kind_of_handler() {
    for runtime in runtimes() {
        for handlers in [Handlers::Inline, Handlers::Spawned] {
            for has_io_thread in [false, true] {
                runtime.block_on(async {
                    let (client, server) = pair(Drive { has_io_thread, ..Drive::default() }).await;
                    tokio::spawn(serve(server, handlers));
                    call(&client).await;
                });
            }
        }
    }
}

#[test]
fn drivers_that_never_spin_serve_as_well() {
    for runtime in runtimes() {
        for has_io_thread in [false, true] {
            let drive = Drive { has_io_thread, spin: Some(Duration::ZERO) };
            runtime.block_on(async {
                let (client, server) = pair(drive).await;
                tokio::spawn(serve(server, Handlers::Spawned));
                call(&client).await;
            });
        }
    }
}

#[test]
fn future_in_block_on_leads_for_tasks_beside_it() {
    for runtime in runtimes() {
        for handlers in [Handlers::Inline, Handlers::Spawned] {
            runtime.block_on(async {
                let (client, server) = pair(Drive::default()).await;
                let shut_down = server.clone();
                let calling = tokio::spawn(async move {
                    call(&client).await;
                    shut_down.close(Duration::ZERO).await;
                });
                // The accept loop is what `block_on` polls.
                serve(server, handlers).await;
                calling.await.unwrap();
            });
        }
    }
}

/// A future that leads is dropped in the middle of it, again and again: others still get their
/// replies.
#[test]
fn futures_that_lead_may_be_dropped_at_any_time() {
    for runtime in runtimes() {
        runtime.block_on(async {
            let (client, server) = pair(Drive::default()).await;
            tokio::spawn(serve(server, Handlers::Inline));
            let beside = client.clone();
            let calling = tokio::spawn(async move { call(&beside).await });
            while !calling.is_finished() {
                let limit = Duration::from_micros(300);
                // It leads while nothing comes for it, and is dropped.
                let _ = tokio::time::timeout(limit, client.accept_request()).await;
                tokio::select! {
                    biased;
                    reply = client.call("beside") => assert_eq!(reply.unwrap(), "beside"),
                    () = tokio::task::yield_now() => {}
                }
            }
            calling.await.unwrap();
        });
    }
}

/// The future that led does something else for long: the runtime takes over.
#[test]
fn others_are_served_while_the_future_that_led_is_busy() {
    let [_, _, runtime] = runtimes();
    runtime.block_on(async {
        let (client, server) = pair(Drive::default()).await;
        tokio::spawn(serve(server, Handlers::Inline));
        for _ in 0..20 {
            // This call leads, and leaves the lead behind.
            assert_eq!(client.call("hi").await.unwrap(), "hi");
            let (beside, sender) = (client.clone(), std::sync::mpsc::channel());
            tokio::spawn(async move { sender.0.send(beside.call("beside").await.unwrap()) });
            // A thread that blocks polls nothing.
            assert_eq!(sender.1.recv().unwrap(), "beside");
        }
    });
}

/// Calls that have returned, and a place to wait for more of them.
#[derive(Default)]
struct Returned {
    count: Mutex<u64>,
    changed: Condvar,
    is_blocked: AtomicBool,
}

impl Returned {
    fn add(&self) {
        *self.count.lock().unwrap() += 1;
        self.changed.notify_all();
    }

    /// Blocks this worker until so many more have returned, or all.
    fn block(&self, more: u64) {
        let count = self.count.lock().unwrap();
        let enough = (*count + more).min(CALLERS * CALLS);
        let lacks = |count: &mut u64| *count < enough;
        // Far longer than calls take that are not held up.
        let limit = Duration::from_secs(30);
        let waited = self.changed.wait_timeout_while(count, limit, lacks);
        assert!(!waited.unwrap().1.timed_out(), "a blocked worker holds up others");
        self.is_blocked.store(false, Ordering::Relaxed);
    }
}

/// A task that blocks its worker holds up no other: not the driver, and not those who were told of
/// something and sit where that worker would wake them.
#[test]
fn calls_go_on_while_tasks_block_one_of_two_workers() {
    let mut builder = RuntimeBuilder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().unwrap();
    let (client, server) = runtime.block_on(pair(Drive::default()));
    runtime.spawn(serve(server, Handlers::Spawned));
    let returned = Arc::new(Returned::default());
    let callers = (0..CALLERS).map(|_| {
        let (client, returned) = (client.clone(), Arc::clone(&returned));
        runtime.spawn(async move {
            for _ in 0..CALLS {
                assert_eq!(client.call("hi").await.unwrap(), "hi");
                returned.add();
                if !returned.is_blocked.swap(true, Ordering::Relaxed) {
                    // It lies in the queue of this worker, beside those who were told of something.
                    let returned = Arc::clone(&returned);
                    tokio::spawn(async move { returned.block(20) });
                }
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        runtime.block_on(caller).unwrap();
    }
}

/// With a thread of its own an endpoint answers for a runtime whose only worker a handler blocks.
#[test]
fn io_thread_receives_while_handlers_block_all_workers() {
    let runtime =
        RuntimeBuilder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (client, server) = runtime.block_on(pair(IO_THREAD));
    let (blocked, unblock) = (std::sync::mpsc::channel(), std::sync::mpsc::channel::<()>());
    runtime.spawn(async move {
        blocked.0.send(()).unwrap();
        unblock.1.recv().unwrap();
    });
    blocked.1.recv().unwrap();
    // Elsewhere somebody calls: the request is received, and acknowledged, while no task runs.
    let other = RuntimeBuilder::new_current_thread().enable_all().build();
    other.unwrap().block_on(async {
        let sending = client.send("delivered");
        sending.await.unwrap();
    });
    assert_eq!(server.statistics().protocol.messages_delivered, 1);
    unblock.0.send(()).unwrap();
    let message = runtime.block_on(server.accept()).unwrap();
    assert_eq!(message.body(), "delivered");
}

#[test]
fn io_thread_ends_with_its_endpoint_and_frees_the_address() {
    let [runtime, ..] = runtimes();
    runtime.block_on(async {
        let (client, server) = pair(IO_THREAD).await;
        let address = server.local_address();
        client.close(Duration::ZERO).await;
        server.close(Duration::ZERO).await;
        std::net::UdpSocket::bind(address).unwrap();
    });
}
