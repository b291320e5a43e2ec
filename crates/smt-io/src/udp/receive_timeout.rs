// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The socket's own time limit for receiving, changed as rarely as possible.
//!
//! A blocking receive is one system call if the socket already has the right `SO_RCVTIMEO`, so:
//! 1. round the wait down to a class, four to the octave (waiting less than asked is allowed);
//! 2. set the option only if the class differs from the one that is set;
//! 3. hold the right to wait this way until the receive call is over, since the option is the
//!    socket's and another thread may want another time; a second thread waits by `poll`.
//!
//! The kernel ends such a wait one to two scheduler ticks late (8 ms late at most with 250 ticks a
//! second); waits too short to bear that are made with `poll` as well.

use crate::limits::EXACT_WAIT_US;
use crate::statistics::Counter;
use socket2::Socket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The time limit set on the socket, and whether a thread is waiting by it.
#[derive(Debug, Default)]
pub(super) struct ReceiveTimeout {
    /// Microseconds set in the socket; 0 is its initial "for ever".
    class_us: AtomicU64,
    held: AtomicBool,
}

/// The right to one blocking receive with the time limit that was asked for.
pub(super) struct Hold<'a>(&'a ReceiveTimeout);

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.0.held.store(false, Ordering::Release);
    }
}

impl ReceiveTimeout {
    /// Makes the next blocking receive on `socket` last at most about `limit`. `None` if that
    /// cannot be, because the wait is too short for it or another thread is waiting: use `poll`.
    pub(super) fn hold(
        &self,
        socket: &Socket,
        limit: Duration,
        changes: &Counter,
    ) -> Option<Hold<'_>> {
        let limit_us = u64::try_from(limit.as_micros()).unwrap_or(u64::MAX);
        if limit_us < EXACT_WAIT_US || self.held.swap(true, Ordering::Acquire) {
            return None;
        }
        let hold = Hold(self);
        let class_us = class_us(limit_us);
        if self.class_us.load(Ordering::Relaxed) != class_us {
            changes.add(1);
            let set = socket.set_read_timeout(Some(Duration::from_micros(class_us)));
            set.ok()?;
            self.class_us.store(class_us, Ordering::Relaxed);
        }
        Some(hold)
    }
}

/// `limit_us` with all but its three leading bits cleared, and at most an hour.
fn class_us(limit_us: u64) -> u64 {
    let limit_us = limit_us.min(HOUR_US);
    let kept_from = limit_us.checked_ilog2().unwrap_or(0).saturating_sub(2);
    limit_us >> kept_from << kept_from
}

/// Far above any wait of the protocol, far below what overflows the kernel's arithmetic.
const HOUR_US: u64 = 3_600_000_000;

#[cfg(test)]
mod tests {
    use super::{Counter, Duration, ReceiveTimeout, Socket, class_us};
    use socket2::{Domain, Type};

    mod hold {
        use super::{Counter, Domain, Duration, ReceiveTimeout, Socket, Type};

        fn socket() -> Socket {
            Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap()
        }

        #[test]
        fn same_class_is_set_once() {
            let (timeout, socket, changes) =
                (ReceiveTimeout::default(), socket(), Counter::default());
            for us in [8_192, 9_000, 10_239, 8_192] {
                let hold = timeout.hold(&socket, Duration::from_micros(us), &changes);
                assert!(hold.is_some());
            }
            assert_eq!(changes.value(), 1);
            let set = socket.read_timeout().unwrap().unwrap();
            assert!(set >= Duration::from_micros(8_192), "{set:?}");
        }

        #[test]
        fn second_waiter_is_sent_to_poll_until_the_first_is_done() {
            let (timeout, socket, changes) =
                (ReceiveTimeout::default(), socket(), Counter::default());
            let limit = Duration::from_millis(8);
            let first = timeout.hold(&socket, limit, &changes);
            assert!(first.is_some());
            assert!(timeout.hold(&socket, limit, &changes).is_none());
            drop(first);
            assert!(timeout.hold(&socket, limit, &changes).is_some());
        }

        #[test]
        fn short_wait_is_sent_to_poll() {
            let (timeout, socket, changes) =
                (ReceiveTimeout::default(), socket(), Counter::default());
            let limit = Duration::from_micros(999);
            assert!(timeout.hold(&socket, limit, &changes).is_none());
            assert_eq!(changes.value(), 0);
        }
    }

    mod class_us {
        use super::class_us;

        #[test]
        fn never_more_than_asked_and_at_least_four_fifths() {
            for limit_us in (1_000..100_000).step_by(7) {
                let class = class_us(limit_us);
                assert!(class <= limit_us && class * 5 > limit_us * 4, "{limit_us}");
            }
        }

        #[test]
        fn for_ever_is_an_hour_at_most() {
            assert!(class_us(u64::MAX) <= super::super::HOUR_US);
            assert!(class_us(u64::MAX) > super::super::HOUR_US / 5 * 4);
        }
    }
}
