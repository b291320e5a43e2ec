// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Nodes that lie together by a plan.
//!
//! Each is a liar as one that lies alone, in one way after the other. They know all of each other,
//! and how far correct witnesses have audited them, and may cut correct nodes off from each other
//! while the network is bad.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use smt_replica::sim::{Step as Common, StepName as CommonName};

use crate::sim::liar::Liar;
use crate::sim::plan::Plan;
use crate::sim::step::{Audience, Step, StepName};

/// Ticks that liars wait for something, at most.
const WAIT_MAX: u32 = 150;
/// Steps of one tick at most.
const STEPS: usize = 12;

/// Nodes that lie together.
pub(super) struct Coalition {
    liars: Vec<u32>,
    steps: VecDeque<Common<Step>>,
    waited: u32,
    /// The part of each node, and for how many ticks; none if all hear each other.
    parts: Vec<u32>,
    parted: u64,
    /// Ticks for which nodes are cut off, at most.
    part_max: u64,
    /// The steps that were carried out, and those that changed what a correct node did.
    done: BTreeSet<CommonName<StepName>>,
    bit: BTreeSet<CommonName<StepName>>,
}

impl Coalition {
    pub(super) fn new(plan: &Plan, part_max: u64) -> Self {
        Self {
            liars: plan.liars.clone(),
            steps: plan.steps.clone().into(),
            waited: 0,
            parts: Vec::new(),
            parted: 0,
            part_max,
            done: BTreeSet::new(),
            bit: BTreeSet::new(),
        }
    }

    /// Whether all steps were taken.
    pub(super) fn is_done(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether two nodes are cut off from each other.
    pub(super) fn parts(&mut self, one: u32, other: u32) -> bool {
        let is_liar = self.liars.contains(&one) || self.liars.contains(&other);
        let part = |node: u32| self.parts.get(node as usize);
        let is_cut = !is_liar && part(one) != part(other);
        self.bit.extend(is_cut.then_some(CommonName::Part));
        is_cut
    }

    /// Correct nodes have done something because of these.
    pub(super) fn bite(&mut self, names: impl Iterator<Item = StepName>) {
        self.bit.extend(names.map(CommonName::Own));
    }

    /// Time passes. `audited` has the index up to which all correct witnesses have audited each
    /// liar, and `interval` is that of checkpoints.
    pub(super) fn tick(
        &mut self,
        liars: &mut BTreeMap<u32, &mut Liar>,
        audited: &BTreeMap<u32, u64>,
        interval: u64,
        may_part: bool,
    ) {
        self.tell_receipts(liars);
        for _ in 0..STEPS {
            let Some(step) = self.steps.front().cloned() else {
                break;
            };
            let waits = self.waited < WAIT_MAX
                && match &step {
                    Common::Own(Step::UntilAudited { of }) => audited.get(of) < Some(&interval),
                    Common::Own(Step::UntilLied { by }) => {
                        liars.get(by).is_some_and(|it| it.lies_of_attack() == 0)
                    }
                    _ => false,
                };
            if waits || matches!(step, Common::Wait(ticks) if self.waited < ticks) {
                self.waited += 1;
                break;
            }
            self.steps.pop_front();
            self.take(step, liars, audited, interval);
            self.waited = 0;
        }
        self.parted += 1;
        if !may_part || self.parted > self.part_max {
            self.parts.clear();
        }
        liars.values_mut().for_each(|it| it.pass());
    }

    fn take(
        &mut self,
        step: Common<Step>,
        liars: &mut BTreeMap<u32, &mut Liar>,
        audited: &BTreeMap<u32, u64>,
        interval: u64,
    ) {
        let mut with = |liar: u32, act: &dyn Fn(&mut Liar)| {
            liars.get_mut(&liar).into_iter().for_each(|it| act(it));
        };
        match step {
            Common::Part(parts) => {
                (self.parts, self.parted) = (parts, 0);
                self.done.insert(CommonName::Part);
            }
            Common::Join => {
                let was_cut = !self.parts.is_empty();
                self.parts.clear();
                self.done.insert(CommonName::Join);
                self.bit.extend(was_cut.then_some(CommonName::Join));
            }
            Common::Own(Step::Lie { by, attack, to }) => with(by, &|it| it.turn(Some(attack), to)),
            Common::Own(Step::Behave { by }) => with(by, &|it| it.turn(None, Audience::All)),
            Common::Own(Step::Cover { by, of }) => with(by, &|it| it.cover(of)),
            Common::Own(Step::Delay { by, ticks }) => with(by, &|it| it.delay(ticks)),
            Common::Own(Step::UntilAudited { of }) if audited.get(&of) >= Some(&interval) => {
                with(of, &Liar::promise);
            }
            // Statements and clients are of other systems.
            _ => {}
        }
    }

    /// Liars know the receipts that each of them has given, or keeps back.
    fn tell_receipts(&self, liars: &mut BTreeMap<u32, &mut Liar>) {
        let mut receipts = BTreeMap::new();
        for (number, liar) in &*liars {
            let given = liar.cores[0].host.receipts.iter();
            receipts.extend(given.map(|(sender, it)| ((*number, *sender), it.clone())));
        }
        for liar in liars.values_mut() {
            liar.together.receipts.clone_from(&receipts);
        }
    }

    /// The names of all that was carried out, and that bit.
    pub(super) fn names(&self, liars: &[&Liar]) -> Vec<String> {
        let of_liars = liars.iter().flat_map(|it| it.together.done()).map(CommonName::Own);
        let done = self.done.iter().copied().chain(of_liars);
        let bit = self.bit.iter().filter_map(CommonName::bit);
        done.map(|it| it.name()).chain(bit).collect()
    }
}
