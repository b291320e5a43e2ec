// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls, one-way messages and exports that cannot be, or come too late.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use smt::Fault::{Caller, Environment, Limit, Peer};
use smt::{Bytes, Metadata};

use crate::bystander::{ANY, closed};
use crate::misuse::{Misuse, Told, failed, misuse, observed};

const SHORT: Duration = Duration::from_millis(100);

/// The outcome of a future that waits for nothing, without a runtime.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => panic!("it waits"),
    }
}

pub(crate) fn table() -> Vec<Misuse> {
    let mut all = calls();
    all.extend(sizes());
    all.extend(metadata());
    all.extend(sessions());
    all.extend(runtimes());
    all
}

fn calls() -> Vec<Misuse> {
    vec![
        misuse("a call without time", Limit, "DidNotRun", |by| {
            failed(by.client.call("a").deadline(Duration::ZERO).wait())
        }),
        misuse("a message without time", Limit, "was not delivered", |by| {
            failed(by.client.send("a").deadline(Duration::ZERO).wait())
        }),
        misuse("a call at a server that accepts nothing", Limit, "deadline passed", |by| {
            let (_server, client) = by.pair();
            failed(client.call("a").deadline(SHORT).wait())
        }),
        misuse("a call at a server that holds it", Limit, "MayHaveRun", |by| {
            let (server, client) = by.pair();
            let accepting = std::thread::spawn(move || server.accept_request());
            let told = failed(client.call("a").deadline(SHORT).wait());
            drop(accepting.join().unwrap());
            told
        }),
        misuse("a call after the client was closed", Caller, "open another one", |by| {
            let (_server, client) = by.pair();
            client.close(Duration::ZERO);
            failed(client.call("a").wait())
        }),
        misuse("the same by a clone of it", Caller, "shut down", |by| {
            let (_server, client) = by.pair();
            let clone = client.clone();
            client.close(Duration::ZERO);
            failed(clone.connect())
        }),
        misuse("a call of a lazy client without a server", Environment, "no server there", |by| {
            let client = by.client_builder().connect_lazy_blocking(closed());
            failed(client.unwrap().call("a").wait())
        }),
        misuse("a call after the server was closed", Environment, "no server there", |by| {
            let (server, client) = by.pair();
            server.close(Duration::ZERO);
            drop(server);
            // Until the client has heard of it, a request may be on its way.
            while client.statistics().sessions > 0 {
                std::thread::yield_now();
            }
            failed(client.call("a").wait())
        }),
        misuse("a call that is dropped", None, "cancelled", |by| {
            by.runtime.block_on(async {
                let server = by.server_builder().bind(ANY).await.unwrap();
                let connecting = by.client_builder().connect(server.local_address());
                let mut call = Box::pin(connecting.await.unwrap().call("a").into_future());
                let request = tokio::select! {
                    biased;
                    _ = &mut call => unreachable!("there is no reply"),
                    request = server.accept_request() => request.unwrap(),
                };
                drop(call);
                request.cancelled().await;
                observed("it is cancelled")
            })
        }),
    ]
}

fn sizes() -> Vec<Misuse> {
    vec![
        misuse("a request that the server does not take", Limit, "split it", |by| {
            let (_server, client) =
                by.pair_of(by.server_builder().message_limit(1_000), by.client_builder());
            failed(client.call(vec![0; 1_001]).wait())
        }),
        misuse("a message that the server does not take", Limit, "at most 1000", |by| {
            let (_server, client) =
                by.pair_of(by.server_builder().message_limit(1_000), by.client_builder());
            failed(client.send(vec![0; 1_001]).wait())
        }),
        misuse("a chain of buffers that is too long", Limit, "67108865 bytes", |by| {
            let part = Bytes::from(vec![0; 1 << 20]);
            let mut chain = vec![part; 64];
            chain.push(Bytes::from_static(b"x"));
            failed(by.client.call(chain).wait())
        }),
        misuse("metadata that makes a request too large", Limit, "at most 100", |by| {
            let (_server, client) =
                by.pair_of(by.server_builder().message_limit(100), by.client_builder());
            let mut metadata = Metadata::new();
            metadata.push("trace", &[0; 90]).unwrap();
            failed(client.call([0; 90]).metadata(metadata).wait())
        }),
        misuse("a reply that this client does not take", Limit, "ask for less at a time", |by| {
            let client = by.client_builder().message_limit(1_000);
            let client = client.connect_blocking(by.server.local_address()).unwrap();
            let told = failed(client.call(vec![0; 1_001]).wait());
            client.close(Duration::from_secs(60));
            while by.server.statistics().sessions > 1 {
                std::thread::yield_now();
            }
            told
        }),
    ]
}

/// The outcome of adding this.
fn pushed(name: &str, value: &[u8]) -> Told {
    failed(Metadata::new().push(name, value))
}

fn metadata() -> Vec<Misuse> {
    vec![
        misuse("metadata without a name", Caller, "take 1 to 255", |_| pushed("", b"")),
        misuse("metadata named as in HTTP", Caller, "\"Content-Type\"", |_| {
            pushed("Content-Type", b"")
        }),
        misuse("metadata of two lines", Caller, "a-z, 0-9", |_| pushed("a\nb", b"")),
        misuse("a body in metadata", Limit, "send long values in the body", |_| {
            pushed("file", &[0; 10_000])
        }),
        misuse("65 entries", Limit, "put several values in one", |_| {
            let mut metadata = Metadata::new();
            (0..64).for_each(|_| metadata.push("a", b"b").unwrap());
            failed(metadata.push("a", b"b"))
        }),
    ]
}

fn sessions() -> Vec<Misuse> {
    vec![
        misuse("a call in a session that was closed", Caller, "the session has ended", |by| {
            let (_server, client) = by.pair();
            let session = client.connect().unwrap();
            session.close();
            failed(session.call_blocking("a").wait())
        }),
        misuse("a call in progress whose session is closed", Caller, "this side closed", |by| {
            let (server, client) = by.pair();
            let session = client.connect().unwrap();
            let calling = {
                let session = session.clone();
                std::thread::spawn(move || session.call_blocking("a").wait())
            };
            let request = server.accept_request().unwrap();
            session.close();
            let told = failed(calling.join().unwrap());
            drop(request);
            told
        }),
        misuse("a secret without a label", Caller, "give 1 to 249", |by| {
            let session = by.client.connect().unwrap();
            failed(session.export("", b"", &mut [0; 32]))
        }),
        misuse("a secret of no bytes", Caller, "ask for 1 to 8160", |by| {
            let session = by.client.connect().unwrap();
            failed(session.export("EXPORTER-a", b"", &mut []))
        }),
        misuse("a secret of 10,000 bytes", Caller, "ask for 1 to 8160", |by| {
            let session = by.client.connect().unwrap();
            failed(session.export("EXPORTER-a", b"", &mut [0; 10_000]))
        }),
        misuse("a secret of a session that was closed", Caller, "has ended", |by| {
            let (_server, client) = by.pair();
            let session = client.connect().unwrap();
            session.close();
            failed(session.export("EXPORTER-a", b"", &mut [0; 32]))
        }),
        misuse("a call back to a client that is gone", Peer, "closed the session", |by| {
            let (server, client) = by.pair();
            let calling = std::thread::spawn(move || {
                let _ = client.call("a").deadline(SHORT).wait();
            });
            let request = server.accept_request().unwrap();
            let session = request.session();
            let back = session.call_blocking("b");
            // The client does not accept, and its last handle goes with its call.
            let told = failed(back.wait());
            calling.join().unwrap();
            told
        }),
    ]
}

fn runtimes() -> Vec<Misuse> {
    vec![
        misuse("a server of tasks without a runtime", Caller, "`bind_blocking`", |by| {
            failed(at_once(by.server_builder().bind(ANY)))
        }),
        misuse("a client of tasks without a runtime", Caller, "no tokio runtime", |by| {
            failed(at_once(by.client_builder().connect(by.server.local_address())))
        }),
        misuse("a lazy client without a runtime", Caller, "no tokio runtime", |by| {
            failed(by.client_builder().connect_lazy("localhost"))
        }),
        misuse("a socket given without a runtime", Caller, "no tokio runtime", |by| {
            let socket = std::net::UdpSocket::bind(ANY).unwrap();
            failed(by.server_builder().bind_socket(socket))
        }),
        misuse("a runtime without I/O", Caller, "call `enable_io`", |by| {
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            let outcome = runtime.unwrap().block_on(async {
                let bound = by.server_builder().bind(ANY);
                bound.await
            });
            failed(outcome)
        }),
        misuse("a client whose runtime has ended", Environment, "on one that lives on", |by| {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            let connecting = by.client_builder().connect(by.server.local_address());
            let client = runtime.block_on(connecting).unwrap();
            drop(runtime);
            let told = failed(by.runtime.block_on(client.call("a").into_future()));
            drop(client);
            while by.server.statistics().sessions > 1 {
                std::thread::yield_now();
            }
            told
        }),
    ]
}
