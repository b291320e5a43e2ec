// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where datagrams wait for one end of a memory network: bounded, like a socket's receive buffer.

use super::MemoryOptions;
use crate::limits::SEGMENTS_MAX;
use crate::received::Received;
use crate::statistics::Counter;
use crate::wakeup::Wakeup;
use smt_carrier::{Marks, Path, Wait};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

/// A datagram on its way.
#[derive(Clone, Debug)]
pub(super) struct Datagram {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) marks: Marks,
    pub(super) bytes: Vec<u8>,
}

/// The queue of one end, and the thread that waits for it.
#[derive(Debug)]
pub(super) struct Mailbox {
    options: MemoryOptions,
    queue: Mutex<Queue>,
    arrived: Condvar,
    /// Raised while there is something, from the time on that somebody polls it.
    wakeup: OnceLock<Wakeup>,
    /// Datagrams dropped because the queue was full.
    pub(super) dropped: Counter,
}

/// The datagrams that one call took out of a mailbox.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) received: Option<Received>,
    pub(super) unreachable: Option<SocketAddr>,
    /// Datagrams dropped because the caller's buffer was too small.
    pub(super) truncated: usize,
}

#[derive(Debug, Default)]
struct Queue {
    datagrams: VecDeque<Datagram>,
    /// Bytes of all datagrams in the queue.
    bytes: usize,
    /// Threads that wait for one.
    waiting: usize,
    /// The last destination found to have no end, until it is told.
    unreachable: Option<SocketAddr>,
}

impl Mailbox {
    pub(super) fn new(options: MemoryOptions) -> Self {
        Self {
            options,
            queue: Mutex::default(),
            arrived: Condvar::new(),
            wakeup: OnceLock::new(),
            dropped: Counter::default(),
        }
    }

    /// Appends what there is room for.
    pub(super) fn put(&self, datagrams: Vec<Datagram>) {
        let mut queue = self.lock();
        let was_idle = queue.is_idle();
        for datagram in datagrams {
            let bytes = queue.bytes + datagram.bytes.len();
            let full = queue.datagrams.len() >= self.options.queue_datagrams
                || bytes > self.options.queue_bytes;
            if full {
                self.dropped.add(1);
                continue;
            }
            queue.bytes = bytes;
            queue.datagrams.push_back(datagram);
        }
        self.wake(&queue, was_idle);
    }

    /// Notes that no end is at `remote`, for the next call to tell.
    pub(super) fn hint_unreachable(&self, remote: SocketAddr) {
        let mut queue = self.lock();
        let was_idle = queue.is_idle();
        queue.unreachable = Some(remote);
        self.wake(&queue, was_idle);
    }

    /// Takes the next datagram that fits `buffer`, with equal ones behind it if `coalesce`.
    pub(super) fn take(&self, buffer: &mut [u8], wait: Wait, coalesce: bool) -> Taken {
        let mut queue = self.lock();
        if let Wait::AtMost(limit) = wait {
            queue.waiting += 1;
            let waited = self.arrived.wait_timeout_while(queue, limit, |queue| queue.is_idle());
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
            queue.waiting -= 1;
        }
        let mut taken = Taken { unreachable: queue.unreachable.take(), ..Taken::default() };
        if taken.unreachable.is_some() {
            self.quieten(&queue);
            return taken;
        }
        while let Some(datagram) = queue.pop_if(|_| true) {
            if datagram.bytes.len() > buffer.len() {
                taken.truncated += 1;
                continue;
            }
            let segments = if coalesce { SEGMENTS_MAX } else { 1 };
            taken.received = Some(queue.fill(buffer, &datagram, segments));
            break;
        }
        if taken.received.is_some() || taken.truncated > 0 {
            self.quieten(&queue);
        }
        taken
    }

    /// A descriptor that is readable while there is something; `None` if the process has none left.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        let queue = self.lock();
        if self.wakeup.get().is_none() {
            let wakeup = Wakeup::new().ok()?;
            if !queue.is_idle() {
                wakeup.raise();
            }
            // Under the lock nobody else sets it.
            let _ = self.wakeup.set(wakeup);
        }
        drop(queue);
        self.wakeup.get().map(Wakeup::as_fd)
    }

    /// System calls, hence only if a thread waits, or somebody polls and was not told.
    fn wake(&self, queue: &Queue, was_idle: bool) {
        if queue.waiting > 0 {
            self.arrived.notify_all();
        }
        if was_idle
            && !queue.is_idle()
            && let Some(wakeup) = self.wakeup.get()
        {
            wakeup.raise();
        }
    }

    /// Under the lock: else a wake-up could be cleared that is for a later datagram.
    fn quieten(&self, queue: &Queue) {
        if queue.is_idle()
            && let Some(wakeup) = self.wakeup.get()
        {
            wakeup.clear();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn is_idle(&self) -> bool {
        self.datagrams.is_empty() && self.unreachable.is_none()
    }

    fn pop_if(&mut self, wanted: impl FnOnce(&Datagram) -> bool) -> Option<Datagram> {
        if !wanted(self.datagrams.front()?) {
            return None;
        }
        let datagram = self.datagrams.pop_front()?;
        self.bytes -= datagram.bytes.len();
        Some(datagram)
    }

    /// Copies `first`, which fits, and up to `segments - 1` of its kind: of the same path, marks
    /// and size, but for the last, which may be shorter.
    fn fill(&mut self, buffer: &mut [u8], first: &Datagram, segments: usize) -> Received {
        let segment_size = first.bytes.len();
        let mut length = segment_size;
        buffer[..length].copy_from_slice(&first.bytes);
        for _ in 1..segments {
            let room = segment_size.min(buffer.len() - length);
            let next = self.pop_if(|next| {
                let size = next.bytes.len();
                let is_alike =
                    (next.from, next.to, next.marks) == (first.from, first.to, first.marks);
                is_alike && size > 0 && size <= room
            });
            let Some(next) = next else { break };
            let end = length + next.bytes.len();
            buffer[length..end].copy_from_slice(&next.bytes);
            length = end;
            if next.bytes.len() < segment_size {
                break;
            }
        }
        Received {
            path: Path::between(first.from, first.to.ip()),
            length,
            segment_size,
            marks: first.marks,
        }
    }
}
