// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs in which liars work together: what they send, and what it changes.

use std::collections::BTreeSet;

use crate::sim::coalition::Lie;
use crate::sim::host::Host;
use crate::sim::step::StepName;
use crate::sim::system::{System, To};
use crate::sim::world::{Happening, World};

/// The most that a message of a liar takes.
const DELAY: u64 = 12;

/// The lies that a node has heard since its numbers were looked at.
pub(super) struct Effects<S: System> {
    before: Vec<u64>,
    heard: BTreeSet<StepName<S::Name>>,
}

impl<S: System> Default for Effects<S> {
    fn default() -> Self {
        Self { before: Vec::new(), heard: BTreeSet::new() }
    }
}

impl<S: System> World<S> {
    /// The host of a liar of several, which begins as a correct node.
    pub fn join(&mut self, number: u32, core: Option<S::Node>) -> Host<S> {
        if let (Some(core), Some(coalition)) = (core, &mut self.coalition) {
            coalition.join(number, core);
        }
        Host::Together
    }

    pub(super) fn coalition_tick(&mut self) {
        let may_part = self.schedule.now() < self.conditions.course.honest;
        let correct: Vec<_> = self.hosts.iter().map(Host::correct).collect();
        let Some(coalition) = &mut self.coalition else {
            return;
        };
        let lies = coalition.tick(&correct, may_part);
        self.send_lies(lies);
    }

    /// A message for a liar of the coalition.
    pub(super) fn tell_coalition(&mut self, number: u32, from: Option<u32>, bytes: &[u8]) {
        let Some(coalition) = &mut self.coalition else {
            return;
        };
        coalition.receive(number, from, bytes);
        let lies = coalition.outputs();
        self.send_lies(lies);
    }

    /// The network loses no lie.
    fn send_lies(&mut self, lies: Vec<Lie<S>>) {
        let at = self.schedule.now() + 1 + self.random.below(DELAY);
        lies.into_iter().for_each(|it| self.schedule.at(at, Happening::Lie(it)));
    }

    pub(super) fn deliver_lie(&mut self, lie: &Lie<S>) {
        if let To::Node(to) = lie.to {
            let to = to as usize;
            if let Some(node) = self.hosts[to].correct() {
                let effects = &mut self.effects[to];
                if effects.heard.is_empty() {
                    effects.before = S::numbers(node);
                }
                effects.heard.extend(&lie.steps);
            }
        }
        self.deliver(lie.to, Some(lie.from), &lie.bytes);
    }

    /// Looks at what a correct node has done since it was looked at, and whether it did something
    /// since it has heard lies.
    pub(super) fn look(&mut self, number: usize) {
        S::look(self, number);
        let effects = &mut self.effects[number];
        let (Some(node), Some(coalition)) = (self.hosts[number].correct(), &mut self.coalition)
        else {
            return;
        };
        let heard = std::mem::take(&mut effects.heard);
        if !heard.is_empty() && S::numbers(node) != effects.before {
            coalition.bit.extend(heard);
        }
    }

    /// Notes the steps of the plan.
    pub(super) fn finish_plan(&mut self) {
        let Some(coalition) = &self.coalition else {
            return;
        };
        let steps = coalition.carried_out.iter().map(StepName::name);
        let bit = coalition.bit.iter().filter_map(StepName::bit);
        let all: Vec<String> = steps.chain(bit).collect();
        all.into_iter().for_each(|it| self.note(it));
    }
}
