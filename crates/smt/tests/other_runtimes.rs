// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Endpoints run on a runtime that is not tokio: here the executor and the reactor of smol, over
//! real sockets.
#![cfg(feature = "async")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use async_executor::Executor;
use async_io::Async;
use smt::runtime::{Runtime, Timer, Watched};
use smt::{Client, ConnectError, ErrorKind, Server};

use support::payload::payload;
use support::{Credentials, echo, echo_server, take_over};

/// The executor and the reactor of smol.
#[derive(Debug)]
struct Smol {
    executor: Executor<'static>,
    workers: usize,
}

impl Runtime for Smol {
    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.executor.spawn(task).detach();
    }

    fn timer(&self, after: Duration) -> io::Result<Pin<Box<dyn Timer>>> {
        Ok(Box::pin(SmolTimer(async_io::Timer::after(after))))
    }

    fn watch(&self, descriptor: OwnedFd) -> io::Result<Box<dyn Watched>> {
        Ok(Box::new(SmolWatched(Async::new(descriptor)?)))
    }

    fn workers(&self) -> usize {
        self.workers
    }
}

struct SmolTimer(async_io::Timer);

impl Timer for SmolTimer {
    fn reset(mut self: Pin<&mut Self>, after: Duration) {
        self.0.set_after(after);
    }

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(context).map(drop)
    }
}

struct SmolWatched(Async<OwnedFd>);

impl Watched for SmolWatched {
    fn poll_readable(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_readable(context)
    }
}

impl Smol {
    fn new(workers: usize) -> Arc<Self> {
        let executor = Executor::new();
        Arc::new(Self { executor, workers })
    }
}

/// Runs a test in a task of an executor of so many threads.
fn on_smol<T: Future<Output = ()> + Send + 'static>(
    workers: usize,
    test: impl FnOnce(Arc<Smol>) -> T,
) {
    let smol = Smol::new(workers);
    let test = smol.executor.spawn(test(Arc::clone(&smol)));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 1..workers {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let a_while = async_io::Timer::after(Duration::from_millis(1));
                    async_io::block_on(smol.executor.run(a_while));
                }
            });
        }
        let test = async_io::block_on(smol.executor.run(async { catch(test).await }));
        is_over.store(true, Ordering::Relaxed);
        test.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// The outcome of a future that may panic.
async fn catch<T>(future: impl Future<Output = T>) -> std::thread::Result<T> {
    let mut future = pin!(future);
    std::future::poll_fn(move |context| {
        let poll = || future.as_mut().poll(context);
        match catch_unwind(AssertUnwindSafe(poll)) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    })
    .await
}

async fn pair(smol: &Arc<Smol>, spin: Option<Duration>) -> (Client, Server) {
    let credentials = Credentials::new();
    let (mut server, mut client) = (credentials.server(), credentials.client());
    if let Some(bound) = spin {
        (server, client) = (server.spin(bound), client.spin(bound));
    }
    // A name, so that it is resolved.
    let server = server.runtime(smol.clone()).bind("localhost:0").await;
    let server = server.unwrap();
    let client = client.runtime(smol.clone()).connect(server.local_address());
    (client.await.unwrap(), server)
}

#[test]
fn tasks_call_each_other_on_a_runtime_that_is_not_tokio() {
    for workers in [1, 3] {
        for spin in [None, Some(Duration::ZERO)] {
            on_smol(workers, move |smol| async move {
                let (client, server) = pair(&smol, spin).await;
                let handlers = smol.clone();
                let serving = smol.executor.spawn(async move {
                    while let Some(request) = server.accept_request().await {
                        let answer = async move { echo(request) };
                        handlers.executor.spawn(answer).detach();
                    }
                });
                let callers = (0..8).map(|caller| {
                    let client = client.clone();
                    smol.executor.spawn(async move {
                        for (call, size) in [8, 1_000, 50_000, 300_000].repeat(8).iter().enumerate()
                        {
                            let body = payload(caller * 100 + call as u64, *size);
                            let reply = client.call(body.clone()).await.unwrap();
                            assert!(reply == body, "the reply of {size} B differs");
                        }
                    })
                });
                for caller in callers.collect::<Vec<_>>() {
                    caller.await;
                }
                client.close(Duration::from_secs(10)).await;
                drop(serving);
            });
        }
    }
}

#[test]
fn an_end_waits_for_its_limit_and_frees_the_address_on_a_runtime_that_is_not_tokio() {
    on_smol(2, |smol| async move {
        let (client, server) = pair(&smol, None).await;
        let calling = smol.executor.spawn(async move { client.call("hi").await });
        let request = server.accept_request().await.unwrap();
        let address = server.local_address();
        // The request is not answered.
        server.close(Duration::from_millis(20)).await;
        take_over(address);
        assert!(calling.await.is_err());
        drop(request);
    });
}

#[test]
fn calls_fail_when_the_runtime_has_dropped_the_driver() {
    let credentials = Credentials::new();
    let server = echo_server(&credentials);
    let ending = Arc::new(Ending::default());
    let builder = credentials.client().runtime(ending.clone());
    let connecting = builder.connect(server.local_address());
    let client = async_io::block_on(ending.run(connecting)).unwrap();
    ending.end();
    let error = async_io::block_on(async { client.call("hi").await }).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Connect(ConnectError::Undriven));
}

/// A runtime that ends before its endpoints: it polls the one task that it has beside another
/// future, as long as that is polled.
#[derive(Default)]
struct Ending(Mutex<Vec<Pin<Box<dyn Future<Output = ()> + Send>>>>);

impl Ending {
    async fn run<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        std::future::poll_fn(move |context| {
            let poll = future.as_mut().poll(context);
            let mut tasks = self.0.lock().unwrap();
            tasks.retain_mut(|task| task.as_mut().poll(context).is_pending());
            poll
        })
        .await
    }

    fn end(&self) {
        let tasks = std::mem::take(&mut *self.0.lock().unwrap());
        drop(tasks);
    }
}

impl std::fmt::Debug for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ending")
    }
}

impl Runtime for Ending {
    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.0.lock().unwrap().push(task);
    }

    fn timer(&self, after: Duration) -> io::Result<Pin<Box<dyn Timer>>> {
        Ok(Box::pin(SmolTimer(async_io::Timer::after(after))))
    }

    fn watch(&self, descriptor: OwnedFd) -> io::Result<Box<dyn Watched>> {
        Ok(Box::new(SmolWatched(Async::new(descriptor)?)))
    }
}

#[test]
fn a_runtime_without_means_is_refused_in_plain_words() {
    for has_watch in [false, true] {
        let bare: Arc<dyn Runtime> = Arc::new(Bare { has_watch });
        let binding = Credentials::new().server().runtime(bare).bind("127.0.0.1:0");
        let error = async_io::block_on(binding).unwrap_err();
        let missing = if has_watch { "no timers" } else { "watches no sockets" };
        let text = error.to_string();
        assert!(text.starts_with("caller: ") && text.contains(missing), "{text}");
    }
}

/// A runtime that has only a part of what drives an endpoint.
#[derive(Debug)]
struct Bare {
    has_watch: bool,
}

impl Runtime for Bare {
    fn spawn(&self, _: Pin<Box<dyn Future<Output = ()> + Send>>) {
        panic!("it cannot drive");
    }

    fn timer(&self, _: Duration) -> io::Result<Pin<Box<dyn Timer>>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn watch(&self, descriptor: OwnedFd) -> io::Result<Box<dyn Watched>> {
        match self.has_watch {
            true => Ok(Box::new(SmolWatched(Async::new(descriptor)?))),
            false => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}
