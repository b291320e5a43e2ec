// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Addresses that work, and those that do not: how soon that is known, and what is said.

use std::net::{Ipv6Addr, UdpSocket};
use std::time::{Duration, Instant};

use smt::{ConnectError, ErrorKind, OpenError};

use crate::support::{
    Credentials, assert_echo, connect, echo, echo_server, on_every_runtime, serve, within,
};

fn connect_error(error: OpenError) -> ConnectError {
    let OpenError::Connect(error) = error else {
        panic!("{error}");
    };
    match error.kind() {
        ErrorKind::Connect(error) => error.clone(),
        other => panic!("{other}"),
    }
}

#[test]
fn a_missing_server_is_found_out_at_once() {
    let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let began = Instant::now();
    let error = Credentials::new().client().connect_blocking(address).unwrap_err();
    assert!(began.elapsed() < within(Duration::from_secs(1)), "{:?}", began.elapsed());
    let text = error.to_string();
    assert!(text.contains(&address.to_string()) && text.contains("no server there"), "{text}");
    assert_eq!(connect_error(error), ConnectError::NoServer);
}

#[test]
fn a_missing_server_is_found_out_at_once_with_tokio() {
    on_every_runtime(async || {
        let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let began = Instant::now();
        let error = Credentials::new().client().connect(address).await.unwrap_err();
        assert!(began.elapsed() < within(Duration::from_secs(1)), "{:?}", began.elapsed());
        assert_eq!(connect_error(error), ConnectError::NoServer);
    });
}

#[test]
fn a_server_that_never_answers_is_given_up_at_the_deadline() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let deadline = Duration::from_millis(300);
    let began = Instant::now();
    let error = Credentials::new()
        .client()
        .connect_deadline(deadline)
        .connect_blocking(silent.local_addr().unwrap())
        .unwrap_err();
    assert!(began.elapsed() >= deadline && began.elapsed() < within(deadline * 3));
    assert!(error.to_string().contains("no answer from the server within 300 ms"), "{error}");
    assert_eq!(connect_error(error), ConnectError::NoAnswer(deadline));
}

#[test]
fn another_protocol_at_the_address_is_told_as_such() {
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    std::thread::spawn(move || {
        let (_, client) = other.recv_from(&mut [0; 2_048]).unwrap();
        other.send_to(b"what?", client).unwrap();
        // The port stays taken until the client has given up.
        while other.recv_from(&mut [0; 2_048]).is_ok() {}
    });
    let deadline = Duration::from_millis(300);
    let client = Credentials::new().client().connect_deadline(deadline);
    let error = client.connect_blocking(address).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("something answers there that is no SMT server"), "{text}");
    assert_eq!(connect_error(error), ConnectError::NotSmt(deadline));
}

#[test]
fn a_port_in_use_is_named() {
    let credentials = Credentials::new();
    let server = echo_server(&credentials);
    let address = server.local_address();
    let error = credentials.server().bind_blocking(address).unwrap_err();
    assert!(matches!(error, OpenError::Carrier(_)));
    let text = error.to_string();
    assert!(text.contains(&address.to_string()), "{text}");
    assert!(source_texts(&error).contains("in use"), "{}", source_texts(&error));
}

fn source_texts(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(&format!("; {error}"));
        source = error.source();
    }
    text
}

#[test]
fn an_invalid_address_is_named() {
    let error = Credentials::new().client().connect_blocking("no.such.host.invalid:1").unwrap_err();
    let OpenError::Connect(connect) = &error else { panic!("{error}") };
    assert!(matches!(connect.kind(), ErrorKind::Unresolved(_)));
    assert_eq!(connect.peer(), None);
    assert!(error.to_string().contains("no.such.host.invalid"), "{error}");
}

#[test]
fn a_name_is_resolved_and_must_be_proved() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 1, echo);
    let port = server.local_address().port();
    // No `server_name`: the host part is the name.
    let client = smt::client(credentials.authority().trust().unwrap())
        .connect_blocking(format!("localhost:{port}"))
        .unwrap();
    assert_echo(&client, "hello");
}

#[test]
fn ipv6_addresses_work() {
    if UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        println!("this host has no IPv6");
        return;
    }
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("[::1]:0").unwrap();
    serve(&server, 1, echo);
    let client = connect(&credentials, server.local_address());
    for size in [0, 60_001, 3_000_000] {
        assert_echo(&client, vec![5; size]);
    }
}

#[test]
fn a_server_on_all_addresses_answers_from_the_one_called() {
    let credentials = Credentials::new();
    let any = match UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)) {
        Ok(_) => "[::]:0",
        Err(_) => "0.0.0.0:0",
    };
    for wildcard in ["0.0.0.0:0", any] {
        let server = credentials.server().bind_blocking(wildcard).unwrap();
        serve(&server, 1, echo);
        let port = server.local_address().port();
        for host in ["127.0.0.1", "127.0.0.2"] {
            let client = credentials.client().connect_blocking(format!("{host}:{port}")).unwrap();
            assert_echo(&client, vec![5; 500_000]);
        }
        if wildcard.starts_with('[') {
            let client = credentials.client().connect_blocking(format!("[::1]:{port}")).unwrap();
            assert_echo(&client, vec![5; 500_000]);
        }
    }
}

#[test]
fn a_socket_that_was_bound_elsewhere_is_served_as_well() {
    let credentials = Credentials::new();
    for address in ["127.0.0.1:0", "0.0.0.0:0", "[::]:0"] {
        let Ok(socket) = UdpSocket::bind(address) else {
            println!("this host has no IPv6");
            continue;
        };
        // As service managers hand sockets over, and as runtimes do.
        socket.set_nonblocking(true).unwrap();
        let port = socket.local_addr().unwrap().port();
        let server = credentials.server().bind_socket_blocking(socket).unwrap();
        serve(&server, 1, echo);
        let client = connect(&credentials, ([127, 0, 0, 1], port).into());
        assert_echo(&client, vec![3; 100_000]);
    }
}
