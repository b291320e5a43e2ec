// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages of peers that one acceptor has taken for those after it, so that not each of them needs
//! the endpoint's lock.
//!
//! The endpoint fills the queue, and takes out of it requests whose callers have given up;
//! acceptors empty it. Messages in the queue count as not taken by the application (SPEC §10).

use std::collections::VecDeque;

use smt_proto::{RpcId, Time};

use crate::message::Delivered;
use crate::sync::{AtomicUsize, Mutex, MutexGuard, Ordering, PoisonError};

/// Messages in the order in which they came.
#[derive(Debug)]
pub(crate) struct AcceptQueue {
    waiting: Mutex<VecDeque<Delivered>>,
    bytes: AtomicUsize,
}

impl AcceptQueue {
    pub(crate) fn new() -> Self {
        Self { waiting: Mutex::default(), bytes: AtomicUsize::new(0) }
    }

    /// Adds a message.
    pub(crate) fn push(&self, delivered: Delivered) {
        self.bytes.fetch_add(delivered.cost(), Ordering::Relaxed);
        self.lock().push_back(delivered);
    }

    /// The first message that is still worth delivering: a one-way message may be late by now (SPEC
    /// §9.5). The clock is read only if there is a message.
    pub(crate) fn pop_wanted(&self, now: impl Fn() -> Time) -> Option<Delivered> {
        loop {
            let delivered = self.pop()?;
            if !delivered.message.is_late(now()) {
                return Some(delivered);
            }
        }
    }

    /// The first message.
    fn pop(&self) -> Option<Delivered> {
        if self.is_empty() {
            return None;
        }
        let delivered = self.lock().pop_front()?;
        self.bytes.fetch_sub(delivered.cost(), Ordering::Relaxed);
        Some(delivered)
    }

    /// Takes out a request whose caller has given up. Returns whether it was there.
    pub(crate) fn remove(&self, rpc: RpcId) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut waiting = self.lock();
        let place = waiting.iter().position(|delivered| delivered.message.rpc == rpc);
        let removed = place.and_then(|place| waiting.remove(place));
        if let Some(delivered) = &removed {
            self.bytes.fetch_sub(delivered.cost(), Ordering::Relaxed);
        }
        removed.is_some()
    }

    /// Takes out the requests that are to wait for something else.
    pub(crate) fn take_if(&self, mut waits: impl FnMut(&Delivered) -> bool) -> Vec<Delivered> {
        let mut waiting = self.lock();
        let (taken, left) = waiting.drain(..).partition::<VecDeque<_>, _>(|one| waits(one));
        *waiting = left;
        let bytes = taken.iter().map(Delivered::cost).sum();
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        taken.into()
    }

    /// Memory of the waiting messages. Only the holder of the endpoint's lock adds to it.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether no message waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Delivered>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Messages taken together, besides the first.
pub(crate) const MORE_MAX: usize = 15;
/// No more messages are taken when those taken have this many bytes.
pub(crate) const MORE_BYTES_MAX: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::Peer;
    use bytes::Bytes;
    use smt_proto::{Metadata, PeerMessage};
    use smt_wire::{MessageId, SessionIndex};
    use std::sync::Arc;

    fn rpc(id: u64) -> RpcId {
        RpcId { session: SessionIndex(1), id: MessageId(id) }
    }

    fn delivered(id: u64, is_one_way: bool, deadline: Option<Time>) -> Delivered {
        let peer = Arc::new(Peer::unknown());
        Delivered {
            message: PeerMessage {
                rpc: rpc(id),
                body: Bytes::new(),
                deadline,
                is_one_way,
                parts: Default::default(),
                is_early: false,
                metadata: Metadata::new(),
            },
            peer,
        }
    }

    fn queue(ids: impl IntoIterator<Item = u64>) -> AcceptQueue {
        let queue = AcceptQueue::new();
        for id in ids {
            queue.push(delivered(id, false, None));
        }
        queue
    }

    fn ids(queue: &AcceptQueue) -> Vec<u64> {
        std::iter::from_fn(|| queue.pop()).map(|delivered| delivered.message.rpc.id.0).collect()
    }

    #[test]
    fn messages_come_out_in_their_order_and_take_no_memory_then() {
        let queue = queue([1, 2, 3]);
        assert!(queue.bytes() > 0);
        assert_eq!(ids(&queue), [1, 2, 3]);
        assert_eq!(queue.bytes(), 0);
    }

    #[test]
    fn one_way_messages_that_are_late_are_left_out_and_requests_are_not() {
        let queue = queue([]);
        let at = Time::from_nanos;
        for (id, is_one_way, deadline) in [
            (1, true, Some(at(5))),
            (2, true, Some(at(6))),
            (3, false, Some(at(5))),
            (4, true, None),
        ] {
            queue.push(delivered(id, is_one_way, deadline));
        }
        let left: Vec<u64> = std::iter::from_fn(|| queue.pop_wanted(|| at(6)))
            .map(|delivered| delivered.message.rpc.id.0)
            .collect();
        assert_eq!(left, [2, 3, 4]);
    }

    #[test]
    fn requests_that_are_to_wait_are_taken_out_in_their_order() {
        let queue = queue([1, 2, 3, 4]);
        let taken = queue.take_if(|delivered| delivered.message.rpc.id.0 % 2 == 0);
        let taken: Vec<u64> = taken.iter().map(|delivered| delivered.message.rpc.id.0).collect();
        assert_eq!(taken, [2, 4]);
        assert_eq!(ids(&queue), [1, 3]);
        assert!(queue.is_empty());
    }

    #[test]
    fn request_that_is_not_wanted_any_more_is_taken_out() {
        let queue = queue([1, 2, 3]);
        assert!(queue.remove(rpc(2)) && !queue.remove(rpc(2)));
        assert_eq!(ids(&queue), [1, 3]);
        assert!(queue.is_empty());
    }
}
