// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A shipped node as a machine of a model.

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
    node: Option<S::Node>,
    said: Vec<MessageId>,
    others: Vec<MessageId>,
}

impl<S: System> Member<S> {
    /// A node before its first input.
    pub(crate) fn new(system: Arc<S>, messages: Messages, own: u32) -> Self {
        let node = system.node(own);
        let mut member = Self { system, messages, node, said: Vec::new(), others: Vec::new() };
        member.hear();
        member
    }

    fn hear(&mut self) {
        let said = self.node.as_mut().map(|it| self.system.said(it)).unwrap_or_default();
        for it in said {
            match it {
                Said::Statement(bytes) => note(&mut self.said, self.messages.number(&bytes)),
                Said::Other(bytes) => note(&mut self.others, self.messages.number(&bytes)),
            }
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

    fn see(&self) -> ([u8; 32], Self::Seen) {
        let observed = self.node.as_ref().map(|it| self.system.observe(it));
        let (view, observed) = match observed {
            Some((view, observed)) => (view, Some(Arc::new(observed))),
            None => Default::default(),
        };
        let mut hash = Sha256::new();
        hash.update(view.fingerprint);
        // A message has one number within a model. In which order others were said plays no part.
        let mut others = self.others.clone();
        others.sort_unstable();
        hash.update(format!("{:?}{others:?}", self.said));
        (hash.finalize().into(), Seen { view, observed, said: self.said.clone(), others })
    }
}
