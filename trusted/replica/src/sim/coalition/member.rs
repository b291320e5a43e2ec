// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A liar of several.

use std::collections::BTreeSet;

use smt_attestor::Attested;

use crate::node::Node;
use crate::sim::coalition::Lie;
use crate::sim::step::StepName;
use crate::sim::system::{System, To, messages};

/// A liar of several: a node that follows the protocol with some, and more that its host has
/// attested.
pub struct Member<S: System> {
    /// The node.
    pub core: S::Node,
    /// The correct nodes with which it follows the protocol.
    pub with: BTreeSet<u32>,
    /// Its number.
    pub own: u32,
    /// Notes on its statements, for choices that depend on it.
    pub notes: S::Notes,
    nodes: u32,
    /// All that its device has attested, as messages, and the step that each comes from.
    said: Vec<(Vec<u8>, StepName<S::Name>)>,
    /// The counter up to which `said` has all of this epoch.
    counted: u64,
    /// How much of `said` each node was shown.
    shown: Vec<usize>,
}

impl<S: System> Member<S> {
    pub(super) fn new(core: S::Node, own: u32, nodes: u32) -> Self {
        Self {
            core,
            with: BTreeSet::new(),
            own,
            notes: S::Notes::default(),
            nodes,
            said: Vec::new(),
            counted: 0,
            shown: vec![0; nodes as usize],
        }
    }

    /// Notes what its node has said.
    pub(super) fn collect(&mut self, name: StepName<S::Name>) {
        for it in S::said(&self.core, self.counted) {
            self.note(it, name);
        }
    }

    fn note(&mut self, it: Attested, name: StepName<S::Name>) {
        let Some(header) = it.attestation().claim() else {
            return;
        };
        self.counted = header.counter;
        S::note(&mut self.notes, &it.body);
        self.said.push((S::statement(it), name));
    }

    /// Has a statement attested, and tells nobody.
    pub fn says(&mut self, body: &[u8], name: StepName<S::Name>) -> Option<Attested> {
        self.collect(StepName::Follow);
        let said = S::attest(&mut self.core, body)?;
        self.note(said.clone(), name);
        Some(said)
    }

    /// Does something, and returns whether it has said anything.
    pub(super) fn acts(&mut self, name: StepName<S::Name>, act: impl FnOnce(&mut S::Node)) -> bool {
        self.collect(StepName::Follow);
        let before = self.said.len();
        act(&mut self.core);
        self.collect(name);
        self.said.len() > before
    }

    /// Begins another epoch, in which its device and its notes begin anew.
    pub fn restart(&mut self, name: StepName<S::Name>, restart: impl FnOnce(&mut S::Node)) {
        self.collect(StepName::Follow);
        restart(&mut self.core);
        (self.counted, self.notes) = (0, S::Notes::default());
        self.collect(name);
    }

    /// All that a node was not shown, but for the last `held` statements.
    pub(super) fn show(&mut self, to: u32, held: usize, name: StepName<S::Name>) -> Vec<Lie<S>> {
        self.collect(StepName::Follow);
        let end = self.said.len().saturating_sub(held);
        let Some(shown) = self.shown.get_mut(to as usize).filter(|it| **it < end) else {
            return Vec::new();
        };
        let begin = std::mem::replace(shown, end);
        let from = self.own;
        let lie = |(bytes, step): &(Vec<u8>, StepName<S::Name>)| {
            let (to, bytes) = (To::Node(to), bytes.clone());
            Lie { from, to, bytes, steps: vec![*step, name] }
        };
        self.said[begin..end].iter().map(lie).collect()
    }

    /// All that its node sends to those with whom it follows the protocol, and to other liars.
    pub(super) fn outputs(&mut self, liars: &[u32]) -> Vec<Lie<S>> {
        self.collect(StepName::Follow);
        let mut sent = Vec::new();
        let hears: Vec<u32> = self.with.iter().chain(liars).copied().collect();
        for to in &hears {
            sent.extend(self.show(*to, 0, StepName::Follow));
        }
        let from = self.own;
        let lie = |to, bytes| Lie { from, to, bytes, steps: vec![StepName::Follow] };
        for output in self.core.outputs() {
            let messages = messages::<S>(output, Some(from), self.nodes);
            if let [(_, bytes), _, ..] = &messages[..] {
                // Statements were shown before.
                let message = S::Node::decode(bytes);
                if message.is_some_and(|it| S::Node::statement(&it).is_none()) {
                    sent.extend(hears.iter().map(|to| lie(To::Node(*to), bytes.clone())));
                }
                continue;
            }
            let is_heard = |to: &To| !matches!(to, To::Node(to) if !hears.contains(to));
            sent.extend(
                messages.into_iter().filter(|it| is_heard(&it.0)).map(|it| lie(it.0, it.1)),
            );
        }
        sent
    }
}
