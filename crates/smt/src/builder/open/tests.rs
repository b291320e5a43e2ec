// SPDX-License-Identifier: Apache-2.0 OR MIT
use std::net::{SocketAddr, UdpSocket};
#[cfg(feature = "tokio")]
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::*;
use crate::ErrorKind;
use crate::builder::{Address, TlsClient};
use crate::pki::EphemeralCa;
#[cfg(feature = "tokio")]
use smt_carrier::{Arrival, Batch, Capabilities, Readiness, ReceiveError, SendError, Wait};
#[cfg(feature = "tokio")]
use smt_io::UdpCarrier;
use smt_proto::ConnectError;

/// A server for threads, and the choices of its clients.
fn server() -> (crate::blocking::Server, impl Fn() -> Builder<TlsClient>) {
    let authority = EphemeralCa::new().unwrap();
    let identity = authority.server(&["server"]).unwrap();
    let server = crate::server(identity);
    let client = move || {
        let trust = authority.trust().unwrap();
        crate::client(trust).server_name("server")
    };
    (server.bind_blocking("127.0.0.1:0").unwrap(), client)
}

/// A port at which nobody listens.
fn closed() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn a_host_is_reached_at_the_address_that_answers() {
    let (server, client) = server();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let addresses = vec![closed(), silent.local_addr().unwrap(), server.local_address()];
    let builder = client().connect_deadline(Duration::from_secs(3));
    let clients = builder.connect_shards_blocking(Address::resolved("db7", addresses), 2).unwrap();
    assert_eq!(clients.len(), 2);
    assert_eq!(clients[0].connect().unwrap().peer().address, server.local_address());
}

#[cfg(feature = "tokio")]
#[tokio::test]
async fn a_host_is_reached_by_tasks_at_the_address_that_answers() {
    let (server, client) = server();
    let addresses = vec![closed(), server.local_address()];
    let clients = client().connect(Address::resolved("db7", addresses)).await;
    assert_eq!(clients.unwrap().connect().await.unwrap().peer().address, server.local_address());
}

#[test]
fn failure_that_says_most_of_the_server_is_returned() {
    let (server, client) = server();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let [silent, closed] = [silent.local_addr().unwrap(), closed()];
    // A link-local address without its link.
    let unroutable: SocketAddr = "[fe80::1]:9".parse().unwrap();
    let failure_of = |name: &str, addresses: &[SocketAddr]| {
        let builder = client().connect_deadline(Duration::from_millis(400));
        let builder = builder.server_name(name);
        match builder.connect_blocking(Address::resolved("db7", addresses.to_vec())) {
            Err(OpenError::Connect(error)) => (error.peer().unwrap(), error.kind().clone()),
            other => panic!("{other:?}"),
        }
    };
    let no_server = (closed, ErrorKind::Connect(ConnectError::NoServer));
    assert_eq!(failure_of("server", &[closed, unroutable]), no_server);
    assert_eq!(failure_of("server", &[unroutable, closed, silent]), no_server);
    // It has another name.
    let (peer, _) = failure_of("another", &[server.local_address(), closed]);
    assert_eq!(peer, server.local_address());
}

#[test]
fn one_deadline_holds_for_all_addresses_and_shards() {
    let (_, client) = server();
    let silent: Vec<_> = (0..3).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    let addresses = silent.iter().map(|socket| socket.local_addr().unwrap());
    let deadline = Duration::from_millis(300);
    let began = Instant::now();
    let builder = client().connect_deadline(deadline);
    assert!(
        builder.connect_shards_blocking(Address::resolved("db7", addresses.collect()), 4).is_err()
    );
    assert!(began.elapsed() >= deadline && began.elapsed() < Duration::from_secs(60));
}

/// A socket that has no room if it is told so.
#[cfg(feature = "tokio")]
struct Full {
    udp: Arc<UdpCarrier>,
    is_full: AtomicBool,
    refused: AtomicUsize,
}

#[cfg(feature = "tokio")]
impl Carrier for Full {
    fn send(&self, batch: &Batch<'_>) -> Result<(), SendError> {
        if self.is_full.load(Ordering::Relaxed) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(SendError::WouldBlock { bytes_sent: 0 });
        }
        self.udp.send(batch)
    }

    fn receive(
        &self,
        sink: &mut dyn FnMut(Arrival<'_>),
        wait: Wait,
    ) -> Result<usize, ReceiveError> {
        self.udp.receive(sink, wait)
    }

    fn local_address(&self) -> SocketAddr {
        self.udp.local_address()
    }

    fn capabilities(&self) -> Capabilities {
        self.udp.capabilities()
    }

    fn readiness(&self) -> Readiness<'_> {
        self.udp.readiness()
    }
}

#[cfg(feature = "tokio")]
impl Full {
    /// Until it has refused more than an end tries at once, it has no room.
    fn until_refused_often(self: Arc<Self>) -> impl Future<Output = ()> {
        self.is_full.store(true, Ordering::Relaxed);
        async move {
            while self.refused.load(Ordering::Relaxed) < 8 {
                tokio::task::yield_now().await;
            }
            self.is_full.store(false, Ordering::Relaxed);
        }
    }
}

#[cfg(feature = "tokio")]
type Caller = std::thread::JoinHandle<Result<bytes::Bytes, crate::Error>>;

/// A server of tasks over such a socket, a request that it has, and its caller.
#[cfg(feature = "tokio")]
async fn requested() -> (crate::Server, Arc<Full>, crate::Request, Caller) {
    let authority = EphemeralCa::new().unwrap();
    let builder = crate::server(authority.server(&["server"]).unwrap());
    let any = "127.0.0.1:0".parse().unwrap();
    let udp = smt_io::UdpOptions::new().bind(any).unwrap();
    let address = udp.local_address();
    let full = Arc::new(Full {
        udp: Arc::new(udp),
        is_full: AtomicBool::new(false),
        refused: AtomicUsize::new(0),
    });
    let carrier = Arc::clone(&full) as Arc<dyn Carrier>;
    let server = builder.bind_over(carrier).unwrap();
    let caller = std::thread::spawn(move || {
        let client = crate::client(authority.trust().unwrap());
        let client = client.server_name("server").connect_blocking(address);
        client.unwrap().call("hi").wait()
    });
    let request = server.accept_request().await.unwrap();
    (server, full, request, caller)
}

/// The runtime has one thread: that it has room again is another task's doing, which runs while the
/// end waits.
#[cfg(feature = "tokio")]
#[tokio::test]
async fn a_full_socket_takes_replies_before_the_end_while_other_tasks_run() {
    for is_dropped in [false, true] {
        let (server, full, request, caller) = requested().await;
        let opening = tokio::spawn(full.until_refused_often());
        request.reply("done").unwrap();
        match is_dropped {
            true => drop(server),
            false => server.close(Duration::ZERO).await,
        }
        let reply = tokio::task::spawn_blocking(|| caller.join().unwrap());
        assert_eq!(reply.await.unwrap().unwrap(), "done");
        opening.await.unwrap();
    }
}

#[cfg(feature = "tokio")]
#[test]
fn a_full_socket_takes_replies_before_the_end_of_a_runtime() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (server, full, request, caller) = runtime.block_on(requested());
    let elsewhere = tokio::runtime::Runtime::new().unwrap();
    let opening = elsewhere.spawn(full.until_refused_often());
    request.reply("done").unwrap();
    drop(runtime);
    assert_eq!(caller.join().unwrap().unwrap(), "done");
    elsewhere.block_on(opening).unwrap();
    drop(server);
}
