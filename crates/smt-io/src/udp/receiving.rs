// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Takes batches from the kernel, waiting inside the same system call where it can.
//!
//! 1. Pass on a report that a send call came across.
//! 2. Receive once, waiting as asked (`receive_timeout.rs`).
//! 3. An event that is not for the caller (a cut batch, a signal, a report of a smaller path) is
//!    counted, and the call is repeated without waiting: the caller knows best how much of its time
//!    is left.

use super::errno_class::ErrnoClass;
use super::{Blocking, Incoming, UdpCarrier, receive, wait_readable};
use crate::received::Received;
use smt_carrier::{Ecn, Marks, Path, ReceiveError, Wait};
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl UdpCarrier {
    pub(super) fn receive_batch(
        &self,
        buffer: &mut [u8],
        wait: Wait,
    ) -> Result<Option<Received>, ReceiveError> {
        if self.hint_pending.load(Ordering::Relaxed)
            && self.hint_pending.swap(false, Ordering::Relaxed)
            && let Some(unreachable) = self.unreachable()
        {
            return Err(unreachable);
        }
        let receiving = &self.counters.receiving;
        let mut outcome = match wait {
            Wait::Never => self.receive_once(buffer, Blocking::No),
            Wait::AtMost(limit) => self.receive_within(buffer, limit),
        };
        loop {
            match outcome.map_err(|error| self.class(error)) {
                Ok(arrival) if arrival.truncated => receiving.truncated.add(1),
                Ok(arrival) => return Ok(Some(self.accept(arrival))),
                Err(ErrnoClass::Full) => return Ok(None),
                Err(ErrnoClass::Interrupted) => {}
                // An ICMP report of a smaller path: forgeable, so the size stays as it is.
                Err(ErrnoClass::TooLarge) => {
                    receiving.hints.add(1);
                    self.take_reports();
                }
                Err(ErrnoClass::Unreachable) => {
                    receiving.hints.add(1);
                    self.take_reports();
                    if let Some(unreachable) = self.unreachable() {
                        return Err(unreachable);
                    }
                }
                Err(ErrnoClass::Other(code) | ErrnoClass::Refused(code)) => {
                    return Err(ReceiveError::Other { code });
                }
            }
            outcome = self.receive_once(buffer, Blocking::No);
        }
    }

    /// Receives, waiting at most about `limit`: by one system call if the socket's time limit
    /// serves.
    fn receive_within(&self, buffer: &mut [u8], limit: Duration) -> io::Result<Incoming> {
        let changes = &self.counters.receiving.timeout_changes;
        if let Some(_hold) = self.timeout.hold(&self.socket, limit, changes) {
            return self.receive_once(buffer, Blocking::Yes);
        }
        if !limit.is_zero() {
            self.counters.receiving.calls.add(1);
            wait_readable([self.socket.as_fd()], limit)?;
        }
        self.receive_once(buffer, Blocking::No)
    }

    /// One system call.
    fn receive_once(&self, buffer: &mut [u8], blocking: Blocking) -> io::Result<Incoming> {
        self.counters.receiving.calls.add(1);
        receive(&self.socket, buffer, blocking)
    }

    /// The meaning of a failed call.
    fn class(&self, error: io::Error) -> ErrnoClass {
        let mut has_reports = self.has_reports();
        // Once told, a report is gone; a rule of this host against receiving is not. Taken for a
        // report it would be told without end, and callers pause for a carrier that fails, but not
        // for reports.
        if has_reports && error.raw_os_error() == Some(libc::EACCES) {
            has_reports = !self.is_forbidden();
        }
        ErrnoClass::of(error, has_reports)
    }

    /// Whether the system lets this process receive nothing, found out by one system call that
    /// takes nothing away.
    fn is_forbidden(&self) -> bool {
        self.counters.receiving.calls.add(1);
        let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
        let look = self.socket.recv_with_flags(&mut [], flags);
        look.is_err_and(|error| error.raw_os_error() == Some(libc::EACCES))
    }

    fn accept(&self, arrival: Incoming) -> Received {
        let receiving = &self.counters.receiving;
        receiving.note(arrival.length, arrival.segment_size);
        let local = arrival.local.or_else(|| self.only_local());
        Received {
            path: Path { local, ..Path::to(arrival.from) },
            length: arrival.length,
            segment_size: arrival.segment_size,
            marks: Marks {
                ecn: arrival.traffic_class.map_or(Ecn::NotEct, Ecn::of_traffic_class),
                ..Marks::NONE
            },
        }
    }

    /// The one local address that every datagram on this socket calls, if it has just one.
    fn only_local(&self) -> Option<std::net::IpAddr> {
        if self.wildcard {
            return None;
        }
        Some(self.local.ip())
    }

    /// Takes the reports about any peer out of the socket, if it gets them.
    fn take_reports(&self) {
        if let Some(queue) = &self.report_queue {
            queue.fill(&self.socket);
        }
    }

    /// The report to pass on; further ones follow with the next calls. Nothing if a report was of
    /// no use.
    fn unreachable(&self) -> Option<ReceiveError> {
        let Some(queue) = &self.report_queue else {
            return Some(ReceiveError::Unreachable { remote: self.connected });
        };
        let (remote, has_more) = queue.next()?;
        if has_more {
            self.hint_pending.store(true, Ordering::Relaxed);
        }
        Some(ReceiveError::Unreachable { remote: Some(remote) })
    }
}
