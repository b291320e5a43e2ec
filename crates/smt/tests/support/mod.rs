// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The test kit of the tests over real sockets: credentials, payloads that prove themselves,
//! servers, and a forwarder that stands between a client and its server.
#![allow(dead_code, reason = "each test program uses a part of this")]

pub(crate) mod forwarder;
pub(crate) mod lossy;
pub(crate) mod payload;
pub(crate) mod polled_pair;
pub(crate) mod random;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use smt::pki::EphemeralCa;
use smt::{Builder, Bytes, Incoming, Request, TlsClient, TlsServer, blocking};

/// An authority, and builders for those who believe it.
#[derive(Clone)]
pub(crate) struct Credentials(Arc<EphemeralCa>);

impl Credentials {
    pub(crate) fn new() -> Self {
        Self(Arc::new(EphemeralCa::new().unwrap()))
    }

    pub(crate) fn authority(&self) -> &EphemeralCa {
        &self.0
    }

    pub(crate) fn server(&self) -> Builder<TlsServer> {
        smt::server(self.0.server(&["localhost"]).unwrap())
    }

    pub(crate) fn client(&self) -> Builder<TlsClient> {
        smt::client(self.0.trust().unwrap()).server_name("localhost")
    }
}

/// Threads that answer the requests of a server, until it is closed.
pub(crate) fn serve(
    server: &blocking::Server,
    threads: usize,
    answer: impl Fn(Request) + Send + Sync + 'static,
) {
    serve_all(server, threads, move |message| {
        if let Some(request) = message.into_request() {
            answer(request);
        }
    });
}

/// The same for all messages.
pub(crate) fn serve_all(
    server: &blocking::Server,
    threads: usize,
    answer: impl Fn(Incoming) + Send + Sync + 'static,
) {
    let answer = Arc::new(answer);
    for _ in 0..threads {
        let (server, answer) = (server.clone(), Arc::clone(&answer));
        std::thread::spawn(move || {
            while let Some(message) = server.accept() {
                answer(message);
            }
        });
    }
}

/// Sends a request back. Its caller may have given up.
pub(crate) fn echo(request: Request) {
    let body = request.body().clone();
    let _ = request.reply(body);
}

/// A server that echoes, of two threads.
pub(crate) fn echo_server(credentials: &Credentials) -> blocking::Server {
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 2, echo);
    server
}

/// A client of a server that echoes, and the server.
pub(crate) fn echo_pair() -> (blocking::Client, blocking::Server) {
    let credentials = Credentials::new();
    let server = echo_server(&credentials);
    let client = connect(&credentials, server.local_address());
    (client, server)
}

pub(crate) fn connect(credentials: &Credentials, address: SocketAddr) -> blocking::Client {
    credentials.client().connect_blocking(address).unwrap()
}

/// Calls and wants the same back.
pub(crate) fn assert_echo(client: &blocking::Client, body: impl Into<Bytes>) {
    let body = body.into();
    let reply = client.call(body.clone()).wait().unwrap();
    assert_eq!(reply.len(), body.len());
    assert!(reply == body, "the reply differs");
}

/// Runs a test on a runtime of one thread, and on one of several workers, as `#[tokio::main]` gives
/// it.
pub(crate) fn on_every_runtime(test: impl AsyncFn()) {
    let one = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let several =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    for runtime in [one.unwrap(), several.unwrap()] {
        println!("{:?}", runtime.handle().runtime_flavor());
        runtime.block_on(test());
    }
}

/// The time that something may take, or a minute: on a machine with other work everything may be
/// late. `SMT_PUNCTUAL=1` asks for the time itself.
pub(crate) fn within(time: Duration) -> Duration {
    match std::env::var_os("SMT_PUNCTUAL") {
        Some(_) => time,
        None => time.max(Duration::from_secs(60)),
    }
}

/// Waits until something holds, as long as the machine takes; a minute is never.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::yield_now();
    }
}

/// Binds the address of an endpoint that is going, as soon as it has gone.
pub(crate) fn take_over(address: SocketAddr) -> std::net::UdpSocket {
    let mut socket = None;
    eventually("the address is free", || {
        socket = std::net::UdpSocket::bind(address).ok();
        socket.is_some()
    });
    socket.unwrap()
}
