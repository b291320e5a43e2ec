// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A set of file descriptors that is one itself (epoll(7)): readable when any of them is.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Watches descriptors for something to read, level-triggered: they are ready until they are read.
#[derive(Debug)]
pub struct Epoll {
    descriptor: OwnedFd,
}

/// The caller's number for a watched descriptor.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Token(pub u64);

impl Epoll {
    /// An empty set.
    ///
    /// # Errors
    /// If the process has no file descriptors left.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes no pointers.
        let descriptor = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor without another owner.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Ok(Self { descriptor })
    }

    /// Watches `descriptor`, until it is removed or its last copy is closed.
    ///
    /// # Errors
    /// If it is watched already, or is of a kind that cannot be.
    pub fn add(&self, descriptor: BorrowedFd<'_>, token: Token) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: token.0 };
        // SAFETY: `event` lives across the call.
        let outcome = unsafe {
            libc::epoll_ctl(
                self.descriptor.as_raw_fd(),
                libc::EPOLL_CTL_ADD,
                descriptor.as_raw_fd(),
                &raw mut event,
            )
        };
        outcome_of(outcome).map(|_| ())
    }

    /// Watches a descriptor of the set, or lets it rest: at rest it stays in the set, and tells of
    /// errors alone. A descriptor that is ready when it is watched again is told of.
    ///
    /// # Errors
    /// If it is not in the set.
    pub fn set_watched(
        &self,
        descriptor: BorrowedFd<'_>,
        token: Token,
        on: bool,
    ) -> io::Result<()> {
        let mut event =
            libc::epoll_event { events: if on { libc::EPOLLIN as u32 } else { 0 }, u64: token.0 };
        // SAFETY: `event` lives across the call.
        let outcome = unsafe {
            libc::epoll_ctl(
                self.descriptor.as_raw_fd(),
                libc::EPOLL_CTL_MOD,
                descriptor.as_raw_fd(),
                &raw mut event,
            )
        };
        outcome_of(outcome).map(|_| ())
    }

    /// Stops watching `descriptor`.
    ///
    /// # Errors
    /// If it is not watched.
    pub fn remove(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        // SAFETY: no event is needed to remove (since Linux 2.6.9).
        let outcome = unsafe {
            libc::epoll_ctl(
                self.descriptor.as_raw_fd(),
                libc::EPOLL_CTL_DEL,
                descriptor.as_raw_fd(),
                std::ptr::null_mut(),
            )
        };
        outcome_of(outcome).map(|_| ())
    }

    /// Waits until something is ready, at most `limit` (rounded up to milliseconds; `None` is for
    /// ever), and writes the tokens of the ready descriptors to the front of `ready`. Tells how
    /// many; 0 after the time, or if a signal came first.
    ///
    /// # Errors
    /// A valid descriptor and a non-empty `ready` give none.
    pub fn wait(&self, ready: &mut [Token], limit: Option<Duration>) -> io::Result<usize> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS_PER_CALL];
        let room = ready.len().min(EVENTS_PER_CALL);
        // SAFETY: the system writes at most `room` events, and `events` holds that many.
        let outcome = unsafe {
            libc::epoll_wait(
                self.descriptor.as_raw_fd(),
                events.as_mut_ptr(),
                room as libc::c_int,
                milliseconds(limit),
            )
        };
        let count = match outcome_of(outcome) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            outcome => outcome?,
        };
        for (slot, event) in ready.iter_mut().zip(&events[..count]) {
            *slot = Token(event.u64);
        }
        Ok(count)
    }
}

impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl AsRawFd for Epoll {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

fn milliseconds(limit: Option<Duration>) -> libc::c_int {
    let Some(limit) = limit else { return -1 };
    libc::c_int::try_from(limit.as_micros().div_ceil(1_000)).unwrap_or(libc::c_int::MAX)
}

fn outcome_of(outcome: libc::c_int) -> io::Result<usize> {
    usize::try_from(outcome).map_err(|_| io::Error::last_os_error())
}

/// Events taken by one call; the next call tells the others.
const EVENTS_PER_CALL: usize = 64;

#[cfg(test)]
mod tests {
    use super::{AsFd, Duration, Epoll, Token};
    use std::os::unix::net::UnixDatagram;

    /// Two ends: a datagram sent by the first makes the second readable.
    fn pair() -> (UnixDatagram, UnixDatagram) {
        UnixDatagram::pair().unwrap()
    }

    mod wait {
        use super::{AsFd, Duration, Epoll, Token, pair};

        #[test]
        fn ready_descriptors_are_told_by_their_tokens() {
            let (epoll, pairs) = (Epoll::new().unwrap(), [(); 3].map(|()| pair()));
            for ((_, end), token) in pairs.iter().zip(10..) {
                epoll.add(end.as_fd(), Token(token)).unwrap();
            }
            let mut ready = [Token(0); 3];
            pairs[1].0.send(&[1]).unwrap();
            assert_eq!(epoll.wait(&mut ready, None).unwrap(), 1);
            assert_eq!(ready[0], Token(11));
            pairs[1].1.recv(&mut [0]).unwrap();
            let short = Some(Duration::from_micros(1));
            assert_eq!(epoll.wait(&mut ready, short).unwrap(), 0);
        }

        #[test]
        fn more_ready_than_room_is_no_error() {
            let (epoll, pairs) = (Epoll::new().unwrap(), [(); 3].map(|()| pair()));
            for (far, end) in &pairs {
                epoll.add(end.as_fd(), Token(1)).unwrap();
                far.send(&[1]).unwrap();
            }
            assert_eq!(epoll.wait(&mut [Token(0); 2], None).unwrap(), 2);
        }
    }

    mod set_watched {
        use super::{AsFd, Duration, Epoll, Token, pair};

        #[test]
        fn descriptor_at_rest_is_told_of_when_it_is_watched_again() {
            let (epoll, (far, end)) = (Epoll::new().unwrap(), pair());
            epoll.add(end.as_fd(), Token(1)).unwrap();
            epoll.set_watched(end.as_fd(), Token(1), false).unwrap();
            far.send(&[1]).unwrap();
            let ready = |epoll: &Epoll| {
                let outcome = epoll.wait(&mut [Token(0)], Some(Duration::ZERO));
                outcome.unwrap()
            };
            assert_eq!(ready(&epoll), 0);
            epoll.set_watched(end.as_fd(), Token(1), true).unwrap();
            assert_eq!(ready(&epoll), 1);
        }

        #[test]
        fn unknown_descriptor_is_refused() {
            let (epoll, (_far, end)) = (Epoll::new().unwrap(), pair());
            assert!(epoll.set_watched(end.as_fd(), Token(1), true).is_err());
        }
    }

    mod remove {
        use super::{AsFd, Duration, Epoll, Token, pair};

        #[test]
        fn removed_descriptor_is_watched_no_longer() {
            let (epoll, (far, end)) = (Epoll::new().unwrap(), pair());
            epoll.add(end.as_fd(), Token(1)).unwrap();
            far.send(&[1]).unwrap();
            epoll.remove(end.as_fd()).unwrap();
            let outcome = epoll.wait(&mut [Token(0)], Some(Duration::ZERO));
            assert_eq!(outcome.unwrap(), 0);
            assert!(epoll.remove(end.as_fd()).is_err());
        }
    }
}
