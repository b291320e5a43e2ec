// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Shutdown: new requests are refused, those in progress are answered, then all sessions close.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use smt::{
    CallError, CallFailure, ConnectError, Error, ErrorKind, Execution, OpenError, Unavailability,
};

use crate::support::{Credentials, connect, eventually, on_every_runtime, serve, within};

const LONG: Duration = Duration::from_secs(30);

/// Calls until the server refuses: the shutdown has begun.
fn call_until_refused(client: &smt::blocking::Client) -> Error {
    loop {
        if let Err(error) = client.call("probe").deadline(Duration::from_millis(20)).wait()
            && !error.to_string().contains("deadline")
        {
            return error;
        }
    }
}

#[test]
fn a_shutdown_of_threads_finishes_what_runs() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let client = connect(&credentials, server.local_address());
    let (done, reply) = mpsc::channel();
    let calling = client.clone();
    std::thread::spawn(move || done.send(calling.call("work").wait()).unwrap());
    let request = server.accept_request().unwrap();
    let shutting = server.clone();
    let shutdown = std::thread::spawn(move || shutting.close(LONG));
    let error = call_until_refused(&client);
    assert_eq!(error.execution(), Execution::DidNotRun, "{error}");
    assert!(!shutdown.is_finished());
    request.reply("done").unwrap();
    assert_eq!(reply.recv().unwrap().unwrap(), "done");
    shutdown.join().unwrap();
    // Messages that were accepted before may still be in the queue, and are of no use any more.
    while let Some(late) = server.accept_request() {
        assert_eq!(late.body(), "probe");
    }
    assert_eq!(server.statistics().sessions, 0);
}

/// A handler whose reply has no end of its own.
async fn watch(request: smt::Request) {
    let mut events = request.part_sender();
    loop {
        tokio::select! {
            sent = events.send("event") => sent.unwrap(),
            () = request.closing() => break,
        }
    }
    assert!(request.is_closing());
    request.reply("the server closes").unwrap();
}

#[test]
fn an_endless_reply_ends_when_its_server_closes() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let server = credentials.server().bind("127.0.0.1:0").await.unwrap();
        let client = credentials.client().connect(server.local_address()).await.unwrap();
        let mut events = client.call("watch").reply_in_parts().await.unwrap();
        let request = server.accept_request().await.unwrap();
        assert!(!request.is_closing());
        let watching = tokio::spawn(watch(request));
        assert_eq!(events.next_part().await.unwrap().unwrap(), "event");
        let shutting = server.clone();
        let shutdown = tokio::spawn(async move { shutting.close(LONG).await });
        while events.next_part().await.unwrap().is_some() {}
        assert_eq!(events.reply().await.unwrap().body, "the server closes");
        watching.await.unwrap();
        shutdown.await.unwrap();
    });
}

#[test]
fn a_shutdown_of_tasks_finishes_what_runs() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let server = credentials.server().bind("127.0.0.1:0").await.unwrap();
        let client = credentials.client().connect(server.local_address()).await.unwrap();
        let calling = client.clone();
        let call = tokio::spawn(async move { calling.call("work").await });
        let request = server.accept_request().await.unwrap();
        let shutting = server.clone();
        let shutdown = tokio::spawn(async move { shutting.close(LONG).await });
        let refused = loop {
            let probe = client.call("probe").deadline(Duration::from_millis(20)).await;
            match probe {
                Err(error) if !error.to_string().contains("deadline") => break error,
                _ => {}
            }
        };
        assert_eq!(refused.execution(), Execution::DidNotRun, "{refused}");
        assert!(!shutdown.is_finished());
        request.reply("done").unwrap();
        assert_eq!(call.await.unwrap().unwrap(), "done");
        shutdown.await.unwrap();
        while let Some(late) = server.accept_request().await {
            assert_eq!(late.body(), "probe");
        }
    });
}

/// Calls that no acceptor takes before the shutdown.
const WAITING: u64 = 3;

fn assert_did_not_run(error: &Error) {
    assert!(
        matches!(
            error.kind(),
            ErrorKind::Call(CallError { reason: CallFailure::ShuttingDown, .. })
        ),
        "{error}"
    );
    assert_eq!(error.execution(), Execution::DidNotRun, "{error}");
}

#[test]
fn a_shutdown_of_threads_refuses_requests_that_nobody_has_accepted() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let client = connect(&credentials, server.local_address());
    std::thread::scope(|scope| {
        let calls: Vec<_> =
            (0..WAITING).map(|_| scope.spawn(|| client.call("work").wait())).collect();
        eventually("delivered", || server.statistics().protocol.messages_delivered == WAITING);
        server.close(LONG);
        for call in calls {
            assert_did_not_run(&call.join().unwrap().unwrap_err());
        }
    });
    assert!(server.accept_request().is_none());
}

#[test]
fn a_shutdown_of_tasks_refuses_requests_that_nobody_has_accepted() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let server = credentials.server().bind("127.0.0.1:0").await.unwrap();
        let address = server.local_address();
        let client = credentials.client().connect(address).await.unwrap();
        let calls: Vec<_> = (0..=WAITING)
            .map(|number| {
                let client = client.clone();
                tokio::spawn(async move { client.call(number.to_be_bytes()).await })
            })
            .collect();
        while server.statistics().protocol.messages_delivered <= WAITING {
            tokio::task::yield_now().await;
        }
        // The acceptor of the first takes the others with it.
        let request = server.accept_request().await.unwrap();
        // The tasks of a runtime with several workers call in any order.
        let accepted = u64::from_be_bytes(request.body()[..].try_into().unwrap());
        let shutting = server.clone();
        let shutdown = tokio::spawn(async move { shutting.close(LONG).await });
        let mut answers = Vec::new();
        for (number, call) in (0..).zip(calls) {
            match number == accepted {
                true => answers.push(call),
                false => assert_did_not_run(&call.await.unwrap().unwrap_err()),
            }
        }
        request.reply("done").unwrap();
        assert_eq!(answers.remove(0).await.unwrap().unwrap(), "done");
        shutdown.await.unwrap();
        assert!(server.accept_request().await.is_none());
    });
}

#[test]
fn the_limit_of_a_shutdown_cuts_off_what_does_not_end() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let client = connect(&credentials, server.local_address());
    let (done, reply) = mpsc::channel();
    std::thread::spawn(move || done.send(client.call("work").wait()).unwrap());
    let request = server.accept_request().unwrap();
    let began = Instant::now();
    server.close(Duration::from_millis(100));
    let took = began.elapsed();
    assert!(
        took >= Duration::from_millis(100) && took < within(Duration::from_millis(600)),
        "{took:?}"
    );
    let error = reply.recv().unwrap().unwrap_err();
    assert!(error.to_string().contains("shutting down"), "{error}");
    assert!(error.to_string().contains("may have run"), "{error}");
    eventually("cancelled", || request.is_cancelled());
    assert!(server.accept_request().is_none());
}

#[test]
fn new_clients_learn_why_they_are_not_taken() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let address = server.local_address();
    let client = connect(&credentials, address);
    let calling = client.clone();
    let call = std::thread::spawn(move || calling.call("work").wait());
    let request = server.accept_request().unwrap();
    let shutting = server.clone();
    let shutdown = std::thread::spawn(move || shutting.close(LONG));
    call_until_refused(&client);
    let error = credentials.client().connect_blocking(address).unwrap_err();
    let OpenError::Connect(error) = error else {
        panic!("{error}");
    };
    let expected = ConnectError::Unavailable(Unavailability::ShuttingDown);
    assert_eq!(*error.kind(), ErrorKind::Connect(expected));
    request.reply("done").unwrap();
    assert_eq!(call.join().unwrap().unwrap(), "done");
    shutdown.join().unwrap();
}

/// One of them still has a request; those that have none answer clients until it is done.
#[test]
fn a_shutdown_of_shards_finishes_what_runs() {
    let credentials = Credentials::new();
    let shards = credentials.server().bind_shards_blocking("127.0.0.1:0", 2);
    let shards = shards.unwrap();
    let address = shards[0].local_address();
    let (begun, requests) = mpsc::channel();
    for shard in shards.iter() {
        let begun = begun.clone();
        serve(shard, 1, move |request| begun.send(request).unwrap());
    }
    let client = connect(&credentials, address);
    let call = std::thread::spawn(move || client.call("work").wait());
    let request = requests.recv().unwrap();
    std::thread::scope(|scope| {
        let shutdown = scope.spawn(|| shards.close(LONG));
        eventually("each shard turns clients away", || {
            let refused = credentials.client().connect_blocking(address);
            let turns_away =
                |shard: &smt::blocking::Server| shard.statistics().protocol.unavailable_sent > 0;
            refused.is_err() && shards.iter().all(turns_away)
        });
        assert!(!shutdown.is_finished());
        request.reply("done").unwrap();
    });
    assert_eq!(call.join().unwrap().unwrap(), "done");
}

#[test]
fn an_idle_server_shuts_down_at_once() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let accepting = server.clone();
    let acceptor = std::thread::spawn(move || accepting.accept_request().is_none());
    let began = Instant::now();
    server.close(LONG);
    assert!(began.elapsed() < within(Duration::from_millis(500)));
    assert!(acceptor.join().unwrap());
    assert!(began.elapsed() < within(Duration::from_millis(500)), "{:?}", began.elapsed());
}
