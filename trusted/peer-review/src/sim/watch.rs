// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The opinions of correct nodes on others, and what they do about them, as a run goes on.

use std::collections::{BTreeMap, BTreeSet};

use smt_replica::sim::{Expected, Report, StepName as CommonName};

use crate::audited::Suspicion;
use crate::message::Message;
use crate::node::Verdict;
use crate::sim::attack::Attack;
use crate::sim::host::Host;
use crate::sim::judge::{Lied, Record, Violation};
use crate::sim::liar::Liar;
use crate::sim::scenario::DEGREE;
use crate::sim::step::StepName;
use crate::sim::world::{TICK, World};
use crate::tree::Tree;

/// After so many more ticks no correct node is suspected any more.
const CALM: u64 = 80;

/// All that is counted beside lies.
const EVENTS: [&str; 4] = ["Partition", "SuspicionEnded", "LiarExposed", "LiarSuspected"];

/// No run yet, of a search.
#[must_use]
pub fn report(has_logs: bool, has_plans: bool) -> Report<Violation> {
    let common = [CommonName::Part, CommonName::Join];
    let steps = common.into_iter().chain(StepName::all().map(CommonName::Own));
    let lies: Vec<Expected> = match has_plans {
        true => Expected::steps(steps).collect(),
        false => Expected::attacks(&Attack::ALL).collect(),
    };
    let events = Expected::each(EVENTS).chain(Expected::kills(has_logs));
    Report::new(lies.into_iter().chain(events))
}

/// Opinions of correct nodes on others.
#[derive(Default)]
pub(super) struct Watch {
    /// Pairs of witness and suspect of this tick.
    suspected: BTreeSet<(u32, u32)>,
    /// Pairs of witness and liar of whom the first has suspected the second in honest times.
    liars_suspected: Vec<(u32, u32)>,
    /// All that correct nodes have against liars: node, liar and reason; none is evidence.
    against: BTreeSet<(u32, u32, Option<Suspicion>)>,
}

impl World<'_> {
    /// Suspicion of a correct node ends, and does not come back when the network is honest.
    pub(super) fn look_at_suspicions(&mut self, now: u64) {
        let mut suspected = BTreeSet::new();
        for (witness, host) in (0..).zip(&self.hosts) {
            let Some(node) = host.correct() else {
                continue;
            };
            for other in (0..self.scenario.nodes).filter(|it| node.audited(*it).is_some()) {
                if matches!(node.verdict(other), Verdict::Suspected(_)) {
                    suspected.insert((witness, other));
                }
            }
        }
        let honest = self.scenario.course.honest;
        for pair in &suspected {
            if self.scenario.is_liar(pair.1) {
                if now > honest && !self.watch.liars_suspected.contains(pair) {
                    self.watch.liars_suspected.push(*pair);
                }
            } else if now > honest + CALM * TICK {
                self.violate(Violation::Suspected(pair.1, pair.0));
            }
        }
        let ended = self.watch.suspected.difference(&suspected);
        if { ended }.any(|it| !self.scenario.is_liar(it.1)) {
            self.note("SuspicionEnded");
        }
        self.watch.suspected = suspected;
        self.look_at_liars();
    }

    /// Liars of a plan take steps.
    pub(super) fn coalition_tick(&mut self) {
        let Some(mut coalition) = self.coalition.take() else {
            return;
        };
        let correct = || self.hosts.iter().filter_map(Host::correct);
        let audited = |liar| correct().filter_map(|it| it.audited(liar)).min().unwrap_or(0);
        let audited = (0..self.scenario.nodes).map(|it| (it, audited(it))).collect();
        let may_part = self.schedule.now() < self.scenario.course.honest;
        let interval = self.group.options.interval;
        let mut liars: BTreeMap<u32, &mut Liar> = BTreeMap::new();
        for (number, host) in (0..).zip(&mut self.hosts) {
            if let Host::Liar(liar) = host {
                liars.insert(number, liar);
            }
        }
        coalition.tick(&mut liars, &audited, interval, may_part);
        self.coalition = Some(coalition);
    }

    /// Notes what correct nodes have against liars of a plan, and no longer have.
    fn look_at_liars(&mut self) {
        let Some(coalition) = &mut self.coalition else {
            return;
        };
        let mut against = BTreeSet::new();
        let is_up = |node: u32| self.hosts[node as usize].correct().is_some();
        for (number, host) in (0..).zip(&self.hosts) {
            let Some(liar) = host.liar() else {
                continue;
            };
            for (node, host) in (0..).zip(&self.hosts) {
                let Some(correct) = host.correct() else {
                    continue;
                };
                let reasons = correct.suspicions(number).into_iter().map(Some);
                let evidence = correct.evidence(number).map(|_| None);
                against.extend(reasons.chain(evidence).map(|it| (node, number, it)));
            }
            let known = &self.watch.against;
            if against.iter().any(|it| it.1 == number && !known.contains(it)) {
                coalition.bite(liar.together.done_of_late());
            }
            let of_liar = self.watch.against.iter().filter(|it| it.1 == number && is_up(it.0));
            let has_ended = { of_liar }.any(|it| !against.contains(it));
            if has_ended && liar.attack.is_none() {
                coalition.bite(std::iter::once(StepName::Behave));
            }
        }
        self.watch.against = against;
    }

    /// A correct node that sends this may do so because of a liar.
    pub(super) fn look_at_output(&mut self, bytes: &[u8]) {
        let Some(coalition) = &mut self.coalition else {
            return;
        };
        if let Some(Message::Complaint(it) | Message::Challenge(it)) = Message::decode(bytes) {
            for node in [it.from(), it.to] {
                if let Some(liar) = self.hosts[node as usize].liar() {
                    coalition.bite(liar.together.done_of_late());
                }
            }
        }
    }

    /// A message comes that a correct node would not have sent. It bites if it changes its
    /// receiver.
    pub(super) fn receive_lie(&mut self, to: u32, from: u32, bytes: &[u8]) {
        self.flush(to);
        let place = to as usize;
        let snapshot = |host: &Host| host.correct().map(|it| it.snapshot());
        let before = snapshot(&self.hosts[place]);
        self.hosts[place].receive(from, bytes);
        self.flush(to);
        let has_bitten = before.is_some() && snapshot(&self.hosts[place]) != before;
        let liar = self.hosts[from as usize].liar();
        if let (true, Some(coalition), Some(liar)) = (has_bitten, &mut self.coalition, liar) {
            coalition.bite(liar.together.done_of_late());
        }
    }

    /// The violations of a run that ends now.
    pub(super) fn judge(&self) -> Vec<Violation> {
        let correct = (0..).zip(&self.hosts).filter_map(|it| Some((it.0, it.1.correct()?)));
        let liars = (0..).zip(&self.hosts).filter_map(|it| Some((it.0, it.1.liar()?)));
        let record = Record {
            scenario: self.scenario,
            group: &self.group,
            stream: &self.stream,
            correct: correct.collect(),
            delivered: &self.delivered,
            liars: liars.map(|it| Lied::new(it.0, it.1)).collect(),
            cut_off: (0..self.scenario.nodes).filter(|it| self.is_cut_off(*it)).collect(),
            suspected: &self.watch.liars_suspected,
            ticks: self.ticks,
        };
        record.judge()
    }

    /// Whether a node is a liar, and the next message of its parent is one that the parent has
    /// forgotten.
    fn is_cut_off(&self, node: u32) -> bool {
        let core = |node: u32| {
            let host = &self.hosts[node as usize];
            host.correct().or_else(|| host.liar().and_then(|it| it.cores.first()))
        };
        let parent = Tree::new(self.scenario.nodes, DEGREE).parent(node);
        let (Some(parent), Some(liar)) = (parent, self.hosts[node as usize].liar()) else {
            return false;
        };
        let next = liar.cores[0].state.received(parent) + 1;
        let outbox = core(parent).and_then(|it| it.host.outboxes.get(&node));
        outbox.is_some_and(|it| it.has_forgotten(next))
    }

    /// Notes the lies of the run, and how correct nodes have found liars.
    pub(super) fn note_ends(&mut self) {
        let liars = (0..).zip(&self.hosts).filter_map(|it| Some((it.0, it.1.liar()?)));
        let mut events = Vec::new();
        for (number, _) in { liars }.filter(|it| it.1.lies() > 0) {
            let attack = self.scenario.attack(number);
            events.extend(attack.map(|it| format!("{it:?}")));
            for node in self.hosts.iter().filter_map(Host::correct) {
                let event = match node.verdict(number) {
                    Verdict::Exposed(_) => "LiarExposed",
                    Verdict::Suspected(_) => "LiarSuspected",
                    Verdict::Trusted => continue,
                };
                events.push(event.to_owned());
            }
        }
        if let Some(coalition) = &self.coalition {
            let liars: Vec<&Liar> = self.hosts.iter().filter_map(Host::liar).collect();
            events.extend(coalition.names(&liars));
        }
        events.into_iter().for_each(|it| self.note(it));
    }
}
