// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Addresses that are none, belong to others, or lead nowhere.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use smt::Fault::{Caller, Environment};

use crate::bystander::{ANY, Bystander, closed};
use crate::misuse::{Misuse, Told, failed, misuse};

pub(crate) fn table() -> Vec<Misuse> {
    let mut all = to_listen_on();
    all.extend(to_connect_to());
    all
}

fn bound(by: &Bystander, address: &str) -> Told {
    failed(by.server_builder().bind_blocking(address))
}

fn connected(by: &Bystander, address: &str) -> Told {
    let builder = by.client_builder();
    let builder = builder.connect_deadline(Duration::from_millis(300));
    failed(builder.connect_blocking(address))
}

fn to_listen_on() -> Vec<Misuse> {
    vec![
        misuse("an empty address", Caller, "invalid address \"\"", |by| bound(by, "")),
        misuse("a port alone", Caller, "\":17379\"", |by| bound(by, ":17379")),
        misuse("a port above 65,535", Caller, "99999", |by| bound(by, "127.0.0.1:99999")),
        misuse("a port in words", Caller, "localhost:http", |by| bound(by, "localhost:http")),
        misuse("a URL", Caller, "https://db7", |by| bound(by, "https://db7")),
        misuse("a space before it", Caller, "\" localhost\"", |by| bound(by, " localhost")),
        misuse("a name that nobody has", Environment, "does not resolve", |by| {
            bound(by, "no.such.host.invalid:0")
        }),
        misuse("another host's address", Environment, "choose another address", |by| {
            bound(by, "192.0.2.1:0")
        }),
        misuse("a port that a server has", Environment, "already in use", |by| {
            bound(by, &by.server.local_address().to_string())
        }),
        misuse("a port that another program has", Environment, "end what has it", |by| {
            let socket = UdpSocket::bind(ANY).unwrap();
            bound(by, &socket.local_addr().unwrap().to_string())
        }),
        misuse("the same for shards", Environment, "already in use", |by| {
            let taken = by.server.local_address();
            failed(by.server_builder().bind_shards_blocking(taken, 2))
        }),
    ]
}

fn to_connect_to() -> Vec<Misuse> {
    vec![
        misuse("connect to an empty address", Caller, "invalid address", |by| connected(by, "")),
        misuse("connect to a URL", Caller, "smt://db7", |by| connected(by, "smt://db7")),
        misuse("connect to an unknown name", Environment, "no.such.host.invalid", |by| {
            connected(by, "no.such.host.invalid")
        }),
        misuse("connect to port 0", Caller, "port", |by| connected(by, "127.0.0.1:0")),
        misuse("connect where nobody listens", Environment, "no server there", |by| {
            connected(by, &closed().to_string())
        }),
        misuse("connect to a silent port", Environment, "check address, port and firewall", |by| {
            let silent = UdpSocket::bind(ANY).unwrap();
            connected(by, &silent.local_addr().unwrap().to_string())
        }),
        misuse("connect to all hosts", Environment, "", |by| connected(by, "255.255.255.255:9")),
        misuse("a lazy client of an address that is none", Caller, "db7:x", |by| {
            failed(by.client_builder().connect_lazy_blocking("db7:x"))
        }),
        misuse("connect to another kind of server", Environment, "no SMT server", |by| {
            let other = UdpSocket::bind(ANY).unwrap();
            let address: SocketAddr = other.local_addr().unwrap();
            let answering = std::thread::spawn(move || {
                let mut datagram = [0; 2_000];
                let (_, client) = other.recv_from(&mut datagram).unwrap();
                other.send_to(b"HTTP/1.1 400 Bad Request\r\n\r\n", client).unwrap();
                other
            });
            let told = connected(by, &address.to_string());
            answering.join().unwrap();
            told
        }),
    ]
}
