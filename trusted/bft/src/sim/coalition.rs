// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Liars that work together by a plan.
//!
//! They know all that correct replicas know, and may cut them off from each other while the network
//! is bad. Their devices are genuine: what a liar says is one stream without a gap, and its host
//! chooses what is attested, when, and to whom it is shown. Replicas that are shown a statement are
//! shown all that the stream has before it.

mod answers;
mod member;
mod statements;
mod states;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use smt_replica::AnyService;
use smt_replica::sim::To;
use smt_simulation::Random;

use crate::message::State;
use crate::replica::Replica;
use crate::sim::coalition::member::Member;
use crate::sim::plan::Plan;
use crate::sim::step::{By, Step, StepName, Until};
use crate::stream_checkpoint::StreamState;

/// Ticks that liars wait for something, at most.
const WAIT_MAX: u32 = 150;
/// Steps of one tick at most.
const STEPS: usize = 12;
/// States and places of before that are kept, at most.
const KEPT: usize = 12;

/// The correct replicas that run, by device.
pub(crate) type Correct<'a> = [Option<&'a Replica<AnyService>>];

/// A message of a liar.
pub(crate) struct Lie {
    pub(crate) from: u32,
    pub(crate) to: To,
    pub(crate) bytes: Vec<u8>,
    /// The steps that it comes from.
    pub(crate) steps: Vec<StepName>,
}

/// Liars that work together.
pub(crate) struct Coalition {
    members: BTreeMap<u32, Member>,
    replicas: u32,
    steps: VecDeque<Step>,
    waited: u32,
    /// How much a replica had executed when the liars began to wait for it.
    executed: u64,
    /// The view that they have wanted last.
    view: u64,
    /// The last batch that they have ordered: its view and its place.
    ordered: (u64, u64),
    /// The part of each device; none if all hear each other.
    parts: Vec<u32>,
    old_states: Vec<State>,
    old_places: Vec<StreamState>,
    /// Requests of the client whose key they have.
    number: u64,
    sent: Vec<Lie>,
    random: Random,
    is_silent: bool,
    /// The views that correct replicas wanted when the liars hid.
    wanted: u64,
    /// The steps that were carried out.
    pub(crate) carried_out: BTreeSet<StepName>,
    /// The steps that changed what a correct replica did.
    pub(crate) bit: BTreeSet<StepName>,
}

impl Coalition {
    pub(crate) fn new(plan: &Plan, replicas: u32, seed: u64) -> Self {
        Self {
            members: BTreeMap::new(),
            replicas,
            steps: plan.steps.clone().into(),
            waited: 0,
            executed: 0,
            view: 0,
            ordered: (0, 0),
            parts: Vec::new(),
            old_states: Vec::new(),
            old_places: Vec::new(),
            number: 0,
            sent: Vec::new(),
            random: Random::new(seed ^ 0xc0a1),
            is_silent: false,
            wanted: 0,
            carried_out: BTreeSet::new(),
            bit: BTreeSet::new(),
        }
    }

    /// Adds a liar, which follows the protocol with nobody at first.
    pub(crate) fn join(&mut self, device: u32, core: Replica<AnyService>) {
        self.members.insert(device, Member::new(core, self.replicas));
    }

    /// Liars say nothing more, and cut nobody off.
    pub(crate) fn fall_silent(&mut self) {
        self.is_silent = true;
        self.parts.clear();
    }

    /// Whether two replicas are cut off from each other.
    pub(crate) fn parts(&mut self, one: u32, other: u32) -> bool {
        let is_liar = self.members.contains_key(&one) || self.members.contains_key(&other);
        let part = |device: u32| self.parts.get(device as usize);
        let is_cut = !is_liar && part(one) != part(other);
        self.bit.extend(is_cut.then_some(StepName::Part));
        is_cut
    }

    /// Takes a message from a replica, or from a client.
    pub(crate) fn receive(&mut self, device: u32, from: Option<u32>, bytes: &[u8]) {
        let is_member = from.is_some_and(|it| self.members.contains_key(&it));
        let Some(member) = self.members.get_mut(&device).filter(|_| !self.is_silent) else {
            return;
        };
        let is_with = from.is_none_or(|it| is_member || member.with.contains(&it));
        if !member.with.is_empty() && is_with {
            member.core.receive(bytes);
            self.follow(device);
        }
    }

    /// Time passes. Returns what is to be sent.
    pub(crate) fn tick(&mut self, correct: &Correct<'_>, may_part: bool) -> Vec<Lie> {
        if self.is_silent {
            self.sent.clear();
            return Vec::new();
        }
        self.remember(correct);
        let devices: Vec<u32> = self.members.keys().copied().collect();
        for device in devices {
            if let Some(member) = self.members.get_mut(&device)
                && !member.with.is_empty()
            {
                member.core.tick();
                self.follow(device);
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
    pub(crate) fn outputs(&mut self) -> Vec<Lie> {
        std::mem::take(&mut self.sent)
    }

    /// Keeps states and places of streams that are right now, for later.
    fn remember(&mut self, correct: &Correct<'_>) {
        let wanted = correct.iter().flatten().map(|it| it.own_track().promised).sum();
        let is_hidden = self.members.values().all(|it| it.with.is_empty());
        if is_hidden && wanted > self.wanted && self.carried_out.contains(&StepName::Hide) {
            self.bit.insert(StepName::Hide);
        }
        self.wanted = wanted;
        if !self.random.chance(3) {
            return;
        }
        let at = self.random.below(u64::from(self.replicas)) as usize;
        let Some(State { streams, .. }) = self.keep_state_of(correct, at) else {
            return;
        };
        self.old_places.extend(streams);
        while self.old_places.len() > KEPT * 2 {
            let at = self.random.below(self.old_places.len() as u64) as usize;
            self.old_places.remove(at);
        }
    }

    fn keep_state_of(&mut self, correct: &Correct<'_>, at: usize) -> Option<State> {
        let state = states::state_of(correct.get(at).copied().flatten()?)?;
        if self.old_states.len() == KEPT {
            let at = self.random.below(KEPT as u64) as usize;
            self.old_states.remove(at);
        }
        self.old_states.push(state.clone());
        Some(state)
    }

    /// Whether a step has to wait.
    fn waits(&mut self, step: &Step, correct: &Correct<'_>) -> bool {
        match step {
            Step::Wait(ticks) => self.waited < *ticks,
            Step::Until(of, until) => {
                let Some(of) = correct[*of as usize].filter(|_| self.waited < WAIT_MAX) else {
                    return false;
                };
                if self.waited == 0 {
                    self.executed = of.ledger.executed;
                }
                match until {
                    Until::Wants => of.own_track().promised < self.view,
                    Until::Opens => !of.views.contains_key(&self.view),
                    Until::Executes => of.ledger.executed <= self.executed,
                }
            }
            _ => false,
        }
    }

    fn take(&mut self, step: Step, correct: &Correct<'_>) {
        let of_step = |it: u32| correct[it as usize];
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
            Step::State { to, of, recipe } => self.give_state(to, of, recipe, correct),
            Step::FalseCheckpoint { by } => self.state_false_checkpoint(by),
            Step::Pad { by } => self.pad(by),
            Step::Restart { by } => self.restart(by),
            Step::Want { by, of, led, ahead } => self.want(by, of_step(of), led, ahead),
            Step::Open { of } => self.with(of_step(of), Self::open),
            Step::Enter { by, of, is_newest } => {
                self.with(of_step(of), |it, of| it.enter(by, of, is_newest));
            }
            Step::Order { of } => self.with(of_step(of), Self::order),
            Step::Commit { by, of, is_newest } => {
                self.with(of_step(of), |it, of| it.commit(by, of, is_newest));
            }
            Step::Place { by, of, is_true } => {
                self.with(of_step(of), |it, of| it.place(by, of, is_true));
            }
        }
    }

    fn with(
        &mut self,
        of: Option<&Replica<AnyService>>,
        step: impl FnOnce(&mut Self, &Replica<AnyService>),
    ) {
        if let Some(of) = of {
            step(self, of);
        }
    }

    /// The liars who take a step.
    fn those(&self, by: By) -> Vec<u32> {
        self.members.keys().copied().filter(|it| by.has(*it)).collect()
    }

    fn follow_with(&mut self, with: &[u32]) {
        let name = if with.is_empty() { StepName::Hide } else { StepName::Follow };
        self.carried_out.insert(name);
        for member in self.members.values_mut() {
            member.with = with.iter().copied().collect();
        }
    }

    /// Sends what the protocol has a liar send, to those with whom it follows the protocol.
    fn follow(&mut self, device: u32) {
        let others: Vec<u32> = self.members.keys().copied().filter(|it| *it != device).collect();
        if let Some(member) = self.members.get_mut(&device) {
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
        let all = (0..self.replicas).filter(|it| !liars.contains(it));
        let to: Vec<u32> = to.map_or_else(|| all.collect(), |it| vec![it]);
        for device in self.those(by) {
            let Some(member) = self.members.get_mut(&device) else {
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
