// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One connection and its way to a socket, on either side.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use kit_process::socket::{Burst, Socket};
use kit_process::{Counts, Doing, Failure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A connection of quiche, and packets of it that the socket had no room for.
pub(crate) struct Connection {
    pub(crate) quiche: quiche::Connection,
    /// Datagrams that wait: for room, or for their time.
    waiting: Option<Waiting>,
    is_paced: bool,
}

struct Waiting {
    bytes: Vec<u8>,
    stride: usize,
    to: std::net::SocketAddr,
    at: Instant,
}

impl Connection {
    pub(crate) fn new(quiche: quiche::Connection, is_paced: bool) -> Self {
        Self { quiche, waiting: None, is_paced }
    }

    /// Sends what is to be sent. Packets of one length leave together.
    pub(crate) fn send(&mut self, socket: &Socket) -> Result<(), Failure> {
        if let Some(waiting) = self.waiting.take()
            && !self.send_burst(socket, waiting)?
        {
            return Ok(());
        }
        while let Some(burst) = self.fill(socket)? {
            if !self.send_burst(socket, burst)? {
                break;
            }
        }
        Ok(())
    }

    /// The next packets, up to one that is shorter.
    fn fill(&mut self, socket: &Socket) -> Result<Option<Waiting>, Failure> {
        let mut burst: Option<Waiting> = None;
        let mut bytes = vec![0; BURST_BYTES];
        let mut length = 0;
        for _ in 0..socket.burst_max() {
            let room = burst.as_ref().map_or(PACKET_MAX, |burst| burst.stride);
            let Some(room) = bytes.get_mut(length..length + room) else {
                break;
            };
            match self.quiche.send(room) {
                Ok((written, info)) => {
                    length += written;
                    let first = burst.get_or_insert_with(|| Waiting {
                        bytes: Vec::new(),
                        stride: written,
                        to: info.to,
                        at: info.at,
                    });
                    if written < first.stride {
                        break;
                    }
                }
                // `BufferTooShort`: the next packet is longer than those of this burst.
                Err(quiche::Error::Done | quiche::Error::BufferTooShort) => break,
                Err(error) => return Err(Failure::new(format!("sending: {error}"))),
            }
        }
        bytes.truncate(length);
        Ok(burst.map(|burst| Waiting { bytes, ..burst }))
    }

    /// Returns whether it was sent; else it waits.
    fn send_burst(&mut self, socket: &Socket, waiting: Waiting) -> Result<bool, Failure> {
        if self.is_paced && waiting.at > Instant::now() {
            self.waiting = Some(waiting);
            return Ok(false);
        }
        let burst =
            Burst { to: waiting.to, ecn: None, bytes: &waiting.bytes, stride: waiting.stride };
        match socket.send(&burst) {
            Ok(true) => Ok(true),
            Ok(false) => {
                self.waiting = Some(waiting);
                Ok(false)
            }
            // The other side has ended: its connection times out.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(true),
            Err(error) => Err(Failure::new(format!("sending: {error}"))),
        }
    }

    /// How long to wait for packets before something is to be done.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        let sending = self.waiting.as_ref();
        let sending = sending.map(|waiting| match self.is_paced {
            true => waiting.at.saturating_duration_since(Instant::now()),
            false => SOCKET_WAIT,
        });
        sending.into_iter().chain(self.quiche.timeout()).min()
    }

    /// Lets quiche's timers end.
    pub(crate) fn handle_timeout(&mut self) {
        if self.quiche.timeout() == Some(Duration::ZERO) {
            self.quiche.on_timeout();
        }
    }

    /// Adds what quiche counts to the counts of the process.
    pub(crate) fn count(&self, counts: &mut Counts) {
        let stats = self.quiche.stats();
        let add = |of: &mut Option<u64>, more: usize| {
            *of = Some(of.unwrap_or_default() + more as u64);
        };
        add(&mut counts.sent, stats.sent);
        add(&mut counts.lost, stats.lost);
        add(&mut counts.spurious, stats.spurious_lost);
        let windows = self.quiche.path_stats().map(|path| path.cwnd as u64);
        counts.window = windows.chain(counts.window).min();
    }
}

/// Waits for one of these to be readable, or for the time to end.
pub(crate) fn wait(
    readable: &[BorrowedFd<'_>],
    timeout: Option<Duration>,
) -> Result<Vec<bool>, Failure> {
    let timeout = timeout
        .map(|of| Timespec { tv_sec: of.as_secs() as i64, tv_nsec: i64::from(of.subsec_nanos()) });
    let polled = readable.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN));
    let mut polled: Vec<PollFd<'_>> = polled.collect();
    match poll(&mut polled, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error).doing("waiting for packets"),
    }
    let is_ready = |fd: &PollFd<'_>| fd.revents().intersects(PollFlags::IN | PollFlags::HUP);
    Ok(polled.iter().map(is_ready).collect())
}

/// Bytes of the largest packet that is ever written.
const PACKET_MAX: usize = 1_500;
/// Bytes of a burst, below what UDP takes.
const BURST_BYTES: usize = 60_000;
/// A full socket is tried again after so long.
const SOCKET_WAIT: Duration = Duration::from_micros(100);
