// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where a shard finds its datagrams that came by another shard's socket: bounded, like a socket's
//! receive buffer.
//!
//! The wake-up is raised while the inbox holds something, so that an event loop can poll it beside
//! the socket.

use crate::limits::{INBOX_BATCH_OVERHEAD_BYTES, INBOX_BYTES};
use crate::received::Received;
use crate::statistics::Counter;
use crate::wakeup::Wakeup;
use smt_carrier::{Arrival, Opened};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A shard's queue of strays. Apart from its neighbours: its owner looks at it before each receive
/// call (128: lines are fetched in pairs).
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Inbox {
    /// Whether there is something: written under the lock.
    has_some: AtomicBool,
    /// Whether a waiting owner must poll the wake-up too. Never comes back: an address that has
    /// had strays will have others.
    is_awaited: AtomicBool,
    queue: Mutex<Queue>,
    wakeup: Wakeup,
    /// Datagrams dropped because the queue was full, or the owner gone.
    pub(crate) dropped: Counter,
}

/// A batch that waits.
#[derive(Debug)]
struct Waiting {
    description: Received,
    bytes: Vec<u8>,
    opened: Vec<Opened>,
}

#[derive(Debug, Default)]
struct Queue {
    batches: VecDeque<Waiting>,
    /// Bytes of all batches, with an overhead for each.
    bytes: usize,
    is_closed: bool,
}

impl Inbox {
    /// An empty one. `is_awaited`: it is the only way, so its owner listens from the beginning.
    pub(crate) fn new(is_awaited: bool) -> io::Result<Self> {
        Ok(Self {
            has_some: AtomicBool::new(false),
            is_awaited: AtomicBool::new(is_awaited),
            queue: Mutex::default(),
            wakeup: Wakeup::new()?,
            dropped: Counter::default(),
        })
    }

    /// Appends an arrival if there is room. The SPI under which it was opened is left out: the
    /// device may give it to another session meanwhile.
    pub(crate) fn put(&self, arrival: Arrival<'_>) {
        let mut queue = self.lock();
        let bytes = queue.bytes + arrival.bytes.len() + INBOX_BATCH_OVERHEAD_BYTES;
        if queue.is_closed || bytes > INBOX_BYTES {
            self.dropped.add(arrival.bytes.len().div_ceil(arrival.segment_size.max(1)));
            return;
        }
        queue.bytes = bytes;
        let description = Received {
            path: arrival.path,
            length: arrival.bytes.len(),
            segment_size: arrival.segment_size,
            marks: arrival.marks,
        };
        queue.batches.push_back(Waiting {
            description,
            bytes: arrival.bytes.to_vec(),
            opened: arrival.opened.to_vec(),
        });
        if queue.batches.len() == 1 {
            self.has_some.store(true, Ordering::Release);
            self.is_awaited.store(true, Ordering::Relaxed);
            self.wakeup.raise();
        }
    }

    /// Takes the next batch that fits `buffer`. Costs one look if there is none.
    pub(crate) fn take(&self, buffer: &mut [u8]) -> Option<Received> {
        self.take_opened(buffer).map(|(received, _)| received)
    }

    /// The same with the records in it that another carrier has opened.
    pub(crate) fn take_opened(&self, buffer: &mut [u8]) -> Option<(Received, Vec<Opened>)> {
        if !self.has_some.load(Ordering::Acquire) {
            return None;
        }
        let mut queue = self.lock();
        let mut taken = None;
        while taken.is_none()
            && let Some(waiting) = queue.batches.pop_front()
        {
            let Waiting { description, bytes, opened } = waiting;
            queue.bytes -= bytes.len() + INBOX_BATCH_OVERHEAD_BYTES;
            match buffer.get_mut(..bytes.len()) {
                Some(place) => place.copy_from_slice(&bytes),
                None => {
                    let segment_size = description.segment_size.max(1);
                    self.dropped.add(bytes.len().div_ceil(segment_size));
                    continue;
                }
            }
            taken = Some((description, opened));
        }
        if queue.batches.is_empty() {
            self.quieten();
        }
        taken
    }

    /// Whether a waiting owner must poll the wake-up too.
    pub(crate) fn is_awaited(&self) -> bool {
        self.is_awaited.load(Ordering::Relaxed)
    }

    /// Its owner has gone: nothing is kept for it any more.
    pub(crate) fn close(&self) {
        let mut queue = self.lock();
        *queue = Queue { is_closed: true, ..Queue::default() };
        self.quieten();
    }

    /// Under the lock: else a wake-up could be cleared that is for a later batch.
    fn quieten(&self) {
        self.has_some.store(false, Ordering::Release);
        self.wakeup.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Readable while something is there.
impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wakeup.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smt_carrier::Path;

    fn batch(bytes: &[u8]) -> Arrival<'_> {
        Arrival {
            segment_size: 4,
            ..Arrival::datagram(Path::to("192.0.2.7:9".parse().unwrap()), bytes)
        }
    }

    fn is_raised(inbox: &Inbox) -> bool {
        crate::udp::wait_readable([inbox.as_fd()], std::time::Duration::ZERO).unwrap()
    }

    mod take {
        use super::*;

        #[test]
        fn batches_come_whole_and_in_order_while_the_wakeup_is_raised() {
            let inbox = Inbox::new(false).unwrap();
            assert!(!is_raised(&inbox) && !inbox.is_awaited());
            inbox.put(batch(b"abcdef"));
            inbox.put(batch(b"gh"));
            let mut buffer = [0; 8];
            for (bytes, rest) in [(&b"abcdef"[..], true), (b"gh", false)] {
                let received = inbox.take(&mut buffer).unwrap();
                assert_eq!(&buffer[..received.length], bytes);
                assert_eq!(received.segment_size, 4);
                assert_eq!(is_raised(&inbox), rest);
            }
            assert!(inbox.take(&mut buffer).is_none() && inbox.is_awaited());
        }

        #[test]
        fn what_does_not_fit_the_buffer_is_dropped_and_counted() {
            let inbox = Inbox::new(false).unwrap();
            inbox.put(batch(b"abcdef"));
            inbox.put(batch(b"gh"));
            let received = inbox.take(&mut [0; 4]).unwrap();
            assert_eq!((received.length, inbox.dropped.value()), (2, 2));
        }
    }

    mod put {
        use super::*;

        #[test]
        fn a_full_inbox_drops_and_counts() {
            let inbox = Inbox::new(false).unwrap();
            let bytes = vec![0; 65_536];
            for _ in 0..100 {
                inbox.put(batch(&bytes));
            }
            let kept = INBOX_BYTES / (65_536 + INBOX_BATCH_OVERHEAD_BYTES);
            assert_eq!(inbox.lock().batches.len(), kept);
            assert_eq!(inbox.dropped.value() as usize, (100 - kept) * 65_536 / 4);
        }

        #[test]
        fn a_closed_inbox_keeps_nothing() {
            let inbox = Inbox::new(false).unwrap();
            inbox.put(batch(b"abcd"));
            inbox.close();
            inbox.put(batch(b"efgh"));
            assert!(inbox.take(&mut [0; 8]).is_none() && !is_raised(&inbox));
            assert_eq!(inbox.dropped.value(), 1);
        }
    }
}
