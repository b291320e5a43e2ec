// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A carrier of the user's own that is full, broken, or panics: nobody waits for ever, and no core is taken.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use smt::blocking;
use smt_carrier::{Carrier, ReceiveError, Received, SendError, Transmit, Wait};
use smt_io::MemoryCarrier;

use crate::support::{Credentials, echo, eventually, serve};

/// Memory, with faults on demand.
struct Faulty {
    inner: MemoryCarrier,
    is_broken: AtomicBool,
    panics_once: AtomicBool,
    receives: AtomicUsize,
}

impl Faulty {
    fn new(inner: MemoryCarrier) -> Arc<Self> {
        Arc::new(Self {
            inner,
            is_broken: AtomicBool::new(false),
            panics_once: AtomicBool::new(false),
            receives: AtomicUsize::new(0),
        })
    }

    fn panic_if_asked(&self) {
        let is_asked = self.panics_once.swap(false, Ordering::Relaxed);
        assert!(!is_asked, "as asked for");
    }
}

impl Carrier for Faulty {
    fn send(&self, transmit: &Transmit, bytes: &[u8]) -> Result<(), SendError> {
        self.inner.send(transmit, bytes)
    }

    fn receive(&self, buffer: &mut [u8], wait: Wait) -> Result<Option<Received>, ReceiveError> {
        self.receives.fetch_add(1, Ordering::Relaxed);
        if self.is_broken.load(Ordering::Relaxed) {
            return Err(ReceiveError::Other { code: 9 });
        }
        self.panic_if_asked();
        self.inner.receive(buffer, wait)
    }

    fn local_address(&self) -> SocketAddr {
        self.inner.local_address()
    }

    fn datagram_size_max(&self, remote: SocketAddr) -> usize {
        self.inner.datagram_size_max(remote)
    }

    fn segments_max(&self) -> usize {
        self.inner.segments_max()
    }
}

/// A client over a carrier with faults, and a server that echoes.
fn pair() -> (blocking::Client, Arc<Faulty>, blocking::Server) {
    let credentials = Credentials::new();
    let (near, far) = MemoryCarrier::pair();
    let (near, address) = (Faulty::new(near), far.local_address());
    let server = credentials.server().bind_over(Arc::new(far)).unwrap();
    serve(&server, 1, echo);
    let carrier: Arc<dyn Carrier> = Arc::clone(&near) as Arc<dyn Carrier>;
    let client = credentials.client().connect_over(carrier, address).unwrap();
    (client, near, server)
}

#[test]
fn one_that_does_not_work_is_asked_now_and_then() {
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
fn one_that_does_not_work_keeps_no_closed_endpoint() {
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
    // Whoever receives first meets it: this thread, or the endpoint's own.
    let calling = client.clone();
    let _ = std::thread::spawn(move || calling.call("hi").wait()).join();
    assert!(client.call("hi").wait().is_ok());
}
