// SPDX-License-Identifier: Apache-2.0 OR MIT
use std::net::UdpSocket;
use std::time::Instant;

use super::*;
use crate::{ErrorKind, ThrowAway};
use smt_proto::ConnectError;

/// A server for threads, and the choices of its clients.
fn server() -> (blocking::Server, impl Fn() -> Builder) {
    let authority = ThrowAway::new().unwrap();
    let identity = authority.server(&["server"]).unwrap();
    let server = Builder::new().identity(identity);
    let client = move || {
        let trust = authority.trust().unwrap();
        Builder::new().trust(trust).server_name("server")
    };
    (server.bind_blocking("127.0.0.1:0").unwrap(), client)
}

/// A port at which nobody listens.
fn closed() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}

#[test]
fn a_host_is_reached_at_the_address_that_answers() {
    let (server, client) = server();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let addresses = vec![
        closed(),
        silent.local_addr().unwrap(),
        server.local_address(),
    ];
    let builder = client().connect_deadline(Duration::from_secs(3));
    let clients = builder.connect_any_blocking("db7", addresses, 2).unwrap();
    assert_eq!(clients.len(), 2);
    assert_eq!(
        clients[0].connect().unwrap().peer().address,
        server.local_address()
    );
}

#[cfg(feature = "tokio")]
#[tokio::test]
async fn and_so_it_is_by_tasks() {
    let (server, client) = server();
    let addresses = vec![closed(), server.local_address()];
    let clients = client().connect_any("db7", addresses, 1).await.unwrap();
    assert_eq!(
        clients[0].connect().await.unwrap().peer().address,
        server.local_address()
    );
}

#[test]
fn what_says_most_of_the_server_is_told() {
    let (server, client) = server();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let [silent, closed] = [silent.local_addr().unwrap(), closed()];
    // A link-local address without its link.
    let unroutable: SocketAddr = "[fe80::1]:9".parse().unwrap();
    let failure_of = |name: &str, addresses: &[SocketAddr]| {
        let builder = client().connect_deadline(Duration::from_millis(400));
        let builder = builder.server_name(name);
        match builder.connect_any_blocking("db7", addresses.to_vec(), 1) {
            Err(OpenError::Connect(error)) => (error.peer, error.kind),
            other => panic!("{other:?}"),
        }
    };
    let no_server = (closed, ErrorKind::Connect(ConnectError::NoServer));
    assert_eq!(failure_of("server", &[closed, unroutable]), no_server);
    assert_eq!(
        failure_of("server", &[unroutable, closed, silent]),
        no_server
    );
    // It has another name.
    let (peer, _) = failure_of("another", &[server.local_address(), closed]);
    assert_eq!(peer, server.local_address());
}

#[test]
fn one_deadline_holds_for_all_addresses_and_shards() {
    let (_, client) = server();
    let silent: Vec<_> = (0..3)
        .map(|_| UdpSocket::bind("127.0.0.1:0").unwrap())
        .collect();
    let addresses = silent.iter().map(|socket| socket.local_addr().unwrap());
    let deadline = Duration::from_millis(300);
    let began = Instant::now();
    let builder = client().connect_deadline(deadline);
    assert!(
        builder
            .connect_any_blocking("db7", addresses.collect(), 4)
            .is_err()
    );
    assert!(began.elapsed() >= deadline && began.elapsed() < deadline * 2);
}
