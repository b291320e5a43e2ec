// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One file descriptor for an event loop that is not ours: readable when the protocol wants a turn.
//!
//! 1. It holds a socket and a deadline.
//! 2. The foreign loop polls it for reading, and knows nothing of its inside.
//! 3. On its turn the protocol receives without waiting, handles its timeout and sets the next one.

use crate::{Epoll, TimerFd, Token};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

/// A pollable descriptor over a socket and a timer.
#[derive(Debug)]
pub struct PollDescriptor {
    epoll: Epoll,
    timer: TimerFd,
}

/// Why a [`PollDescriptor`] is readable.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Readiness {
    /// Something can be received.
    pub socket: bool,
    /// The deadline has passed.
    pub timer: bool,
}

impl PollDescriptor {
    /// Watches `socket` with no deadline. Closing the socket ends its being watched.
    ///
    /// # Errors
    /// If the process has no file descriptors left.
    pub fn new(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let (epoll, timer) = (Epoll::new()?, TimerFd::new()?);
        epoll.add(socket, SOCKET)?;
        epoll.add(timer.as_fd(), TIMER)?;
        Ok(Self { epoll, timer })
    }

    /// Watches another descriptor as a part of the socket.
    ///
    /// # Errors
    /// If it cannot be polled, or is watched already.
    pub fn watch(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        self.epoll.add(descriptor, SOCKET)
    }

    /// Makes the descriptor readable after `timeout`, or never by the clock; a passed deadline is
    /// forgotten. Always a system call: leave out the ones that change nothing.
    ///
    /// # Errors
    /// A valid descriptor gives none.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.timer.set(timeout)
    }

    /// Waits as a foreign loop would, at most `limit` (`None` is for ever), and tells what is
    /// ready.
    ///
    /// # Errors
    /// A valid descriptor gives none.
    pub fn wait(&self, limit: Option<Duration>) -> io::Result<Readiness> {
        let mut ready = [SOCKET; 3];
        let count = self.epoll.wait(&mut ready, limit)?;
        let ready = &ready[..count];
        Ok(Readiness { socket: ready.contains(&SOCKET), timer: ready.contains(&TIMER) })
    }
}

impl AsFd for PollDescriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl AsRawFd for PollDescriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.epoll.as_raw_fd()
    }
}

const SOCKET: Token = Token(0);
const TIMER: Token = Token(1);

#[cfg(test)]
mod tests {
    use super::{Duration, PollDescriptor, Readiness};
    use crate::UdpCarrier;
    use crate::testing::Described as _;
    use smt_carrier::{Carrier, Path, Transmit, Wait};
    use std::os::fd::AsFd;

    const LONG: Option<Duration> = Some(Duration::from_secs(10));
    const NOW: Option<Duration> = Some(Duration::ZERO);
    const NOTHING: Readiness = Readiness { socket: false, timer: false };

    fn carrier() -> UdpCarrier {
        UdpCarrier::bind("127.0.0.1:0".parse().unwrap()).unwrap()
    }

    mod wait {
        use super::*;

        #[test]
        fn datagram_makes_the_socket_ready_until_it_is_received() {
            let carrier = carrier();
            let poll = PollDescriptor::new(carrier.as_fd()).unwrap();
            assert_eq!(poll.wait(NOW).unwrap(), NOTHING);
            let transmit = Transmit::new(Path::to(carrier.local_address()), 4);
            carrier.send_bytes(&transmit, b"ping").unwrap();
            let socket = Readiness { socket: true, ..NOTHING };
            assert_eq!(poll.wait(LONG).unwrap(), socket);
            assert_eq!(poll.wait(NOW).unwrap(), socket);
            carrier.receive_into(&mut [0; 64], Wait::Never).unwrap().unwrap();
            assert_eq!(poll.wait(NOW).unwrap(), NOTHING);
        }
    }

    mod set_timeout {
        use super::*;

        #[test]
        fn passed_deadline_is_told_until_another_is_set() {
            let carrier = carrier();
            let poll = PollDescriptor::new(carrier.as_fd()).unwrap();
            for timeout in [Duration::ZERO, Duration::from_micros(100)] {
                poll.set_timeout(Some(timeout)).unwrap();
                assert!(poll.wait(LONG).unwrap().timer);
                assert!(poll.wait(NOW).unwrap().timer);
                poll.set_timeout(LONG).unwrap();
                assert_eq!(poll.wait(NOW).unwrap(), NOTHING);
            }
        }

        #[test]
        fn none_takes_a_deadline_back() {
            let carrier = carrier();
            let poll = PollDescriptor::new(carrier.as_fd()).unwrap();
            poll.set_timeout(Some(Duration::ZERO)).unwrap();
            assert!(poll.wait(LONG).unwrap().timer);
            poll.set_timeout(None).unwrap();
            assert_eq!(poll.wait(NOW).unwrap(), NOTHING);
        }
    }

    mod drop {
        use super::*;

        #[test]
        fn closed_socket_is_no_longer_watched() {
            let carrier = carrier();
            let poll = PollDescriptor::new(carrier.as_fd()).unwrap();
            drop(carrier);
            assert_eq!(poll.wait(NOW).unwrap(), NOTHING);
        }
    }
}
