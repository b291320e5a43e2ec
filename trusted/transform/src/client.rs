// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client: signs requests, and takes a reply that f + 1 nodes endorse.

use std::collections::BTreeMap;
use std::sync::Arc;

use smt_replica::SigningKey;

use crate::group::Group;
use crate::message::{Message, Request};
use crate::node::Output;

/// After so many ticks a request is sent again.
const AGAIN: u32 = 10;

/// A client with one request at a time.
pub struct Client {
    group: Arc<Group>,
    number: u32,
    key: SigningKey,
    last: u64,
    current: Option<Current>,
    outputs: Vec<Output>,
}

struct Current {
    bytes: Vec<u8>,
    answers: BTreeMap<u32, Vec<u8>>,
    waited: u32,
}

impl Client {
    /// A client whose earlier requests had numbers up to `last`.
    pub fn new(group: Arc<Group>, number: u32, key: SigningKey, last: u64) -> Self {
        let (current, outputs) = (None, Vec::new());
        Self { group, number, key, last, current, outputs }
    }

    /// Begins a request. The one before is given up.
    pub fn submit(&mut self, operation: Vec<u8>) -> u64 {
        self.last += 1;
        let request = Request::sign(&self.key, self.number, self.last, operation);
        let bytes = Message::Request(request).encode();
        self.outputs.push(Output::Nodes(bytes.clone()));
        self.current = Some(Current { bytes, answers: BTreeMap::new(), waited: 0 });
        self.last
    }

    /// Takes a message, and returns the answer when f + 1 nodes have endorsed it.
    pub fn receive(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let Some(Message::Endorsement(it)) = Message::decode(bytes) else {
            return None;
        };
        let current = self.current.as_mut()?;
        // Before the work of a signature: each request has endorsements that come too late.
        if it.client != self.number || it.number != self.last {
            return None;
        }
        let key = self.group.nodes.get(it.node as usize)?;
        if !it.is_signed_by(key) {
            return None;
        }
        current.answers.insert(it.node, it.answer.clone());
        let equal = current.answers.values().filter(|answer| **answer == it.answer).count();
        if equal < self.group.quorum() {
            return None;
        }
        self.current = None;
        Some(it.answer)
    }

    /// Time passes.
    pub fn tick(&mut self) {
        if let Some(current) = &mut self.current {
            current.waited += 1;
            if current.waited % AGAIN == 0 {
                self.outputs.push(Output::Nodes(current.bytes.clone()));
            }
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
}

#[cfg(feature = "sim")]
impl smt_replica::sim::SystemClient for Client {
    type Output = Output;

    fn submit(&mut self, _nonce: [u8; 16], operation: Vec<u8>) -> Option<u64> {
        (!self.is_waiting()).then(|| self.submit(operation))
    }

    fn receive(&mut self, bytes: &[u8]) -> Option<smt_replica::Completion> {
        let result = Ok(self.receive(bytes)?);
        Some(smt_replica::Completion { number: self.last, result })
    }

    fn tick(&mut self) {
        self.tick();
    }

    fn outputs(&mut self) -> Vec<Output> {
        self.outputs()
    }
}
