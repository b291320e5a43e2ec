// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A shipped node as a machine of the model.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use smt_peer_review::sim::observe;
use smt_peer_review::{Evidence, Group, Node, Output, Suspicion, Tree};

use super::LIAR;
use crate::{Machine, MessageId, Messages, NODES, Runs};

/// An input of a node.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum Input {
    /// A message of a node, whose name the transport has verified.
    Message(u32, MessageId),
    /// A part of the stream at its source.
    Part,
    Tick,
}

/// A correct node.
pub(super) struct Member {
    own: u32,
    node: Option<Node<Tree>>,
    messages: Messages,
    said: Vec<(u32, MessageId)>,
    delivered: Vec<Vec<u8>>,
    ticks: u32,
    has_part: bool,
}

/// A state of a node.
pub(super) struct Seen {
    /// Its messages with their receivers, each once.
    pub(super) said: Vec<(u32, MessageId)>,
    /// The parts of the stream that it has delivered.
    pub(super) delivered: Vec<Vec<u8>>,
    /// The evidence that it has.
    pub(super) evidence: Vec<Evidence>,
    /// Why it suspects the liar.
    pub(super) suspicions: Vec<Suspicion>,
    /// The index up to which it has audited the liar.
    pub(super) audited: u64,
    /// How many of its messages to the liar have no receipt.
    pub(super) waiting: usize,
    pub(super) ticks: u32,
    pub(super) has_part: bool,
}

/// The runs of the nodes of a group.
pub(super) fn members(group: &Arc<Group>, messages: &Messages) -> Runs<Member> {
    let (group, messages) = (group.clone(), messages.clone());
    Runs::new(move |own| Member {
        own,
        node: observe::node(&group, own),
        messages: messages.clone(),
        said: Vec::new(),
        delivered: Vec::new(),
        ticks: 0,
        has_part: false,
    })
}

impl Machine for Member {
    type Input = Input;
    type Seen = Seen;

    fn take(&mut self, input: &Input) {
        let Some(node) = &mut self.node else {
            return;
        };
        match input {
            Input::Message(from, it) => node.receive(*from, &self.messages.bytes(*it)),
            Input::Part => self.has_part = node.local(b"part".to_vec()),
            Input::Tick => {
                self.ticks += 1;
                node.tick();
            }
        }
        for output in node.outputs() {
            for (to, bytes) in output.to_nodes(self.own, NODES) {
                let said = (to, self.messages.number(bytes));
                if !self.said.contains(&said) {
                    self.said.push(said);
                }
            }
            if let Output::Host(delivered) = output {
                self.delivered.push(delivered);
            }
        }
    }

    fn see(&mut self) -> ([u8; 32], Seen) {
        let mut hash = Sha256::new();
        hash.update(self.node.as_ref().map(observe::state).unwrap_or_default());
        let mut said = self.said.clone();
        said.sort_unstable();
        hash.update(format!("{said:?}{:?}", self.delivered));
        let node = self.node.as_ref();
        let evidence = (0..3).filter_map(|it| node?.evidence(it).cloned()).collect();
        let seen = Seen {
            said,
            delivered: self.delivered.clone(),
            evidence,
            suspicions: node.map(|it| it.suspicions(LIAR)).unwrap_or_default(),
            audited: node.and_then(|it| it.audited(LIAR)).unwrap_or(0),
            waiting: node.map_or(0, |it| observe::waiting(it, LIAR)),
            ticks: self.ticks,
            has_part: self.has_part,
        };
        (hash.finalize().into(), seen)
    }
}
