// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Liars that work together by a plan.
//!
//! They know all that correct nodes know, and may cut them off from each other while the network is
//! bad. Their devices are genuine: what a liar says is one stream without a gap, and its host
//! chooses what is attested, when, and to whom it is shown. Nodes that are shown a statement are
//! shown all that the stream has before it.

mod answers;
mod member;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use smt_simulation::Random;

use crate::node::Node;
use crate::sim::plan::Plan;
use crate::sim::step::{By, Step, StepName, Until};
use crate::sim::system::{System, To};

pub use member::Member;

/// Ticks that liars wait for something, at most.
const WAIT_MAX: u32 = 150;
/// Steps of one tick at most.
const STEPS: usize = 12;

/// The correct nodes that run, by number.
pub type Correct<'a, S> = [Option<&'a <S as System>::Node>];

/// A message of a liar.
pub struct Lie<S: System> {
    pub(super) from: u32,
    pub(super) to: To,
    pub(super) bytes: Vec<u8>,
    /// The steps that it comes from.
    pub(super) steps: Vec<StepName<S::Name>>,
}

/// Liars that work together.
pub struct Coalition<S: System> {
    /// The liars, by number.
    pub members: BTreeMap<u32, Member<S>>,
    /// How many nodes there are.
    pub nodes: u32,
    /// The view that they have wanted last.
    pub view: u64,
    /// All that is random in their choices.
    pub random: Random,
    /// The steps that were carried out.
    pub carried_out: BTreeSet<StepName<S::Name>>,
    /// All else that they remember, for choices of this system alone.
    pub memory: S::Memory,
    steps: VecDeque<Step<S::Step>>,
    waited: u32,
    /// How much a node had executed when the liars began to wait for it.
    executed: u64,
    /// The part of each node; none if all hear each other.
    parts: Vec<u32>,
    /// Requests of the client whose key they have.
    number: u64,
    sent: Vec<Lie<S>>,
    is_silent: bool,
    /// The views that correct nodes wanted when the liars hid.
    wanted: u64,
    /// The steps that changed what a correct node did.
    pub(super) bit: BTreeSet<StepName<S::Name>>,
}

impl<S: System> Coalition<S> {
    pub(super) fn new(plan: &Plan<S::Step>, nodes: u32, seed: u64) -> Self {
        Self {
            members: BTreeMap::new(),
            nodes,
            view: 0,
            random: Random::new(seed ^ 0xc0a1),
            carried_out: BTreeSet::new(),
            memory: S::Memory::default(),
            steps: plan.steps.clone().into(),
            waited: 0,
            executed: 0,
            parts: Vec::new(),
            number: 0,
            sent: Vec::new(),
            is_silent: false,
            wanted: 0,
            bit: BTreeSet::new(),
        }
    }

    /// Adds a liar, which follows the protocol with nobody at first.
    pub(super) fn join(&mut self, number: u32, core: S::Node) {
        self.members.insert(number, Member::new(core, number, self.nodes));
    }

    /// Liars say nothing more, and cut nobody off.
    pub(super) fn fall_silent(&mut self) {
        self.is_silent = true;
        self.parts.clear();
    }

    /// Whether two nodes are cut off from each other.
    pub(super) fn parts(&mut self, one: u32, other: u32) -> bool {
        let is_liar = self.members.contains_key(&one) || self.members.contains_key(&other);
        let part = |node: u32| self.parts.get(node as usize);
        let is_cut = !is_liar && part(one) != part(other);
        self.bit.extend(is_cut.then_some(StepName::Part));
        is_cut
    }

    /// Takes a message from a node, or from a client.
    pub(super) fn receive(&mut self, number: u32, from: Option<u32>, bytes: &[u8]) {
        let is_member = from.is_some_and(|it| self.members.contains_key(&it));
        let Some(member) = self.members.get_mut(&number).filter(|_| !self.is_silent) else {
            return;
        };
        let is_with = from.is_none_or(|it| is_member || member.with.contains(&it));
        if !member.with.is_empty() && is_with {
            S::receive(&mut member.core, bytes);
            self.follow(number);
        }
    }

    /// Time passes. Returns what is to be sent.
    pub(super) fn tick(&mut self, correct: &Correct<'_, S>, may_part: bool) -> Vec<Lie<S>> {
        if self.is_silent {
            self.sent.clear();
            return Vec::new();
        }
        self.remember(correct);
        let numbers: Vec<u32> = self.members.keys().copied().collect();
        for number in numbers {
            if let Some(member) = self.members.get_mut(&number)
                && !member.with.is_empty()
            {
                member.core.tick();
                self.follow(number);
            }
        }
        for _ in 0..STEPS {
            let Some(step) = self.steps.front().cloned() else {
                break;
            };
            if self.waits(&step, correct) {
                self.waited += 1;
                break;
            }
            self.waited = 0;
            self.steps.pop_front();
            self.take(step, correct);
        }
        if !may_part {
            self.parts.clear();
        }
        self.outputs()
    }

    /// All that is to be sent.
    pub(super) fn outputs(&mut self) -> Vec<Lie<S>> {
        std::mem::take(&mut self.sent)
    }

    /// Liars that hide are missed when correct nodes want views.
    fn remember(&mut self, correct: &Correct<'_, S>) {
        let wanted = correct.iter().flatten().map(|it| S::wanted(it)).sum();
        let is_hidden = self.members.values().all(|it| it.with.is_empty());
        if is_hidden && wanted > self.wanted && self.carried_out.contains(&StepName::Hide) {
            self.bit.insert(StepName::Hide);
        }
        self.wanted = wanted;
        S::remember(self, correct);
    }

    /// Whether a step has to wait.
    fn waits(&mut self, step: &Step<S::Step>, correct: &Correct<'_, S>) -> bool {
        match step {
            Step::Wait(ticks) => self.waited < *ticks,
            Step::Until(of, until) => {
                let Some(of) = correct[*of as usize].filter(|_| self.waited < WAIT_MAX) else {
                    return false;
                };
                if self.waited == 0 {
                    self.executed = S::executed(of);
                }
                match until {
                    Until::Wants => S::wanted(of) < self.view,
                    Until::Opens => !S::knows(of, self.view),
                    Until::Executes => S::executed(of) <= self.executed,
                }
            }
            _ => false,
        }
    }

    fn take(&mut self, step: Step<S::Step>, correct: &Correct<'_, S>) {
        match step {
            Step::Wait(_) | Step::Until(..) => {}
            Step::Part(parts) => {
                self.parts = parts;
                self.carried_out.insert(StepName::Part);
            }
            Step::Join => {
                let was_cut = !self.parts.is_empty();
                self.parts.clear();
                self.carried_out.insert(StepName::Join);
                self.bit.extend(was_cut.then_some(StepName::Join));
            }
            Step::Follow(with) => self.follow_with(&with),
            Step::Show { by, to, held } => self.show(by, to, held),
            Step::Ask(of) => self.ask(of),
            Step::Answer { of } => self.answer(of, correct),
            Step::Own(step) => S::take(self, step, correct),
        }
    }

    /// The liars who take a step.
    pub fn those(&self, by: By) -> Vec<u32> {
        self.members.keys().copied().filter(|it| by.has(*it)).collect()
    }

    /// Has some liars say something. Others are told later.
    pub fn say(&mut self, by: By, body: &[u8], name: S::Name) {
        let name = StepName::Own(name);
        for number in self.those(by) {
            if let Some(member) = self.members.get_mut(&number)
                && member.says(body, name).is_some()
            {
                self.carried_out.insert(name);
            }
        }
    }

    /// Has a liar do something of which its own statements tell.
    pub fn acts(&mut self, number: u32, name: S::Name, act: impl FnOnce(&mut S::Node)) {
        let name = StepName::Own(name);
        if let Some(member) = self.members.get_mut(&number)
            && member.acts(name, act)
        {
            self.carried_out.insert(name);
        }
    }

    fn follow_with(&mut self, with: &[u32]) {
        let name = if with.is_empty() { StepName::Hide } else { StepName::Follow };
        self.carried_out.insert(name);
        for member in self.members.values_mut() {
            member.with = with.iter().copied().collect();
        }
    }

    /// Sends what the protocol has a liar send, to those with whom it follows the protocol.
    fn follow(&mut self, number: u32) {
        let others: Vec<u32> = self.members.keys().copied().filter(|it| *it != number).collect();
        if let Some(member) = self.members.get_mut(&number) {
            let sent = member.outputs(&others);
            self.sent.extend(sent);
        }
    }

    fn show(&mut self, by: By, to: Option<u32>, held: usize) {
        let name = match (held, to) {
            (1.., _) => StepName::HoldBack,
            (0, Some(_)) => StepName::ShowToOne,
            (0, None) => StepName::ShowToAll,
        };
        let liars = self.those(By::All);
        let all = (0..self.nodes).filter(|it| !liars.contains(it));
        let to: Vec<u32> = to.map_or_else(|| all.collect(), |it| vec![it]);
        for number in self.those(by) {
            let Some(member) = self.members.get_mut(&number) else {
                continue;
            };
            for to in &to {
                let shown = member.show(*to, held, name);
                self.carried_out.extend((!shown.is_empty()).then_some(name));
                self.sent.extend(shown);
            }
        }
    }
}
