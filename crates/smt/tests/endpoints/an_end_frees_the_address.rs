// SPDX-License-Identifier: Apache-2.0 OR MIT
//! After a shutdown the socket is gone although handles live: its address can be bound, who
//! connects learns at once that nobody is there, and the handles say that the endpoint was shut
//! down.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use smt::{ConnectError, Error, ErrorKind, OpenError, Shards, blocking};

use crate::support::{Credentials, connect, echo, echo_server, on_every_runtime, serve};

const LONG: Duration = Duration::from_secs(30);

/// No server is at the address: a client that connects learns that, and then the address can be
/// bound.
fn assert_free(credentials: &Credentials, address: SocketAddr) {
    let error = credentials.client().connect_blocking(address).unwrap_err();
    let OpenError::Connect(error) = error else {
        panic!("{error}");
    };
    assert_eq!(*error.kind(), ErrorKind::Connect(ConnectError::NoServer));
    UdpSocket::bind(address).unwrap();
}

fn assert_shut_down<T: std::fmt::Debug>(outcome: Result<T, Error>) {
    let error = outcome.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Connect(ConnectError::ShutDown));
}

#[test]
fn the_end_of_a_server_whose_threads_wait_for_requests_frees_the_address() {
    let credentials = Credentials::new();
    let server = echo_server(&credentials);
    let client = connect(&credentials, server.local_address());
    client.call("hi").wait().unwrap();
    server.close(LONG);
    assert_free(&credentials, server.local_address());
    assert!(server.accept_request().is_none());
    assert!(server.statistics().socket.unwrap().datagrams_received > 0);
    // Once more does no harm.
    server.close(LONG);
}

#[test]
fn the_end_of_the_last_shard_frees_the_address() {
    let credentials = Credentials::new();
    let shards = credentials.server().bind_shards_blocking("127.0.0.1:0", 4);
    let shards = shards.unwrap();
    shards.iter().for_each(|shard| serve(shard, 2, echo));
    shards.close(LONG);
    assert_free(&credentials, shards[0].local_address());
}

#[test]
fn the_end_of_shards_that_share_a_socket_frees_the_address() {
    let credentials = Credentials::new();
    let options = smt::UdpOptions::new().shard_selector(false);
    let builder = credentials.server().udp(options);
    let shards = builder.bind_shards_blocking("127.0.0.1:0", 2).unwrap();
    shards.iter().for_each(|shard| serve(shard, 1, echo));
    shards.iter().for_each(|shard| shard.close(LONG));
    assert_free(&credentials, shards[0].local_address());
}

async fn of_tasks() {
    let credentials = Credentials::new();
    let server = credentials.server().bind("127.0.0.1:0").await.unwrap();
    let accepting = server.clone();
    let acceptor = tokio::spawn(async move { accepting.accept_request().await.is_none() });
    server.close(LONG).await;
    assert_free(&credentials, server.local_address());
    assert!(acceptor.await.unwrap());
    assert!(server.accept_request().await.is_none());
    let shards = credentials.server().bind_shards("127.0.0.1:0", 2);
    let shards: Shards<smt::Server> = shards.await.unwrap();
    shards.close(LONG).await;
    assert_free(&credentials, shards[0].local_address());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_tasks_on_several_threads_frees_the_address() {
    of_tasks().await;
}

#[tokio::test]
async fn the_end_of_tasks_on_one_thread_frees_the_address() {
    of_tasks().await;
}

#[test]
fn the_end_of_an_endpoint_whose_runtime_has_ended_frees_the_address() {
    let credentials = Credentials::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let binding = credentials.server().bind("127.0.0.1:0");
    let server = runtime.block_on(binding).unwrap();
    drop(runtime);
    assert_free(&credentials, server.local_address());
}

#[test]
fn handles_of_a_server_say_that_it_was_shut_down() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let client = connect(&credentials, server.local_address());
    let calling = std::thread::spawn(move || client.call("work").wait());
    let request = server.accept_request().unwrap();
    let session = request.session();
    server.close(Duration::ZERO);
    calling.join().unwrap().unwrap_err();
    assert_shut_down(session.call_blocking("back").wait());
    assert_shut_down(request.reply("late"));
}

#[test]
fn handles_of_a_client_say_that_it_was_closed() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let client: blocking::Client = connect(&credentials, server.local_address());
    let calls = ["a", "b"].map(|body| {
        let client = client.clone();
        std::thread::spawn(move || client.call(body).wait())
    });
    let requests = [(); 2].map(|()| server.accept_request().unwrap());
    client.close(Duration::ZERO);
    for call in calls {
        let error = call.join().unwrap().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Call(_)), "{error}");
    }
    UdpSocket::bind(client.local_address()).unwrap();
    assert_shut_down(client.call("c").wait());
    assert_shut_down(client.connect());
    assert!(client.accept_request().is_none());
    drop(requests);
}

#[test]
fn handles_of_a_client_of_tasks_say_that_it_was_closed() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let server = echo_server(&credentials);
        let connecting = credentials.client().connect(server.local_address());
        let client = connecting.await.unwrap();
        client.call("hi").await.unwrap();
        client.close(Duration::ZERO).await;
        UdpSocket::bind(client.local_address()).unwrap();
        assert_shut_down(client.call("hi").await);
        assert_shut_down(client.send("hi").await);
        assert!(client.accept_request().await.is_none());
    });
}

/// Its old handle is alive.
#[test]
fn a_successor_takes_over_the_address_at_once() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let server = credentials.server().bind("127.0.0.1:0").await.unwrap();
        let address = server.local_address();
        server.close(LONG).await;
        let successor = credentials.server().bind(address).await.unwrap();
        let accepting = successor.clone();
        tokio::spawn(async move { accepting.accept_request().await.map(echo) });
        let client = credentials.client().connect(address).await.unwrap();
        assert_eq!(client.call("hi").await.unwrap(), "hi");
    });
}
