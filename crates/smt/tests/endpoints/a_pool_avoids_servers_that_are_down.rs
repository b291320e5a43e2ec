// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A pool calls the servers that are up, and those alone.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use smt::blocking::{Client, Endpoint, Server};
use smt::{ConnectError, ErrorKind};

use crate::support::forwarder::Forwarder;
use crate::support::{Credentials, eventually, on_every_runtime, serve};

/// A server that counts what it answers.
struct Counted {
    server: Server,
    answered: Arc<AtomicUsize>,
}

impl Counted {
    fn at(credentials: &Credentials, address: SocketAddr) -> Self {
        let server = credentials.server().bind_blocking(address).unwrap();
        let answered = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&answered);
        serve(&server, 2, move |request| {
            counted.fetch_add(1, Ordering::Relaxed);
            let _ = request.reply("answered");
        });
        Self { server, answered }
    }

    fn new(credentials: &Credentials) -> Self {
        Self::at(credentials, ([127, 0, 0, 1], 0).into())
    }

    fn address(&self) -> SocketAddr {
        self.server.local_address()
    }

    fn answered(&self) -> usize {
        self.answered.load(Ordering::Relaxed)
    }
}

fn endpoint(credentials: &Credentials) -> Endpoint {
    let client = credentials.client();
    client.open_blocking("127.0.0.1:0").unwrap()
}

/// Calls so often, one after the other; each is to be answered.
fn call(pool: &Client, count: usize) {
    for _ in 0..count {
        assert_eq!(pool.call("hello").wait().unwrap(), "answered");
    }
}

#[test]
fn all_servers_of_a_pool_are_called() {
    let credentials = Credentials::new();
    let servers = [(); 3].map(|()| Counted::new(&credentials));
    let endpoint = endpoint(&credentials);
    let pool = endpoint.pool(servers.iter().map(Counted::address)).unwrap();
    eventually("each is called", || {
        call(&pool, 10);
        servers.iter().all(|server| server.answered() > 0)
    });
}

#[test]
fn no_call_goes_to_a_server_that_was_never_there() {
    let credentials = Credentials::new();
    let server = Counted::new(&credentials);
    // It takes datagrams, and never answers: an attempt lasts until its deadline.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    silent.set_nonblocking(true).unwrap();
    let addresses = [silent.local_addr().unwrap(), server.address()];
    let endpoint = endpoint(&credentials);
    let pool = endpoint.pool(addresses).unwrap();
    call(&pool, 1_000);
    assert_eq!(server.answered(), 1_000);
    let mut datagram = [0; 2_048];
    let received = (0..).take_while(|_| silent.recv(&mut datagram).is_ok());
    let received = received.count();
    assert!((1..1_000).contains(&received), "{received} datagrams of attempts");
}

#[test]
fn a_server_that_goes_gets_no_calls_and_gets_some_when_it_is_there_again() {
    let credentials = Credentials::new();
    let (stays, goes) = (Counted::new(&credentials), Counted::new(&credentials));
    let endpoint = endpoint(&credentials);
    let pool = endpoint.pool([stays.address(), goes.address()]).unwrap();
    eventually("both are called", || {
        call(&pool, 10);
        stays.answered() > 0 && goes.answered() > 0
    });
    let address = goes.address();
    goes.server.close(Duration::from_secs(5));
    let before = goes.answered();
    // The first of these may meet the CLOSE on its way.
    eventually("the client knows", || {
        let _ = pool.call("hello").wait();
        endpoint.statistics().sessions == 1
    });
    call(&pool, 500);
    assert_eq!(goes.answered(), before);
    let again = Counted::at(&credentials, address);
    eventually("it is called again", || {
        call(&pool, 10);
        again.answered() > 0
    });
}

#[test]
fn one_call_at_most_is_lost_with_a_server_that_falls_silent() {
    let credentials = Credentials::new();
    let (stays, falls) = (Counted::new(&credentials), Counted::new(&credentials));
    let is_silent = Arc::new(AtomicBool::new(false));
    let falling = Arc::clone(&is_silent);
    let forwarder = Forwarder::new(falls.address(), move |way, datagram: &[u8]| {
        match falling.load(Ordering::Relaxed) {
            true => Vec::new(),
            false => vec![(way, datagram.to_vec())],
        }
    });
    let endpoint = endpoint(&credentials);
    let addresses = [stays.address(), forwarder.address()];
    let pool = endpoint.pool(addresses).unwrap();
    eventually("both are called", || {
        call(&pool, 10);
        stays.answered() > 0 && falls.answered() > 0
    });
    is_silent.store(true, Ordering::Relaxed);
    // The lost call is in progress all the time: the other server has fewer, or the same number
    // while the other thread calls it.
    let lost: usize = std::thread::scope(|scope| {
        let threads = [(); 2].map(|()| {
            scope.spawn(|| {
                let failed = |_: &usize| pool.call("hello").wait().is_err();
                (0..300).filter(failed).count()
            })
        });
        threads.map(|thread| thread.join().unwrap()).iter().sum()
    });
    assert!(lost <= 1, "{lost} calls were lost");
}

#[test]
fn a_pool_of_servers_that_are_all_gone_says_why() {
    let credentials = Credentials::new();
    let gone = [(); 2].map(|()| {
        let server = Counted::new(&credentials);
        server.server.close(Duration::ZERO);
        server.address()
    });
    let endpoint = endpoint(&credentials);
    let pool = endpoint.pool(gone).unwrap();
    for _ in 0..3 {
        let error = pool.call("hello").wait().unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Connect(ConnectError::NoServer));
        assert!(error.is_transient());
    }
    let error = pool.connect().unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Connect(ConnectError::NoServer));
}

#[test]
fn a_pool_is_closed_with_all_of_its_sessions() {
    let credentials = Credentials::new();
    let servers = [(); 2].map(|()| Counted::new(&credentials));
    let endpoint = endpoint(&credentials);
    let pool = endpoint.pool(servers.iter().map(Counted::address)).unwrap();
    eventually("both are called", || {
        call(&pool, 10);
        servers.iter().all(|server| server.answered() > 0)
    });
    pool.close(Duration::from_secs(5));
    assert_eq!(endpoint.statistics().sessions, 0);
    let error = pool.call("hello").wait().unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Connect(ConnectError::ShutDown));
}

#[test]
fn a_pool_needs_a_server() {
    let credentials = Credentials::new();
    let none: [SocketAddr; 0] = [];
    let error = endpoint(&credentials).pool(none).unwrap_err();
    assert_eq!(error.to_string(), "caller: a pool needs at least one server");
}

#[test]
fn tasks_call_the_servers_of_a_pool() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let servers = [(); 2].map(|()| Counted::new(&credentials));
        let endpoint = credentials.client().open("127.0.0.1:0").await.unwrap();
        let pool = endpoint.pool(servers.iter().map(Counted::address)).unwrap();
        while servers.iter().any(|server| server.answered() == 0) {
            assert_eq!(pool.call("hello").await.unwrap(), "answered");
        }
    });
}
