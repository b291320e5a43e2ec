// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tells a runtime that a socket has something to receive, and can be turned off.
//!
//! While a thread looks at the socket anyway, each datagram would wake another one for nothing. A
//! set of descriptors (epoll(7)) between socket and runtime can be told to be silent, and tells
//! again of a ready descriptor when it is not.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use smt_carrier::Carrier;

use crate::{Epoll, Process, Token};

/// Watches the descriptors of a carrier: a socket, and the inbox of a shard.
pub struct CarrierWatch {
    carrier: Arc<dyn Carrier>,
    set: Epoll,
    is_on: bool,
    /// A copy of the process shares the set, and must not turn off its parent's watch.
    process: Process,
}

impl CarrierWatch {
    /// A watch that is on.
    ///
    /// # Errors
    /// If the process has no file descriptors left.
    pub fn new(carrier: Arc<dyn Carrier>) -> io::Result<Self> {
        let set = Epoll::new()?;
        for descriptor in watched(&*carrier) {
            set.add(descriptor, TOKEN)?;
        }
        Ok(Self { carrier, set, is_on: true, process: Process::this() })
    }

    /// The descriptors that the runtime is to poll for reading: readable while the watch is on and
    /// something can be received.
    ///
    /// # Errors
    /// If the process has no file descriptors left.
    pub fn descriptors(&self) -> io::Result<Vec<OwnedFd>> {
        Ok(vec![self.set.as_fd().try_clone_to_owned()?])
    }

    /// Whether the runtime is told.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Turns the watch on or off. When it is turned on the runtime is told of datagrams that have
    /// come meanwhile.
    pub fn turn(&mut self, on: bool) {
        if self.is_on == on || !self.process.is_this() {
            return;
        }
        self.is_on = on;
        for descriptor in watched(&*self.carrier) {
            let outcome = self.set.set_watched(descriptor, TOKEN, on);
            debug_assert!(outcome.is_ok(), "the descriptor is in the set: {outcome:?}");
        }
    }
}

fn watched(carrier: &dyn Carrier) -> impl Iterator<Item = BorrowedFd<'_>> {
    carrier.readiness().descriptors()
}

impl std::fmt::Debug for CarrierWatch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("CarrierWatch").field("is_on", &self.is_on).finish_non_exhaustive()
    }
}

/// One token for both, since the carrier looks at both.
const TOKEN: Token = Token(0);

/// The code for other systems, kept alive by the tests on this one.
#[cfg(all(test, target_os = "linux"))]
#[path = "watch/portable.rs"]
#[expect(unreachable_pub, reason = "it is the crate's own watch elsewhere")]
mod portable;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UdpCarrier;
    use crate::testing::Described as _;
    use smt_carrier::{Path, Transmit, Wait};
    use std::time::Duration;

    /// A watched carrier, and one that has sent it a datagram.
    fn watched_pair() -> (Arc<UdpCarrier>, CarrierWatch, UdpCarrier) {
        let near = Arc::new(UdpCarrier::bind("127.0.0.1:0".parse().unwrap()).unwrap());
        let far = UdpCarrier::connect(near.local_address()).unwrap();
        let watch = CarrierWatch::new(Arc::<UdpCarrier>::clone(&near)).unwrap();
        let transmit = Transmit::new(Path::to(near.local_address()), 1);
        far.send_bytes(&transmit, &[7]).unwrap();
        (near, watch, far)
    }

    fn is_readable(watch: &CarrierWatch) -> bool {
        let outcome = watch.set.wait(&mut [Token(1)], Some(Duration::ZERO));
        outcome.unwrap() > 0
    }

    #[test]
    fn watch_that_is_off_tells_nothing_until_it_is_on_again() {
        let (near, mut watch, _far) = watched_pair();
        assert!(is_readable(&watch) && watch.is_on());
        watch.turn(false);
        assert!(!is_readable(&watch) && !watch.is_on());
        watch.turn(true);
        assert!(is_readable(&watch));
        let mut buffer = vec![0; 2_048];
        assert!(near.receive_into(&mut buffer, Wait::Never).unwrap().is_some());
        assert!(!is_readable(&watch));
    }

    #[test]
    fn portable_watch_tells_always() {
        let (near, watched, _far) = watched_pair();
        let mut watch = portable::CarrierWatch::new(near).unwrap();
        watch.turn(false);
        assert!(!watch.is_on());
        let set = Epoll::new().unwrap();
        for descriptor in watch.descriptors().unwrap() {
            set.add(descriptor.as_fd(), Token(0)).unwrap();
            assert_eq!(set.wait(&mut [Token(1)], Some(Duration::ZERO)).unwrap(), 1);
        }
        assert!(is_readable(&watched));
    }

    #[test]
    fn copy_of_the_process_leaves_the_watch_alone() {
        let (_near, mut watch, _far) = watched_pair();
        watch.turn(false);
        // SAFETY: the child turns the watch, which allocates nothing and takes no lock, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            watch.turn(true);
            // SAFETY: ends this process at once.
            unsafe { libc::_exit(0) };
        }
        assert!(child > 0, "no process for a child");
        let mut status = 0;
        // SAFETY: `status` lives across the call.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(!is_readable(&watch));
    }
}
