// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls in parts: what the two applications have sent and taken of each.

use bytes::Bytes;
use smt_proto::{PartMarks, Refused, RpcId, TakenPart};

use super::World;
use super::applications::nth;
use super::ledger::Name;

/// The parts of one direction of a call.
#[derive(Default)]
pub(crate) struct Parts {
    sent: Vec<Bytes>,
    taken: usize,
    /// The last one was sent.
    has_ended: bool,
}

impl Parts {
    /// Whether the reader has all of them.
    pub(crate) fn are_taken(&self) -> bool {
        self.taken == self.sent.len()
    }

    /// The lengths of the parts that were sent and not taken.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = usize> {
        self.sent[self.taken..].iter().map(Bytes::len)
    }

    fn take(&mut self, taken: &TakenPart) {
        match taken {
            TakenPart::Part(body) => {
                let sent = self.sent.get(self.taken).expect("a part that nobody sent");
                assert!(sent == body, "another part than the next, or other bytes");
                self.taken += 1;
            }
            TakenPart::End => assert!(self.has_ended && self.are_taken(), "parts are missing"),
        }
    }
}

/// Which parts a call has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HasParts {
    pub(crate) of_request: bool,
    pub(crate) of_reply: bool,
}

impl HasParts {
    pub(crate) fn marks(self) -> PartMarks {
        PartMarks { reply_in_parts: self.of_reply, more: self.of_request, number: 0 }
    }
}

impl World {
    /// Sends a part of a call in progress. `more` counts for requests alone.
    pub(crate) fn send_part(&mut self, which: usize, of_reply: bool, size: usize, more: bool) {
        let sendable = self.ledger.messages.iter();
        let sendable = sendable.filter(|(_, message)| message.has_writer(of_reply));
        let Some(name) = nth(sendable.map(|(name, _)| name), which) else {
            return;
        };
        let from = self.ledger.messages[&name].from;
        let node = if of_reply { 1 - from } else { from };
        let (rpc, body) = (self.ledger.rpc(node, name), self.body(size));
        let endpoint = &mut self.nodes[node].endpoint;
        let outcome = endpoint.send_part(self.now, rpc, body.clone(), more);
        let message = self.ledger.messages.get_mut(&name).expect("just found");
        let parts = &mut message.parts[usize::from(of_reply)];
        match outcome {
            Ok(()) => {
                assert!(!parts.has_ended, "a part behind the last");
                // A last part without bytes is none.
                let is_last = !more && !of_reply;
                parts.has_ended = is_last;
                if !is_last || !body.is_empty() {
                    parts.sent.push(body);
                }
            }
            Err(Refused::NoRpc) => assert!(parts.has_ended, "the call takes parts"),
            Err(Refused::Blocked) => {
                self.ledger.blocked.insert((node, rpc.session));
            }
            Err(Refused::PartWindowFull | Refused::TooLarge { .. }) => {}
            Err(other) => panic!("a live call refuses a part: {other}"),
        }
        self.settle();
    }

    /// The reader of a call's parts takes those that have come.
    pub(crate) fn take_parts(&mut self, which: usize, of_reply: bool) {
        let readable = self.ledger.messages.iter();
        let readable = readable.filter(|(_, message)| message.has_reader(of_reply));
        if let Some(name) = nth(readable.map(|(name, _)| name), which) {
            self.take_parts_of(name, of_reply);
            self.settle();
        }
    }

    /// Readers take all that waits: in the end nothing else holds up a reply.
    pub(crate) fn take_all_parts(&mut self) {
        let names: Vec<Name> = self.ledger.messages.keys().copied().collect();
        for name in names {
            for of_reply in [false, true] {
                if self.ledger.messages[&name].has_reader(of_reply) {
                    self.take_parts_of(name, of_reply);
                    self.settle();
                }
            }
        }
    }

    /// An event says that a part has come. An honest network ends soon, and with it the patience of
    /// readers.
    pub(super) fn part_is_ready(&mut self, node: usize, rpc: RpcId) {
        let name = self.ledger.name(node, rpc);
        let of_reply = self.ledger.messages[&name].from == node;
        if self.honest_since.is_some() {
            self.take_parts_of(name, of_reply);
        }
    }

    fn take_parts_of(&mut self, name: Name, of_reply: bool) {
        let from = self.ledger.messages[&name].from;
        let node = if of_reply { from } else { 1 - from };
        let rpc = self.ledger.rpc(node, name);
        // The last part of a reply may end the call.
        while let Ok(Some(taken)) = self.nodes[node].endpoint.take_part(rpc) {
            let message = self.ledger.messages.get_mut(&name).expect("it was sent");
            message.parts[usize::from(of_reply)].take(&taken);
            if taken == TakenPart::End {
                break;
            }
        }
    }
}
