// SPDX-License-Identifier: Apache-2.0 OR MIT
use std::net::UdpSocket;

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

/// A port at which nobody listens, and one whose owner never answers.
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
    let builder = client().connect_deadline(Duration::from_millis(800));
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
fn the_last_address_tells_what_is_wrong() {
    let (_server, client) = server();
    let last = closed();
    let failed = client().connect_any_blocking("db7", vec![closed(), last], 1);
    let Err(OpenError::Connect(error)) = failed else {
        panic!("nobody listens");
    };
    assert_eq!(error.peer, last);
    assert_eq!(error.kind, ErrorKind::Connect(ConnectError::NoServer));
}

#[test]
fn what_another_address_does_not_change_is_told_at_once() {
    let (server, client) = server();
    let addresses = vec![server.local_address(), closed()];
    let builder = client().server_name("another");
    let failed = builder.connect_any_blocking("db7", addresses, 1);
    let Err(OpenError::Connect(error)) = failed else {
        panic!("it has another name");
    };
    assert_eq!(error.peer, server.local_address());
}
