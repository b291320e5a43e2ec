// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A carrier that can only be waited for, made one that can be polled.
//!
//! A thread waits for the carrier and copies what comes into an inbox, whose descriptor is readable
//! meanwhile. The inbox is bounded, like a socket's receive buffer: what finds it full is lost.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use smt_carrier::{
    Arrival, Batch, Capabilities, Carrier, KeyStore, Path, Readiness, ReceiveError, SendError, Wait,
};

use crate::inbox::Inbox;
use crate::receive_buffer::ReceiveBuffer;
use crate::udp::wait_readable;

/// A carrier over another one that has no descriptor.
///
/// Sending goes straight through. The other carrier is let go of within a quarter of a second after
/// this one was dropped.
pub struct ThreadedCarrier {
    shared: Arc<Shared>,
    buffer: ReceiveBuffer,
}

/// The parts that the thread has, too.
struct Shared {
    inner: Arc<dyn Carrier>,
    inbox: Inbox,
    /// The last report that was not told.
    report: Mutex<Option<ReceiveError>>,
    is_stopped: AtomicBool,
}

impl ThreadedCarrier {
    /// Starts the thread.
    ///
    /// # Errors
    /// The process has no descriptors left, or the system gives no thread.
    pub fn new(inner: Arc<dyn Carrier>) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            inner,
            inbox: Inbox::new(true)?,
            report: Mutex::default(),
            is_stopped: AtomicBool::new(false),
        });
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new().name("smt-carrier".to_owned());
        thread.spawn(move || of_thread.run())?;
        Ok(Self { shared, buffer: ReceiveBuffer::default() })
    }
}

impl Shared {
    fn run(&self) {
        let mut sink = |arrival: Arrival<'_>| self.inbox.put(arrival);
        while !self.is_stopped.load(Ordering::Relaxed) {
            if let Err(report) = self.inner.receive(&mut sink, Wait::AtMost(WAIT)) {
                *self.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
                // Nothing, so that the owner looks and finds the report.
                let nothing = Arrival::datagram(Path::to(self.inner.local_address()), &[]);
                self.inbox.put(nothing);
                if matches!(report, ReceiveError::Other { .. }) {
                    // If it goes on like this, it shall not take a core.
                    thread::sleep(PAUSE);
                }
            }
        }
    }

    fn take_report(&self) -> Option<ReceiveError> {
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        report.take()
    }
}

impl Carrier for ThreadedCarrier {
    fn send(&self, batch: &Batch<'_>) -> Result<(), SendError> {
        self.shared.inner.send(batch)
    }

    fn receive(
        &self,
        sink: &mut dyn FnMut(Arrival<'_>),
        wait: Wait,
    ) -> Result<usize, ReceiveError> {
        let Shared { inbox, .. } = &*self.shared;
        self.buffer.lend(|buffer| {
            let mut received = inbox.take_opened(buffer);
            if received.is_none()
                && let Wait::AtMost(limit) = wait
            {
                // A signal ends the wait early, as it may.
                let _ = wait_readable([inbox.as_fd()], limit);
                received = inbox.take_opened(buffer);
            }
            let Some((received, opened)) = received else {
                return Ok(0);
            };
            if received.length == 0
                && let Some(report) = self.shared.take_report()
            {
                return Err(report);
            }
            sink(received.arrival(buffer).with_opened(&opened));
            Ok(1)
        })
    }

    fn local_address(&self) -> SocketAddr {
        self.shared.inner.local_address()
    }

    /// Those of the carrier, but that whole packets are not sealed: an arrival that waits here has
    /// an SPI that the device may have given to another session meanwhile.
    fn capabilities(&self) -> Capabilities {
        let capabilities = self.shared.inner.capabilities();
        capabilities.with_seals_packets(false)
    }

    fn readiness(&self) -> Readiness<'_> {
        Readiness::of([Some(self.shared.inbox.as_fd()), None])
    }

    fn keys(&self) -> Option<Arc<dyn KeyStore>> {
        self.shared.inner.keys()
    }
}

impl Drop for ThreadedCarrier {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for ThreadedCarrier {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ThreadedCarrier")
            .field("local_address", &self.local_address())
            .finish_non_exhaustive()
    }
}

/// How long the thread waits before it sees whether it is still wanted.
const WAIT: Duration = Duration::from_millis(250);
/// Pause after a failure of the carrier.
const PAUSE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryCarrier;
    use smt_carrier::{KeyHandle, Opened};

    /// Memory without a descriptor.
    struct Waited(MemoryCarrier);

    impl Carrier for Waited {
        fn send(&self, batch: &Batch<'_>) -> Result<(), SendError> {
            self.0.send(batch)
        }

        fn receive(
            &self,
            sink: &mut dyn FnMut(Arrival<'_>),
            wait: Wait,
        ) -> Result<usize, ReceiveError> {
            self.0.receive(sink, wait)
        }

        fn local_address(&self) -> SocketAddr {
            self.0.local_address()
        }

        fn capabilities(&self) -> Capabilities {
            self.0.capabilities()
        }
    }

    const SOON: Duration = Duration::from_secs(10);

    fn is_readable(carrier: &ThreadedCarrier, limit: Duration) -> bool {
        let readiness = carrier.readiness();
        let descriptor = readiness.descriptors().next().unwrap();
        wait_readable([descriptor], limit).unwrap()
    }

    #[test]
    fn the_descriptor_is_readable_while_something_waits() {
        let (near, far) = MemoryCarrier::pair();
        let address = near.local_address();
        assert!(Waited(MemoryCarrier::pair().0).readiness().is_none());
        let near = ThreadedCarrier::new(Arc::new(Waited(near))).unwrap();
        assert!(!is_readable(&near, Duration::ZERO));
        far.send(&Batch::datagrams(Path::to(address), 4, b"ping")).unwrap();
        assert!(is_readable(&near, SOON));
        let mut bytes = Vec::new();
        let mut sink = |arrival: Arrival<'_>| bytes.extend_from_slice(arrival.bytes);
        assert_eq!(near.receive(&mut sink, Wait::AtMost(SOON)), Ok(1));
        assert_eq!(bytes, b"ping");
        assert!(!is_readable(&near, Duration::ZERO));
    }

    /// Memory whose arrivals have a record that was opened.
    struct Opening(MemoryCarrier);

    const OPENED: Opened = Opened { at: 1, key: KeyHandle(7), number: 9 };

    impl Carrier for Opening {
        fn send(&self, batch: &Batch<'_>) -> Result<(), SendError> {
            self.0.send(batch)
        }

        fn receive(
            &self,
            sink: &mut dyn FnMut(Arrival<'_>),
            wait: Wait,
        ) -> Result<usize, ReceiveError> {
            let mut opened = |arrival: Arrival<'_>| {
                sink(arrival.with_opened(&[OPENED]).with_spi(Some(5)));
            };
            self.0.receive(&mut opened, wait)
        }

        fn local_address(&self) -> SocketAddr {
            self.0.local_address()
        }

        fn capabilities(&self) -> Capabilities {
            self.0.capabilities()
        }
    }

    #[test]
    fn records_that_the_carrier_has_opened_are_told_and_no_spi_that_may_be_old() {
        let (near, far) = MemoryCarrier::pair();
        let address = near.local_address();
        let near = ThreadedCarrier::new(Arc::new(Opening(near))).unwrap();
        far.send(&Batch::datagrams(Path::to(address), 4, b"ping")).unwrap();
        let mut told = Vec::new();
        let mut sink = |arrival: Arrival<'_>| told.push((arrival.opened.to_vec(), arrival.spi));
        assert_eq!(near.receive(&mut sink, Wait::AtMost(SOON)), Ok(1));
        assert_eq!(told, [(vec![OPENED], None)]);
    }

    #[test]
    fn a_report_of_the_carrier_is_told() {
        let (near, far) = MemoryCarrier::pair();
        let remote = far.local_address();
        drop(far);
        let near = ThreadedCarrier::new(Arc::new(Waited(near))).unwrap();
        near.send(&Batch::datagrams(Path::to(remote), 4, b"ping")).unwrap();
        let outcome = near.receive(&mut |_| {}, Wait::AtMost(SOON));
        let report = ReceiveError::Unreachable { remote: Some(remote) };
        assert_eq!(outcome, Err(report));
    }
}
