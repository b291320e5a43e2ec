// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client: signs requests, and takes an answer that f + 1 replicas give alike.

use std::collections::BTreeMap;
use std::sync::Arc;

use smt_replica::{Digest, Group, Reply, Request, SigningKey};

use crate::message::Message;
use crate::replica::Output;
use crate::rule::{Broken, Rule};

/// A client with one request at a time.
pub struct Client {
    group: Arc<Group>,
    number: u32,
    key: SigningKey,
    last: u64,
    current: Option<Current>,
    /// The view of each replica, as its replies say.
    pub(crate) views: BTreeMap<u32, u64>,
    outputs: Vec<Output>,
    pub(crate) broken: Broken,
}

struct Current {
    request: Request,
    digest: Digest,
    answers: BTreeMap<u32, Vec<u8>>,
    waited: u32,
}

impl Current {
    fn is_answered_by(&self, reply: &Reply) -> bool {
        reply.number == self.request.number && reply.request == self.digest
    }
}

impl Client {
    /// A client whose earlier requests had numbers up to `last`. The caller keeps that number over
    /// restarts, or takes one from a clock.
    pub fn new(group: Arc<Group>, number: u32, key: SigningKey, last: u64) -> Self {
        let (current, views, outputs) = (None, BTreeMap::new(), Vec::new());
        Self { group, number, key, last, current, views, outputs, broken: Broken::default() }
    }

    /// Begins a request, with random bytes as its nonce. The one before is given up.
    pub fn submit(&mut self, nonce: [u8; 16], operation: Vec<u8>) -> u64 {
        self.last += 1;
        let request = Request::sign(&self.key, self.number, self.last, (nonce, operation));
        let bytes = Message::Request(request.clone()).encode();
        self.outputs.push(Output::Replica(self.group.leader(self.view()), bytes));
        let digest = request.digest();
        self.current = Some(Current { request, digest, answers: BTreeMap::new(), waited: 0 });
        self.last
    }

    /// Takes a message, and returns the answer when f + 1 replicas have given it.
    pub fn receive(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let Some(Message::Reply(reply)) = Message::decode(bytes) else {
            return None;
        };
        let waits_for_it = self.current.as_ref().is_some_and(|it| it.is_answered_by(&reply));
        // A signature costs most, so that late answers are dropped before.
        if !(waits_for_it || self.broken.lacks(Rule::ReplyDigest)) || !self.is_genuine(&reply) {
            return None;
        }
        let view = self.views.entry(reply.replica).or_default();
        *view = reply.view.max(*view);
        let current = self.current.as_mut()?;
        current.answers.insert(reply.replica, reply.result.clone());
        let equal = current.answers.values().filter(|it| **it == reply.result).count();
        let lacks_quorum = self.broken.lacks(Rule::ReplyQuorum);
        if equal < self.group.quorum() && !lacks_quorum {
            return None;
        }
        self.current = None;
        Some(reply.result)
    }

    /// Time passes. A request that takes too long is sent to all replicas.
    pub fn tick(&mut self) {
        let timeout = self.group.options.timeout.max(2) / 2;
        let Some(current) = &mut self.current else {
            return;
        };
        current.waited = current.waited.saturating_add(1);
        if current.waited % timeout.max(1) == 0 {
            let bytes = Message::Request(current.request.clone()).encode();
            self.outputs.push(Output::Replicas(bytes));
        }
    }

    /// Whether a request waits for its answer.
    pub fn is_waiting(&self) -> bool {
        self.current.is_some()
    }

    /// All that is to be sent, in order.
    pub fn outputs(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    /// The latest view that f + 1 replicas are in or beyond: liars alone do not move it.
    pub(crate) fn view(&self) -> u64 {
        let mut views: Vec<u64> = self.views.values().copied().collect();
        views.sort_unstable_by(|a, b| b.cmp(a));
        views.get(self.group.faults()).copied().unwrap_or(0)
    }

    fn is_genuine(&self, reply: &Reply) -> bool {
        if reply.client != self.number {
            return false;
        }
        let Some(key) = self.group.reply_keys.get(reply.replica as usize) else {
            return false;
        };
        self.broken.lacks(Rule::ReplySignature) || reply.is_signed_by(key)
    }
}
