// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What has come of messages, and who waits for it.

use std::task::{Poll, Waker};

use foldhash::{HashMap, HashMapExt};
use smt_proto::RpcId;

/// Outcomes that are not there yet, or not fetched.
#[derive(Debug)]
pub(crate) struct Outcomes<T>(HashMap<RpcId, Waiting<T>>);

/// An outcome that somebody waits for.
#[derive(Debug)]
struct Waiting<T> {
    outcome: Option<T>,
    waker: Option<Waker>,
}

impl<T> Outcomes<T> {
    pub(crate) fn new() -> Self {
        Self(HashMap::new())
    }

    /// A message has begun.
    pub(crate) fn expect(&mut self, rpc: RpcId) {
        let waiting = Waiting {
            outcome: None,
            waker: None,
        };
        self.0.insert(rpc, waiting);
    }

    /// This has come of it. Nobody waits any more for what was forgotten.
    pub(crate) fn finish(&mut self, rpc: RpcId, outcome: T) {
        let Some(waiting) = self.0.get_mut(&rpc) else {
            return;
        };
        waiting.outcome = Some(outcome);
        if let Some(waker) = waiting.waker.take() {
            waker.wake();
        }
    }

    /// The outcome, once; else `waker` is woken when it is there.
    pub(crate) fn poll(&mut self, rpc: RpcId, waker: &Waker) -> Poll<T> {
        let waiting = self
            .0
            .get_mut(&rpc)
            .expect("polled only between its beginning and its outcome");
        match waiting.outcome.take() {
            Some(outcome) => {
                self.0.remove(&rpc);
                Poll::Ready(outcome)
            }
            None => {
                match &mut waiting.waker {
                    Some(known) => known.clone_from(waker),
                    None => waiting.waker = Some(waker.clone()),
                }
                Poll::Pending
            }
        }
    }

    /// Nobody waits any more. Whether the message is still in progress.
    pub(crate) fn forget(&mut self, rpc: RpcId) -> bool {
        self.0
            .remove(&rpc)
            .is_some_and(|waiting| waiting.outcome.is_none())
    }
}
