// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A shipped node as a machine of a model.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::system::{Said, Seen, System};
use crate::{Machine, MessageId, Messages};

/// An input of a node.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Input<E> {
    /// A message.
    Message(MessageId),
    /// Something else.
    Event(E),
}

/// A correct node.
pub struct Member<S: System> {
    system: Arc<S>,
    messages: Messages,
    pub(crate) node: Option<S::Node>,
    said: BTreeMap<u64, Vec<MessageId>>,
    others: Vec<MessageId>,
    given: Vec<((u64, u64), MessageId)>,
}

impl<S: System> Member<S> {
    /// A node before its first input.
    pub(crate) fn new(system: Arc<S>, messages: Messages, own: u32) -> Self {
        let node = system.node(own);
        let (said, others, given) = <_>::default();
        let mut member = Self { system, messages, node, said, others, given };
        member.hear();
        member
    }

    fn hear(&mut self) {
        let Some(node) = &mut self.node else {
            return;
        };
        let epoch = self.system.epoch(node);
        for it in self.system.said(node) {
            match it {
                Said::Statement(bytes) => {
                    note(self.said.entry(epoch).or_default(), self.messages.number(&bytes));
                }
                Said::Other(bytes) => note(&mut self.others, self.messages.number(&bytes)),
            }
        }
        if self.system.remembered() > 0 {
            self.give();
        }
    }

    /// Notes what it gives: the last message of each kind, that of now as the last of all.
    fn give(&mut self) {
        if let Some((kind, bytes)) = self.node.as_ref().and_then(|it| self.system.gives(it)) {
            self.given.retain(|it| it.0 != kind);
            self.given.push((kind, self.messages.number(&bytes)));
            let old = self.given.len().saturating_sub(self.system.remembered() + 1);
            self.given.drain(..old);
        }
    }
}

/// Notes a message, once.
fn note(messages: &mut Vec<MessageId>, message: MessageId) {
    if !messages.contains(&message) {
        messages.push(message);
    }
}

impl<S: System> Machine for Member<S> {
    type Input = Input<S::Event>;
    type Seen = Seen<S::Observed>;

    fn take(&mut self, input: &Self::Input) {
        if let Some(node) = &mut self.node {
            match input {
                Input::Message(it) => self.system.receive(node, &self.messages.bytes(*it)),
                Input::Event(it) => self.system.happen(node, *it),
            }
        }
        self.hear();
    }

    fn see(&mut self) -> ([u8; 32], Self::Seen) {
        self.give();
        let observed = self.node.as_mut().map(|it| self.system.observe(it));
        let epoch = self.node.as_ref().map_or(1, |it| self.system.epoch(it));
        let (view, observed) = match observed {
            Some((view, observed)) => (view, Some(Arc::new(observed))),
            None => Default::default(),
        };
        let mut hash = Sha256::new();
        hash.update(view.fingerprint);
        // A message has one number within a model. In which order others were said plays no part.
        let mut others = self.others.clone();
        others.sort_unstable();
        hash.update(format!("{:?}{others:?}{:?}", self.said, self.given));
        let given = self.given.iter().map(|it| it.1).collect();
        let (said, others) = (self.said.clone(), self.others.clone());
        (hash.finalize().into(), Seen { view, observed, epoch, said, given, others })
    }
}
