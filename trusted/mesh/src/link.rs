// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages that wait for one peer.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of messages that travel together.
const TOGETHER_MAX: usize = 1 << 20;
/// After so long a message is given up.
const DEADLINE: Duration = Duration::from_secs(2);
/// Between two attempts to reach a peer that is not there.
const PAUSE: Duration = Duration::from_millis(20);

/// Counts of all links of a process.
#[derive(Debug, Default)]
pub struct Traffic {
    /// Messages that a peer has accepted.
    pub sent: AtomicU64,
    /// Messages that were given up, or had no room.
    pub dropped: AtomicU64,
    /// Packets that came.
    pub received: AtomicU64,
    /// Peers, packets and messages that were refused.
    pub refused: AtomicU64,
}

/// Messages that wait for one peer, sent by a thread of its own. The thread ends with the link.
pub(crate) struct Link {
    queue: Arc<Queue>,
    /// Messages that the thread has not been given: those of one step travel together.
    pushed: Vec<Vec<u8>>,
}

struct Queue {
    waiting: Mutex<Waiting>,
    /// Whether the last attempt to send failed.
    has_failed: AtomicBool,
    /// Bytes that wait at most.
    bytes_max: usize,
    changed: Condvar,
    traffic: Arc<Traffic>,
}

#[derive(Default)]
struct Waiting {
    messages: VecDeque<Vec<u8>>,
    bytes: usize,
    is_closed: bool,
}

/// A second more for each megabyte: a state of 64 MiB arrives at 8 Mbit/s too.
fn deadline_of(bytes: usize) -> Duration {
    DEADLINE + Duration::from_secs(bytes as u64 >> 20)
}

impl Link {
    /// Starts the thread, which sends by `send`. `bytes_max` bytes wait at most, and older messages
    /// are dropped.
    pub(crate) fn start(
        bytes_max: usize,
        traffic: Arc<Traffic>,
        mut send: impl FnMut(Vec<u8>, Duration) -> Result<(), smt::Error> + Send + 'static,
    ) -> Self {
        let waiting = Mutex::new(Waiting::default());
        let (has_failed, changed) = (AtomicBool::new(false), Condvar::new());
        let queue = Arc::new(Queue { waiting, has_failed, bytes_max, changed, traffic });
        let own = queue.clone();
        std::thread::spawn(move || {
            while let Some((packet, count)) = own.next() {
                let deadline = deadline_of(packet.len());
                let sent = send(packet, deadline);
                own.has_failed.store(sent.is_err(), Ordering::Relaxed);
                if let Err(error) = sent {
                    tracing::debug!(%error, "messages were not sent");
                    own.traffic.dropped.fetch_add(count, Ordering::Relaxed);
                    own.pause();
                } else {
                    own.traffic.sent.fetch_add(count, Ordering::Relaxed);
                }
            }
        });
        Self { queue, pushed: Vec::new() }
    }

    /// Whether the last attempt to reach the peer failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.queue.has_failed.load(Ordering::Relaxed)
    }

    /// Has a message sent in the order of calls, with the next [`Link::flush`].
    pub(crate) fn push(&mut self, message: Vec<u8>) {
        self.pushed.push(message);
    }

    /// Sends what was pushed, as far as there is room.
    pub(crate) fn flush(&mut self) {
        if self.pushed.is_empty() {
            return;
        }
        let dropped = self.queue.lock().extend(self.pushed.drain(..), self.queue.bytes_max);
        self.queue.traffic.dropped.fetch_add(dropped, Ordering::Relaxed);
        self.queue.changed.notify_one();
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.flush();
        self.queue.lock().is_closed = true;
        self.queue.changed.notify_one();
    }
}

impl Waiting {
    /// Takes more messages, and drops the oldest ones beyond so many bytes. Returns how many.
    fn extend(&mut self, messages: impl Iterator<Item = Vec<u8>>, bytes_max: usize) -> u64 {
        let mut dropped = 0;
        for message in messages {
            self.bytes += message.len();
            self.messages.push_back(message);
            while self.bytes > bytes_max && self.messages.len() > 1 {
                let oldest = self.messages.pop_front().unwrap_or_default();
                self.bytes -= oldest.len();
                dropped += 1;
            }
        }
        dropped
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next messages as one, when there are some; nothing when the link is closed.
    fn next(&self) -> Option<(Vec<u8>, u64)> {
        let mut waiting = self.lock();
        while waiting.messages.is_empty() && !waiting.is_closed {
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        let (mut packet, mut count) = (Vec::new(), 0);
        while let Some(message) = waiting.messages.front() {
            if count > 0 && packet.len() + message.len() > TOGETHER_MAX {
                break;
            }
            packet.extend((message.len() as u32).to_be_bytes());
            packet.extend(message);
            waiting.bytes -= message.len();
            waiting.messages.pop_front();
            count += 1;
        }
        (count > 0).then_some((packet, count))
    }

    fn pause(&self) {
        let waiting = self.lock();
        if !waiting.is_closed {
            // Woken early by a new message, it tries early.
            let _ = self.changed.wait_timeout(waiting, PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::mesh::messages;
    use std::sync::mpsc;

    #[test]
    fn a_link_sends_all_in_order_several_at_once() {
        let (sender, packets) = mpsc::channel();
        let mut link = Link::start(1 << 20, Arc::default(), move |packet, _| {
            sender.send(packet).unwrap();
            Ok(())
        });
        let sent: Vec<Vec<u8>> = (0..100_u8).map(|it| vec![it; it as usize]).collect();
        for step in sent.chunks(10) {
            step.iter().for_each(|it| link.push(it.clone()));
            link.flush();
        }
        drop(link);
        let of_packet = |it: Vec<u8>| messages(&it).map(<[u8]>::to_vec).collect::<Vec<_>>();
        let received: Vec<_> = packets.iter().map(of_packet).collect();
        assert!(received.iter().all(|it| it.len() % 10 == 0), "a step is in one packet");
        assert_eq!(received.concat(), sent);
    }

    // Once, 128 MiB waited in each of the eight sessions of a client that read none of them.
    #[test]
    fn a_peer_that_reads_nothing_holds_the_newest_messages_of_bounded_bytes() {
        let (sender, packets) = mpsc::channel();
        let (go_on, held) = mpsc::channel::<()>();
        let traffic = Arc::new(Traffic::default());
        let mut link = Link::start(10 << 10, traffic.clone(), move |packet, _| {
            sender.send(packet).unwrap();
            // Nothing more is taken before the test says so.
            let _ = held.recv();
            Ok(())
        });
        link.push(vec![0]);
        link.flush();
        let first = packets.recv().unwrap();
        assert_eq!(messages(&first).collect::<Vec<_>>(), [&[0]]);
        (1..=100_u8).for_each(|it| link.push(vec![it; 1 << 10]));
        link.flush();
        assert_eq!(traffic.dropped.load(Ordering::Relaxed), 90);
        link.push(vec![101; 20 << 10]);
        drop((go_on, link));
        let rest = packets.recv().unwrap();
        let rest: Vec<_> = messages(&rest).map(|it| (it[0], it.len())).collect();
        assert_eq!(rest, [(101, 20 << 10)], "one that is longer has room alone");
    }

    #[test]
    fn bytes_of_any_kind_are_no_messages() {
        assert_eq!(messages(&[0, 0, 0, 9, 1]).count(), 0);
        assert_eq!(messages(&[0, 0, 0, 1, 7, 0, 0]).collect::<Vec<_>>(), [&[7]]);
    }
}
