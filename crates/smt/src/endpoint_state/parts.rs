// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parts of calls: those who wait for one to come, or for room to send one.

use std::collections::{BTreeMap, VecDeque};
use std::task::{Poll, Waker};

use bytes::Bytes;
use smt_proto::{Body, Refused, RpcId, TakenPart, Time};
use smt_wire::SessionIndex;

use super::EndpointState;

/// The readers and writers of parts that wait, one of each for a call.
#[derive(Debug, Default)]
pub(super) struct PartWaiters {
    readers: BTreeMap<RpcId, Waker>,
    writers: BTreeMap<RpcId, Waker>,
}

impl PartWaiters {
    /// The waker of the reader of a call, of which a part has come.
    pub(super) fn part_is_ready(&mut self, rpc: RpcId) -> Option<Waker> {
        self.readers.remove(&rpc)
    }

    /// The waker of the writer of a call, which has room for a part.
    pub(super) fn window_is_raised(&mut self, rpc: RpcId) -> Option<Waker> {
        self.writers.remove(&rpc)
    }

    /// The wakers of reader and writer of a call that is over.
    pub(super) fn call_is_over(&mut self, rpc: RpcId) -> impl Iterator<Item = Waker> + use<> {
        let reader = self.readers.remove(&rpc);
        reader.into_iter().chain(self.writers.remove(&rpc))
    }

    /// The wakers of all who wait.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Waker> + use<> {
        let Self { readers, writers } = std::mem::take(self);
        readers.into_values().chain(writers.into_values())
    }
}

/// The parts of replies whose calls have ended otherwise: their readers get them before the error.
#[derive(Debug, Default)]
pub(super) struct PartsLeft(BTreeMap<RpcId, Vec<Bytes>>);

impl PartsLeft {
    /// Keeps the parts of a call until its reader takes them.
    pub(super) fn keep(&mut self, rpc: RpcId, parts: Vec<Bytes>) {
        self.0.insert(rpc, parts);
    }

    /// Takes the parts of a call out.
    pub(super) fn take(&mut self, rpc: RpcId) -> Option<Vec<Bytes>> {
        self.0.remove(&rpc)
    }
}

/// A part to be sent.
#[derive(Debug)]
pub(crate) struct OutgoingPart {
    pub(crate) body: Body,
    /// Whether further parts follow.
    pub(crate) more: bool,
}

impl EndpointState {
    /// Takes parts that have come into `parts`: a few at once, so that a reader does not take the
    /// lock for each. Ready if there is one; `true` says that all were taken, and that there are no
    /// more.
    pub(crate) fn poll_take_parts(
        &mut self,
        rpc: RpcId,
        parts: &mut VecDeque<Bytes>,
        waker: &Waker,
    ) -> Poll<Result<bool, Refused>> {
        if let Some(left) = self.parts_left.take(rpc) {
            parts.extend(left);
            return Poll::Ready(Ok(false));
        }
        let mut bytes = 0;
        while bytes < TAKEN_BYTES_MAX && parts.len() < TAKEN_MAX {
            match self.endpoint.take_part(rpc) {
                Ok(Some(TakenPart::Part(part))) => {
                    bytes += part.len();
                    parts.push_back(part);
                }
                Ok(Some(TakenPart::End)) => return Poll::Ready(Ok(true)),
                Ok(None) => break,
                Err(_) if !parts.is_empty() => break,
                Err(refused) => return Poll::Ready(Err(refused)),
            }
        }
        if parts.is_empty() {
            self.part_waiters.readers.insert(rpc, waker.clone());
            return Poll::Pending;
        }
        Poll::Ready(Ok(false))
    }

    /// Sends a part of a call; waits while its reader's window or that of ids is full.
    pub(crate) fn poll_send_part(
        &mut self,
        now: Time,
        rpc: RpcId,
        part: OutgoingPart,
        waker: &Waker,
    ) -> Poll<Result<(), Refused>> {
        let OutgoingPart { body, more } = part;
        let length = body.len();
        let sent = self.endpoint.send_part(now, rpc, body, more);
        if sent == Err(Refused::PartWindowFull) {
            self.part_waiters.writers.insert(rpc, waker.clone());
            return Poll::Pending;
        }
        self.cork.add(length);
        self.admit(sent, waker)
    }

    /// Gives up a call of whose request not all parts were sent, unless its reply has come.
    pub(crate) fn cut_short(&mut self, now: Time, rpc: RpcId) {
        self.endpoint.cut_short(now, rpc);
    }

    /// Bytes of the longest part that the peer of a session takes.
    pub(crate) fn part_max(&self, session: SessionIndex) -> usize {
        let facts = self.endpoint.session(session);
        facts.map_or(0, |facts| facts.part_max as usize)
    }
}

/// Parts that a reader takes at once, and bytes of them: they count no more in its window.
const TAKEN_MAX: usize = 32;
const TAKEN_BYTES_MAX: usize = 64 * 1_024;

#[cfg(test)]
mod tests {
    use super::*;
    use smt_wire::MessageId;

    fn rpc(id: u64) -> RpcId {
        RpcId { session: SessionIndex(1), id: MessageId(id) }
    }

    #[test]
    fn readers_and_writers_of_a_call_are_woken_apart_and_together_at_its_end() {
        let waker = || Waker::noop().clone();
        let mut waiters = PartWaiters::default();
        waiters.readers.insert(rpc(1), waker());
        waiters.writers.insert(rpc(1), waker());
        waiters.readers.insert(rpc(2), waker());
        assert!(waiters.window_is_raised(rpc(2)).is_none());
        assert!(waiters.part_is_ready(rpc(2)).is_some());
        assert!(waiters.part_is_ready(rpc(2)).is_none(), "it is woken once");
        assert_eq!(waiters.call_is_over(rpc(1)).count(), 2);
        assert_eq!(waiters.take_all().count(), 0);
    }
}
