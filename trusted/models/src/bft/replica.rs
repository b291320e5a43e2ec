// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A shipped replica as a machine of the model.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use smt_bft::sim::observe::{self, Observed};
use smt_bft::{Counter, Group, Message, Output, Replica, Rule};

use crate::{Machine, MessageId, Messages, Runs};

/// An input of a replica.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum Input {
    Message(MessageId),
    Tick,
}

/// A correct replica, or one that lacks a check.
pub(super) struct Member {
    replica: Option<Replica<Counter>>,
    messages: Messages,
    said: Vec<MessageId>,
    replies: Vec<MessageId>,
}

/// A state of a replica.
pub(super) struct Seen {
    pub(super) observed: Observed,
    /// The statements of its device, in order.
    pub(super) said: Vec<MessageId>,
    /// Its replies, each once.
    pub(super) replies: Vec<MessageId>,
}

/// The runs of the replicas of a group.
pub(super) fn members(
    group: &Arc<Group>,
    messages: &Messages,
    lacking: Option<Rule>,
) -> Runs<Member> {
    let (group, messages) = (group.clone(), messages.clone());
    Runs::new(move |own| {
        // A group of three fits each device.
        let replica = observe::replica(&group, own, lacking).ok();
        Member { replica, messages: messages.clone(), said: Vec::new(), replies: Vec::new() }
    })
}

/// The requests of so many shipped clients, which add 1, 2 and so on to the counter.
pub(super) fn requests(group: &Arc<Group>, count: usize, messages: &Messages) -> Vec<MessageId> {
    let request = |client: u32| {
        let mut it = observe::client(group, client, None);
        it.submit([client as u8; 16], u64::from(client).to_be_bytes().to_vec());
        match it.outputs().pop() {
            Some(Output::Replica(_, bytes)) => Some(messages.number(&bytes)),
            _ => None,
        }
    };
    (1..).take(count).filter_map(request).collect()
}

impl Machine for Member {
    type Input = Input;
    type Seen = Seen;

    fn take(&mut self, input: &Input) {
        let Some(replica) = &mut self.replica else {
            return;
        };
        match input {
            Input::Message(it) => replica.receive(&self.messages.bytes(*it)),
            Input::Tick => replica.tick(),
        }
        for output in replica.outputs() {
            let (Output::Replicas(bytes) | Output::Replica(_, bytes) | Output::Client(_, bytes)) =
                output;
            match Message::decode(&bytes) {
                Some(Message::Statement(_)) => self.said.push(self.messages.number(&bytes)),
                Some(Message::Reply(_)) => {
                    let number = self.messages.number(&bytes);
                    if !self.replies.contains(&number) {
                        self.replies.push(number);
                    }
                }
                // Questions and requests that are passed on: the network delivers all anyway.
                _ => {}
            }
        }
    }

    fn see(&self) -> ([u8; 32], Seen) {
        let observed = self.replica.as_ref().map(observe::observe).unwrap_or_default();
        let mut hash = Sha256::new();
        hash.update(observed.fingerprint);
        // Messages have one number each within a model.
        hash.update(format!("{:?}{:?}", self.said, self.replies));
        let (said, replies) = (self.said.clone(), self.replies.clone());
        (hash.finalize().into(), Seen { observed, said, replies })
    }
}
