// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A carrier of the user's own that is full, broken, or panics: nobody waits for ever, and no core
//! is taken.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use smt::blocking::{Client, Server};
use smt::{CallFailure, CloseCode, ConnectError, Error, ErrorKind, Request, SessionEnd};
use smt_carrier::{Arrival, Batch, Capabilities, Carrier, ReceiveError, SendError, Wait};
use smt_io::MemoryCarrier;

use crate::support::{Credentials, echo, eventually, serve};

/// Memory, with faults on demand.
struct Faulty {
    inner: MemoryCarrier,
    is_broken: AtomicBool,
    panics_once: AtomicBool,
    receives: AtomicUsize,
    /// It is full for so many sends.
    full_for: AtomicUsize,
    refused: AtomicUsize,
    /// The host forbids to send, as a firewall does.
    is_forbidden: AtomicBool,
}

impl Faulty {
    fn new(inner: MemoryCarrier) -> Arc<Self> {
        Arc::new(Self {
            inner,
            is_broken: AtomicBool::new(false),
            panics_once: AtomicBool::new(false),
            receives: AtomicUsize::new(0),
            full_for: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
            is_forbidden: AtomicBool::new(false),
        })
    }

    fn panic_if_asked(&self) {
        let is_asked = self.panics_once.swap(false, Ordering::Relaxed);
        assert!(!is_asked, "as asked for");
    }
}

impl Carrier for Faulty {
    fn send(&self, batch: &Batch<'_>) -> Result<(), SendError> {
        let less = |sends: usize| sends.checked_sub(1);
        let full_for = &self.full_for;
        let is_full = full_for.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        if is_full.is_ok() {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(SendError::WouldBlock { bytes_sent: 0 });
        }
        if self.is_forbidden.load(Ordering::Relaxed) {
            return Err(SendError::Other { code: 1 });
        }
        self.inner.send(batch)
    }

    fn receive(
        &self,
        sink: &mut dyn FnMut(Arrival<'_>),
        wait: Wait,
    ) -> Result<usize, ReceiveError> {
        self.receives.fetch_add(1, Ordering::Relaxed);
        if self.is_broken.load(Ordering::Relaxed) {
            return Err(ReceiveError::Other { code: 9 });
        }
        self.panic_if_asked();
        self.inner.receive(sink, wait)
    }

    fn local_address(&self) -> SocketAddr {
        self.inner.local_address()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }
}

/// A client over a carrier with faults, and a server that echoes.
fn pair() -> (Client, Arc<Faulty>, Server) {
    let credentials = Credentials::new();
    let (near, far) = MemoryCarrier::pair();
    let (near, address) = (Faulty::new(near), far.local_address());
    let server = credentials.server().bind_over_blocking(Arc::new(far)).unwrap();
    serve(&server, 1, echo);
    let carrier: Arc<dyn Carrier> = Arc::clone(&near) as Arc<dyn Carrier>;
    let client = credentials.client().connect_over_blocking(carrier, address).unwrap();
    (client, near, server)
}

#[test]
fn a_host_that_refuses_to_send_is_told_from_a_server_that_does_not_answer() {
    let credentials = Credentials::new();
    let deadline = Duration::from_millis(50);
    for is_forbidden in [true, false] {
        let (near, far) = MemoryCarrier::pair();
        let (carrier, address) = (Faulty::new(near), far.local_address());
        carrier.is_forbidden.store(is_forbidden, Ordering::Relaxed);
        let client = credentials.client().connect_deadline(deadline);
        let error = client.connect_over_blocking(carrier, address).unwrap_err();
        let expected = match is_forbidden {
            true => ConnectError::NotSent(deadline),
            false => ConnectError::NoAnswer(deadline),
        };
        let smt::OpenError::Connect(error) = error else {
            panic!("{error}");
        };
        assert_eq!(*error.kind(), ErrorKind::Connect(expected));
    }
}

#[test]
fn a_carrier_that_does_not_work_is_asked_now_and_then() {
    let (client, carrier, _server) = pair();
    carrier.is_broken.store(true, Ordering::Relaxed);
    let call = client.call("hi").deadline(Duration::from_millis(300));
    assert!(call.wait().is_err());
    // Asked without pause it would be hundreds of thousands of times.
    let receives = carrier.receives.load(Ordering::Relaxed);
    assert!(receives < 5_000, "{receives}");
    carrier.is_broken.store(false, Ordering::Relaxed);
    assert!(client.call("hi").wait().is_ok());
}

#[test]
fn a_carrier_that_does_not_work_keeps_no_closed_endpoint() {
    let (client, carrier, server) = pair();
    carrier.is_broken.store(true, Ordering::Relaxed);
    drop(client);
    eventually("nobody else has it", || Arc::strong_count(&carrier) == 1);
    drop(server);
}

#[test]
fn a_leader_s_panic_leaves_the_lead_to_others() {
    let (client, carrier, _server) = pair();
    carrier.panics_once.store(true, Ordering::Relaxed);
    // The thread that receives first panics: this one, or the endpoint's own.
    let calling = client.clone();
    let _ = std::thread::spawn(move || calling.call("hi").wait()).join();
    assert!(client.call("hi").wait().is_ok());
}

type Caller = std::thread::JoinHandle<Result<bytes::Bytes, Error>>;

/// A server over a carrier with faults, a request that it has, and its caller.
fn requested() -> (Server, Arc<Faulty>, Request, Caller) {
    let credentials = Credentials::new();
    let (near, far) = MemoryCarrier::pair();
    let (address, far) = (far.local_address(), Faulty::new(far));
    let carrier: Arc<dyn Carrier> = Arc::clone(&far) as Arc<dyn Carrier>;
    let server = credentials.server().bind_over_blocking(carrier).unwrap();
    let caller = std::thread::spawn(move || {
        let client = credentials.client().connect_over_blocking(Arc::new(near), address);
        client.unwrap().call("hi").wait()
    });
    let request = server.accept_request().unwrap();
    (server, far, request, caller)
}

#[test]
fn a_full_carrier_takes_replies_and_the_end_when_it_has_room() {
    for is_dropped in [false, true] {
        let (server, carrier, request, caller) = requested();
        carrier.full_for.store(FULL_FOR, Ordering::Relaxed);
        request.reply("done").unwrap();
        match is_dropped {
            true => drop(server),
            false => server.close(Duration::ZERO),
        }
        assert_eq!(caller.join().unwrap().unwrap(), "done");
    }
}

/// The caller is told that the server shuts down: it does not take it for dead after two seconds.
#[test]
fn a_full_carrier_takes_the_close_of_a_session_when_it_has_room() {
    let (server, carrier, request, caller) = requested();
    carrier.full_for.store(FULL_FOR, Ordering::Relaxed);
    server.close(Duration::ZERO);
    let error = caller.join().unwrap().unwrap_err();
    let ErrorKind::Call(error) = error.kind() else {
        panic!("it was called");
    };
    let end = SessionEnd::ClosedByPeer(CloseCode::ShuttingDown);
    assert_eq!(error.reason, CallFailure::SessionEnded(end));
    drop(request);
}

#[test]
fn a_carrier_that_stays_full_holds_up_no_end_and_takes_no_core() {
    let (server, carrier, request, caller) = requested();
    carrier.full_for.store(usize::MAX, Ordering::Relaxed);
    request.reply("lost").unwrap();
    server.close(Duration::ZERO);
    let refused = carrier.refused.load(Ordering::Relaxed);
    assert!((FULL_FOR..1_000).contains(&refused), "{refused}");
    caller.join().unwrap().unwrap_err();
}

/// More than an end tries at once: it waits.
const FULL_FOR: usize = 8;
