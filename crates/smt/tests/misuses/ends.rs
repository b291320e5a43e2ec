// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Endpoints that are used after their end, and state files that are another's or none.

use std::time::Duration;

use smt::Fault::{Caller, Environment};
use smt::{TlsClient, blocking};

use crate::bystander::{ANY, Bystander};
use crate::misuse::{Misuse, Told, failed, misuse, observed};

/// An endpoint of both roles.
fn node(by: &Bystander) -> blocking::Endpoint {
    let client = TlsClient::new(by.authority.trust().unwrap()).server_name("localhost");
    by.server_builder().with_client(client).open_blocking(ANY).unwrap()
}

/// The outcome of a server with this state file.
fn stated(by: &Bystander, file: &str) -> Told {
    let path = by.directory.join(file);
    failed(by.server_builder().state_file(path).bind_blocking(ANY))
}

pub(crate) fn table() -> Vec<Misuse> {
    let mut all = closed();
    all.extend(state_files());
    all
}

fn closed() -> Vec<Misuse> {
    vec![
        misuse("accepting after the end", None, "nothing", |by| {
            let server = by.server_builder().bind_blocking(ANY).unwrap();
            server.close(Duration::ZERO);
            let is_none = server.accept().is_none() && server.accept_request().is_none();
            observed(if is_none { "nothing" } else { "something" })
        }),
        misuse("closing twice", None, "closed", |by| {
            let server = by.server_builder().bind_blocking(ANY).unwrap();
            server.close(Duration::ZERO);
            server.clone().close(Duration::from_secs(60));
            observed("closed")
        }),
        misuse("closing while another thread accepts", None, "nothing", |by| {
            let server = by.server_builder().bind_blocking(ANY).unwrap();
            let accepting = {
                let server = server.clone();
                std::thread::spawn(move || server.accept())
            };
            server.close(Duration::ZERO);
            let accepted = accepting.join().unwrap();
            observed(if accepted.is_none() { "nothing" } else { "something" })
        }),
        misuse("the address of a closed server that is held on to", None, "bound", |by| {
            let server = by.server_builder().bind_blocking(ANY).unwrap();
            server.close(Duration::ZERO);
            let again = by.server_builder().bind_blocking(server.local_address());
            observed(if again.is_ok() { "bound" } else { "in use" })
        }),
        misuse("a client of an endpoint that is closed", Caller, "shut down", |by| {
            let node = node(by);
            let client = node.client(by.server.local_address()).unwrap();
            node.close(Duration::ZERO);
            failed(client.call("a").wait())
        }),
        misuse("a further client of one", Caller, "shut down", |by| {
            let node = node(by);
            node.close(Duration::ZERO);
            let client = node.client(by.server.local_address());
            match client {
                Ok(client) => failed(client.call("a").wait()),
                Err(error) => error.into(),
            }
        }),
        misuse("a client of an address that is none", Caller, "invalid address", |by| {
            failed(node(by).client("nowhere:port"))
        }),
        misuse("accepting at a closed client", None, "nothing", |by| {
            let (_server, client) = by.pair();
            client.close(Duration::ZERO);
            observed(if client.accept().is_none() { "nothing" } else { "something" })
        }),
    ]
}

fn state_files() -> Vec<Misuse> {
    vec![
        misuse("the state file of another server", Caller, "a file of its own", |by| {
            let path = by.directory.join("state");
            let first = by.server_builder().state_file(&path).bind_blocking(ANY);
            let told = stated(by, "state");
            drop(first.unwrap());
            told
        }),
        misuse("a directory as state file", Environment, "not a file", |by| stated(by, "")),
        misuse("another file as state file", Environment, "no state file", |by| {
            by.file("text", b"something else");
            stated(by, "text")
        }),
        misuse("a state file where no directory is", Environment, "No such file", |by| {
            stated(by, "missing/state")
        }),
        misuse("a device as state file", Environment, "not a file", |by| {
            failed(by.server_builder().state_file("/dev/null").bind_blocking(ANY))
        }),
    ]
}
