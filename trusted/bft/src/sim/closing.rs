// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs in which liars work together: what they send, what it changes, and how the run ends.

use std::collections::BTreeSet;

use smt_replica::AnyService;

use crate::replica::Replica;
use crate::sim::coalition::Lie;
use crate::sim::liar::To;
use crate::sim::report::Event;
use crate::sim::step::StepName;
use crate::sim::world::{Happening, Node, World};

/// The most that a message of a liar takes.
const DELAY: u64 = 12;

/// The numbers of a replica that tell whether it did something.
type Numbers = [u64; 6];

/// The lies that a replica has heard since its numbers were looked at.
#[derive(Clone, Debug, Default)]
pub(super) struct Effects {
    before: Numbers,
    heard: BTreeSet<StepName>,
}

fn numbers(of: &Replica<AnyService>) -> Numbers {
    let metrics = of.metrics;
    let faulty = of.streams.values().filter(|it| it.track.is_faulty).count();
    let said = of.device.counter();
    let known = of.views.len() as u64;
    [said, of.ledger.executed, metrics.states, metrics.stream_jumps, known, faulty as u64]
}

/// Whether others can count on a replica: it is active, or its vote for a later view is there.
fn counts(of: &Replica<AnyService>) -> bool {
    let track = of.own_track();
    let is_between_views = track.at.is_some_and(|at| at.0 < track.promised);
    of.metrics().is_active || is_between_views
}

impl World<'_> {
    /// A liar of the coalition.
    pub(super) fn liar_of_the_coalition(&mut self, device: u32) -> Node {
        let core = self.replica(device);
        if let (Some(core), Some(coalition)) = (core, &mut self.coalition) {
            coalition.join(device, core);
        }
        Node::Together
    }

    pub(super) fn coalition_tick(&mut self) {
        let may_part = self.schedule.now() < self.scenario.course.honest;
        let correct: Vec<_> = self.nodes.iter().map(Node::correct).collect();
        let Some(coalition) = &mut self.coalition else {
            return;
        };
        let lies = coalition.tick(&correct, may_part);
        self.send_lies(lies);
    }

    /// A message for a liar of the coalition.
    pub(super) fn tell_coalition(&mut self, device: u32, from: Option<u32>, bytes: &[u8]) {
        let Some(coalition) = &mut self.coalition else {
            return;
        };
        coalition.receive(device, from, bytes);
        let lies = coalition.outputs();
        self.send_lies(lies);
    }

    /// The network loses no lie.
    fn send_lies(&mut self, lies: Vec<Lie>) {
        let at = self.schedule.now() + 1 + self.random.below(DELAY);
        lies.into_iter().for_each(|it| self.schedule.at(at, Happening::Lie(it)));
    }

    pub(super) fn deliver_lie(&mut self, lie: &Lie) {
        if let To::Replica(to) = lie.to {
            let to = to as usize;
            if let Some(replica) = self.nodes[to].correct() {
                let effects = &mut self.effects[to];
                if effects.heard.is_empty() {
                    effects.before = numbers(replica);
                }
                effects.heard.extend(&lie.steps);
            }
        }
        self.deliver(&lie.to, Some(lie.from), &lie.bytes);
    }

    /// Whether a replica did something since it has heard lies.
    pub(super) fn look_for_effects(&mut self, device: usize) {
        let heard = std::mem::take(&mut self.effects[device].heard);
        if let (Some(replica), Some(coalition)) =
            (self.nodes[device].correct(), &mut self.coalition)
            && numbers(replica) != self.effects[device].before
        {
            coalition.bit.extend(heard);
        }
    }

    /// A correct replica that has not come as far as another one, if it must.
    pub(super) fn behind(&self) -> Option<u32> {
        if !self.scenario.course.has_to_catch_up {
            return None;
        }
        let correct = self.nodes.iter().filter_map(Node::correct);
        let most = correct.map(|it| it.ledger.executed).max();
        let stopped = self.scenario.course.stops.iter().flatten();
        let stopped: Vec<u32> = stopped.filter(|_| self.is_closing).copied().collect();
        let is_behind = |node: &Node| match node {
            Node::Liar(_) | Node::Together => false,
            Node::Down | Node::Killed(_) => true,
            Node::Correct(_) | Node::Durable(_) => {
                node.correct().is_none_or(|it| Some(it.ledger.executed) < most || !counts(it))
            }
        };
        let behind =
            (0..).zip(&self.nodes).filter(|it| !stopped.contains(&it.0) && is_behind(it.1));
        behind.map(|it| it.0).next()
    }

    /// Begins the last part of the run, once: some replicas stop for good, and liars are silent.
    /// All that remain are needed.
    pub(super) fn closes(&mut self) -> bool {
        let Some(stops) = self.scenario.course.stops.as_ref().filter(|_| !self.is_closing) else {
            return false;
        };
        self.is_closing = true;
        self.operations += self.scenario.course.last_operations;
        for device in stops {
            self.look(*device as usize);
            self.nodes[*device as usize] = Node::Down;
        }
        if let Some(coalition) = &mut self.coalition {
            coalition.fall_silent();
        }
        self.events.insert(Event::Closing);
        true
    }

    /// Notes the steps of the plan, and who has not caught up.
    pub(super) fn finish_plan(&mut self) {
        if let Some(coalition) = &self.coalition {
            self.events.extend(coalition.carried_out.iter().map(|it| Event::Step(*it)));
            self.events.extend(coalition.bit.iter().map(|it| Event::StepBit(*it)));
        }
        if let Some(device) = self.behind().filter(|_| !self.history.is_violated()) {
            self.history.behind(device);
        }
    }
}
