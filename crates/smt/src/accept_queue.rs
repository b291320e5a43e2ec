// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages of peers that one acceptor has taken for those after it, so that not each of them needs
//! the endpoint's lock.
//!
//! The endpoint fills the queue, and takes out of it requests whose callers have given up;
//! acceptors empty it. Messages in the queue count as not taken by the application (SPEC §10).

use std::collections::VecDeque;

use smt_proto::RpcId;

use crate::message::Incoming;
use crate::sync::{AtomicUsize, Mutex, MutexGuard, Ordering, PoisonError};

/// Messages in the order in which they came.
#[derive(Debug)]
pub(crate) struct AcceptQueue {
    waiting: Mutex<VecDeque<Incoming>>,
    bytes: AtomicUsize,
}

impl AcceptQueue {
    pub(crate) fn new() -> Self {
        Self {
            waiting: Mutex::default(),
            bytes: AtomicUsize::new(0),
        }
    }

    /// Adds a message.
    pub(crate) fn push(&self, incoming: Incoming) {
        self.bytes.fetch_add(incoming.cost(), Ordering::Relaxed);
        self.lock().push_back(incoming);
    }

    /// The first message.
    pub(crate) fn pop(&self) -> Option<Incoming> {
        if self.is_empty() {
            return None;
        }
        let incoming = self.lock().pop_front()?;
        self.bytes.fetch_sub(incoming.cost(), Ordering::Relaxed);
        Some(incoming)
    }

    /// Takes out a request whose caller has given up. Returns whether it was there.
    pub(crate) fn remove(&self, rpc: RpcId) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut waiting = self.lock();
        let place = waiting
            .iter()
            .position(|incoming| incoming.message.rpc == rpc);
        let removed = place.and_then(|place| waiting.remove(place));
        if let Some(incoming) = &removed {
            self.bytes.fetch_sub(incoming.cost(), Ordering::Relaxed);
        }
        removed.is_some()
    }

    /// Takes out the requests that are to wait for something else.
    pub(crate) fn take_if(&self, mut waits: impl FnMut(&Incoming) -> bool) -> Vec<Incoming> {
        let mut waiting = self.lock();
        let (taken, left) = waiting
            .drain(..)
            .partition::<VecDeque<_>, _>(|one| waits(one));
        *waiting = left;
        let bytes = taken.iter().map(Incoming::cost).sum();
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

    fn lock(&self) -> MutexGuard<'_, VecDeque<Incoming>> {
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
    use crate::message::Peer;
    use bytes::Bytes;
    use smt_proto::PeerMessage;
    use smt_wire::{MessageId, SessionIndex};
    use std::sync::Arc;

    fn rpc(id: u64) -> RpcId {
        RpcId {
            session: SessionIndex(1),
            id: MessageId(id),
        }
    }

    fn queue(ids: impl IntoIterator<Item = u64>) -> AcceptQueue {
        let peer = Arc::new(Peer {
            address: "127.0.0.1:1".parse().unwrap(),
            certificates: Vec::new(),
            key_name: None,
            key_identity: None,
            message_max: 1,
        });
        let queue = AcceptQueue::new();
        for id in ids {
            queue.push(Incoming {
                message: PeerMessage {
                    rpc: rpc(id),
                    body: Bytes::new(),
                    deadline: None,
                    is_one_way: false,
                },
                peer: Arc::clone(&peer),
            });
        }
        queue
    }

    fn ids(queue: &AcceptQueue) -> Vec<u64> {
        std::iter::from_fn(|| queue.pop())
            .map(|incoming| incoming.message.rpc.id.0)
            .collect()
    }

    #[test]
    fn messages_come_out_in_their_order_and_take_no_memory_then() {
        let queue = queue([1, 2, 3]);
        assert!(queue.bytes() > 0);
        assert_eq!(ids(&queue), [1, 2, 3]);
        assert_eq!(queue.bytes(), 0);
    }

    #[test]
    fn requests_that_are_to_wait_are_taken_out_in_their_order() {
        let queue = queue([1, 2, 3, 4]);
        let taken = queue.take_if(|incoming| incoming.message.rpc.id.0 % 2 == 0);
        let taken: Vec<u64> = taken
            .iter()
            .map(|incoming| incoming.message.rpc.id.0)
            .collect();
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
