// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A reply that was given before the last handle goes arrives: CLOSE leaves behind it.

use std::time::Duration;

use smt::polled::Event;
use smt::{Client, Request, Server};

use crate::support::polled_pair::{turn, watch};
use crate::support::{Credentials, connect};

/// Four callers whose requests come together, and the requests.
async fn four_requests(server: &Server, client: &Client) -> (Vec<Request>, Calls) {
    let calls = (0..4).map(|_| client.clone());
    let calls = calls.map(|client| tokio::spawn(async move { client.call("hi").await }));
    let calls = calls.collect();
    let mut requests = Vec::new();
    while requests.len() < 4 {
        requests.push(server.accept_request().await.unwrap());
    }
    (requests, calls)
}

type Calls = Vec<tokio::task::JoinHandle<Result<bytes::Bytes, smt::Error>>>;

async fn of_tasks() {
    let credentials = Credentials::new();
    for _ in 0..10 {
        let server = credentials.server().bind("127.0.0.1:0").await.unwrap();
        let connecting = credentials.client().connect(server.local_address());
        let client = connecting.await.unwrap();
        let (requests, calls) = four_requests(&server, &client).await;
        for request in requests {
            request.reply("done").unwrap();
        }
        drop(server);
        for call in calls {
            assert_eq!(call.await.unwrap().unwrap(), "done");
        }
    }
}

#[tokio::test]
async fn a_reply_leaves_before_the_end_of_tasks_on_one_thread() {
    of_tasks().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_leaves_before_the_end_of_tasks_on_several_threads() {
    of_tasks().await;
}

/// The runtime goes together with the server, as at the end of `main`.
#[test]
fn a_reply_leaves_before_the_end_of_tasks_whose_runtime_ends() {
    let credentials = Credentials::new();
    for _ in 0..10 {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        let server = runtime.block_on(credentials.server().bind("127.0.0.1:0"));
        let server = server.unwrap();
        let address = server.local_address();
        let callers = [(); 4].map(|()| {
            let credentials = credentials.clone();
            std::thread::spawn(move || connect(&credentials, address).call("hi").wait())
        });
        runtime.block_on(async {
            let mut requests = Vec::new();
            while requests.len() < 4 {
                requests.push(server.accept_request().await.unwrap());
            }
            for request in requests {
                request.reply("done").unwrap();
            }
        });
        drop(runtime);
        for caller in callers {
            assert_eq!(caller.join().unwrap().unwrap(), "done");
        }
    }
}

#[test]
fn a_reply_leaves_before_the_end_of_threads() {
    let credentials = Credentials::new();
    for _ in 0..10 {
        let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
        let client = connect(&credentials, server.local_address());
        let caller = std::thread::spawn(move || client.call("hi").wait());
        let request = server.accept_request().unwrap();
        drop(server);
        request.reply("done").unwrap();
        assert_eq!(caller.join().unwrap().unwrap(), "done");
    }
}

#[test]
fn a_reply_leaves_before_the_end_of_an_owner_who_drains_events() {
    let credentials = Credentials::new();
    let mut server = credentials.server().bind_polled("127.0.0.1:0").unwrap();
    let address = server.local_address();
    let caller = std::thread::spawn(move || {
        let client = credentials.client().connect_blocking(address).unwrap();
        client.call("hi").deadline(Duration::from_secs(30)).wait()
    });
    let epoll = watch(&server);
    let rpc = loop {
        match server.next_event() {
            None => turn(&mut server, &epoll),
            Some(Event::Request { rpc, .. }) => break rpc,
            Some(_) => {}
        }
    };
    // It gathers: what comes next may leave with it.
    server.cork();
    server.reply(rpc, "done").unwrap();
    drop(server);
    assert_eq!(caller.join().unwrap().unwrap(), "done");
}
