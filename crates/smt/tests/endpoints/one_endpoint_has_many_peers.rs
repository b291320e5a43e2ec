// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One socket reaches any number of peers, in both roles.

use std::collections::HashSet;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use smt::{ConnectError, ErrorKind, Execution, TlsClient, blocking};

use crate::support::{Credentials, assert_echo, echo, echo_server, eventually, serve, within};

fn role(credentials: &Credentials) -> TlsClient {
    let trust = credentials.authority().trust().unwrap();
    TlsClient::new(trust).server_name("localhost")
}

/// An endpoint that takes clients and connects to servers.
fn node(credentials: &Credentials) -> blocking::Endpoint {
    let builder = credentials.server().with_client(role(credentials));
    builder.open_blocking("127.0.0.1:0").unwrap()
}

fn serve_node(node: &blocking::Endpoint) {
    let node = node.clone();
    std::thread::spawn(move || {
        while let Some(request) = node.accept_request() {
            echo(request);
        }
    });
}

#[test]
#[expect(
    clippy::mutable_key_type,
    reason = "a session is hashed by its number, which never changes"
)]
fn one_socket_calls_many_servers() {
    let credentials = Credentials::new();
    let servers: Vec<_> = (0..5).map(|_| echo_server(&credentials)).collect();
    let endpoint = credentials.client().open_blocking("127.0.0.1:0").unwrap();
    let clients = servers.iter().map(|server| {
        let client = endpoint.client(server.local_address()).unwrap();
        assert_echo(&client, "hello");
        client
    });
    let clients: Vec<_> = clients.collect();
    let sessions: HashSet<_> = clients.iter().map(|client| client.connect().unwrap()).collect();
    assert_eq!(sessions.len(), servers.len());
    assert_eq!(endpoint.statistics().sessions, servers.len());
    for (client, server) in clients.iter().zip(&servers) {
        let session = client.connect().unwrap();
        assert_eq!(session.peer().address, server.local_address());
        assert_eq!(client.local_address(), endpoint.local_address());
    }
}

#[test]
fn two_nodes_call_each_other_by_one_socket_each() {
    let credentials = Credentials::new();
    let nodes = [node(&credentials), node(&credentials)];
    nodes.iter().for_each(serve_node);
    std::thread::scope(|scope| {
        for (node, other) in [(&nodes[0], &nodes[1]), (&nodes[1], &nodes[0])] {
            scope.spawn(|| {
                let client = node.client(other.local_address()).unwrap();
                for size in [0, 1_000, 100_000, 1_000_000] {
                    assert_echo(&client, vec![7; size]);
                }
            });
        }
    });
}

#[tokio::test]
async fn tasks_have_endpoints_with_many_peers_too() {
    let credentials = Credentials::new();
    let builder = || credentials.server().with_client(role(&credentials));
    let nodes = [
        builder().open("127.0.0.1:0").await.unwrap(),
        builder().open("127.0.0.1:0").await.unwrap(),
    ];
    for node in nodes.clone() {
        tokio::spawn(async move {
            while let Some(request) = node.accept_request().await {
                echo(request);
            }
        });
    }
    let client = nodes[0].client(nodes[1].local_address()).unwrap();
    assert_eq!(client.call("there").await.unwrap(), "there");
    let back = nodes[1].client(nodes[0].local_address()).unwrap();
    assert_eq!(back.call("and back").await.unwrap(), "and back");
    for node in nodes {
        node.close(Duration::from_secs(5)).await;
        assert!(node.accept().await.is_none());
    }
}

#[test]
fn a_client_that_is_closed_or_dropped_leaves_the_other_sessions_of_its_endpoint() {
    let credentials = Credentials::new();
    let servers: Vec<_> = (0..3).map(|_| echo_server(&credentials)).collect();
    let endpoint = credentials.client().open_blocking("127.0.0.1:0").unwrap();
    let [closed, dropped, kept] = [0, 1, 2].map(|at: usize| {
        let client = endpoint.client(servers[at].local_address()).unwrap();
        assert_echo(&client, "hello");
        client
    });
    closed.close(Duration::from_secs(5));
    let error = closed.call("again").wait().unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Connect(ConnectError::ShutDown));
    drop(dropped);
    eventually("both servers know", || {
        servers[..2].iter().all(|server| server.statistics().sessions == 0)
    });
    assert_echo(&kept, "still here");
    assert_eq!(endpoint.statistics().sessions, 1);
}

#[test]
fn closing_waits_for_a_call_in_progress() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let endpoint = credentials.client().open_blocking("127.0.0.1:0").unwrap();
    let client = endpoint.client(server.local_address()).unwrap();
    let calling = client.clone();
    let call = std::thread::spawn(move || calling.call("work").wait());
    let request = server.accept_request().unwrap();
    let closing = std::thread::spawn(move || client.close(Duration::from_secs(60)));
    request.reply("done").unwrap();
    assert_eq!(call.join().unwrap().unwrap(), "done");
    closing.join().unwrap();
}

/// A port at which nobody listens.
fn closed_port() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap()
}

#[test]
fn an_endpoint_with_many_peers_learns_at_once_that_no_server_is_there() {
    let credentials = Credentials::new();
    for address in ["127.0.0.1:0", "[::]:0"] {
        let Ok(endpoint) = credentials.client().open_blocking(address) else {
            println!("this host has no IPv6");
            continue;
        };
        let server = echo_server(&credentials);
        let live = endpoint.client(server.local_address()).unwrap();
        assert_echo(&live, "hello");
        let began = Instant::now();
        let missing = endpoint.client(closed_port()).unwrap();
        let error = missing.call("hello").wait().unwrap_err();
        assert!(began.elapsed() < within(Duration::from_secs(2)), "by its deadline");
        assert_eq!(*error.kind(), ErrorKind::Connect(ConnectError::NoServer));
        assert_echo(&live, "the other is none the worse");
    }
}

#[test]
fn a_lazy_client_connects_with_its_first_call_and_finds_a_server_that_comes_later() {
    let credentials = Credentials::new();
    let address = closed_port();
    let client = credentials.client().connect_lazy_blocking(address).unwrap();
    let error = client.call("hello").wait().unwrap_err();
    assert_eq!(error.execution(), Execution::DidNotRun);
    assert!(error.is_transient());
    let server = credentials.server().bind_blocking(address).unwrap();
    serve(&server, 1, echo);
    eventually("a call is answered", || client.call("hello").wait().is_ok());
}

#[test]
fn an_address_of_no_host_is_refused_before_anything_is_opened() {
    let credentials = Credentials::new();
    let endpoint = credentials.client().open_blocking("127.0.0.1:0").unwrap();
    for text in ["db7:99999", "", "[::1]:x"] {
        let error = endpoint.client(text).unwrap_err();
        assert_eq!(error.fault(), smt::Fault::Caller, "{error}");
        let error = credentials.client().connect_lazy_blocking(text);
        assert_eq!(error.unwrap_err().fault(), smt::Fault::Caller);
    }
}

#[test]
fn a_default_deadline_holds_for_calls_that_name_none() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let held = Arc::new(std::sync::Mutex::new(Vec::new()));
    let holding = Arc::clone(&held);
    serve(&server, 1, move |request| {
        holding.lock().unwrap().push(request);
    });
    let client = credentials
        .client()
        .call_deadline(Duration::from_millis(50))
        .connect_blocking(server.local_address())
        .unwrap();
    let error = client.call("work").wait().unwrap_err();
    assert_eq!(error.code(), 103, "{error}");
    let calling = client.clone();
    let patient = std::thread::spawn(move || calling.call("work").no_deadline().wait());
    eventually("it has come", || held.lock().unwrap().len() == 2);
    let request = held.lock().unwrap().pop().unwrap();
    request.reply("done").unwrap();
    assert_eq!(patient.join().unwrap().unwrap(), "done");
}
