// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Nodes of a chain that lie together by a plan: the steps of theirs alone.

use std::collections::BTreeSet;

use smt_replica::sim::By;
use smt_replica::{KeyValue, Request};

use crate::configuration::Configuration;
use crate::log::Log;
use crate::message::{Statement, decode, encode};
use crate::node::Node;
use crate::sim::plan::{Step, StepName};
use crate::sim::system::Chain;

/// PROOFs of one step, at most.
const PROOFS: usize = 8;

pub(super) type Coalition = smt_replica::sim::Coalition<Chain>;
pub(super) type Correct<'a> = smt_replica::sim::Correct<'a, Chain>;

/// The statements of a liar, for choices that depend on them.
#[derive(Default)]
pub(super) struct Notes {
    /// The latest configuration that it has promised.
    promised: u64,
    /// The configurations that it has entered.
    entered: BTreeSet<u64>,
    /// The place that it has proved last, and its configuration.
    proved: (u64, u64),
}

impl Notes {
    pub(super) fn note(&mut self, body: &[u8]) {
        match decode(body) {
            Some(Statement::Freeze { configuration }) => {
                self.promised = self.promised.max(configuration);
            }
            Some(Statement::Enter { configuration, .. }) => {
                self.promised = self.promised.max(configuration);
                self.entered.insert(configuration);
            }
            Some(
                Statement::Order { configuration, place, .. }
                | Statement::Proof { configuration, place, .. },
            ) => self.proved = (configuration, place),
            _ => {}
        }
    }
}

/// All that liars remember: the requests that they have ordered, with configuration and place.
#[derive(Default)]
pub(super) struct Memory {
    ordered: Vec<(u64, u64, Request)>,
}

pub(super) fn take(liars: &mut Coalition, step: &Step, correct: &Correct<'_>) {
    let (Step::Accuse { of }
    | Step::Freeze { of, .. }
    | Step::Open { of }
    | Step::Enter { of, .. }
    | Step::Order { of }
    | Step::Prove { of, .. }
    | Step::ProveFalsely { of, .. }) = step;
    let Some(of) = correct[*of as usize] else {
        return;
    };
    match *step {
        Step::Accuse { .. } => liars.ask_service(of.newest(), StepName::Accuse),
        Step::Freeze { by, ahead, .. } => freeze(liars, by, of, ahead),
        Step::Open { .. } => open(liars, of),
        Step::Enter { by, is_newest, .. } => enter(liars, by, of, is_newest),
        Step::Order { .. } => order(liars, of),
        Step::Prove { by, is_newest, .. } => prove(liars, by, of, is_newest),
        Step::ProveFalsely { by, is_output, .. } => prove_falsely(liars, by, of, is_output),
    }
}

/// Freezes a configuration that all of these liars may freeze, and the node `of` too.
fn freeze(liars: &mut Coalition, by: By, of: &Node<KeyValue>, ahead: u64) {
    let those = liars.those(by);
    let own = those.iter().filter_map(|it| Some(liars.members.get(it)?.notes.promised)).max();
    let of_it = of.own_track().promised + liars.random.below(2);
    let configuration = (own.unwrap_or(0) + 1).max(of_it) + ahead;
    liars.view = configuration;
    liars.say(by, &encode(&Statement::Freeze { configuration }), StepName::Freeze);
}

/// Opens the configuration that liars have frozen last, if one of them heads it.
fn open(liars: &mut Coalition, of: &Node<KeyValue>) {
    let configuration = liars.view;
    let head = Configuration::of_number(configuration, liars.nodes).head();
    let Some(head) = head.filter(|it| liars.members.contains_key(it)) else {
        return;
    };
    if of.logs.contains_key(&configuration) {
        return;
    }
    if let Some(freezes) = of.freezes_for(configuration) {
        let statement = Statement::Open { configuration, freezes };
        liars.say(By::One(head), &encode(&statement), StepName::Open);
    }
}

/// The newest log of a node, or any.
fn log_of<'a>(
    liars: &mut Coalition,
    of: &'a Node<KeyValue>,
    is_newest: bool,
) -> Option<&'a Log<KeyValue>> {
    let count = of.logs.len() as u64;
    let at = if is_newest { 0 } else { liars.random.below(count) as usize };
    of.logs.values().rev().nth(at)
}

fn enter(liars: &mut Coalition, by: By, of: &Node<KeyValue>, is_newest: bool) {
    let Some(log) = log_of(liars, of, is_newest) else {
        return;
    };
    let (configuration, opening) = (log.configuration.number, log.opening());
    for number in liars.those(by) {
        let notes = &liars.members[&number].notes;
        if configuration == 0 || notes.entered.contains(&configuration) {
            continue;
        }
        let is_late = notes.promised > configuration;
        let name = if is_late { StepName::LateEnter } else { StepName::Enter };
        liars.say(By::One(number), &encode(&Statement::Enter { configuration, opening }), name);
    }
}

/// Orders what waits at a node, or a request of the client that lies, in its newest configuration.
fn order(liars: &mut Coalition, of: &Node<KeyValue>) {
    let Some(log) = log_of(liars, of, true) else {
        return;
    };
    let configuration = log.configuration.number;
    let head = log.configuration.head().filter(|it| liars.members.contains_key(it));
    let (Some(head), Some(mut log)) = (head, log.begin(log.configuration.clone(), log.length()))
    else {
        return;
    };
    // The liars may have ordered more than the node has heard of.
    for (of_configuration, place, request) in &liars.memory.ordered {
        if (*of_configuration, *place) == (configuration, log.length() + 1) {
            log.append(request.clone());
        }
    }
    let waiting = of.pending.iter().map(|it| &it.request).find(|it| log.is_new(it)).cloned();
    let waiting = waiting.filter(|_| !liars.random.chance(20));
    let request = waiting.unwrap_or_else(|| liars.own_request());
    let output = log.append(request.clone()).output;
    let place = log.length();
    liars.memory.ordered.push((configuration, place, request.clone()));
    let statement = Statement::Order { configuration, place, request, output };
    liars.say(By::One(head), &encode(&statement), StepName::Order);
}

/// The place that a liar proves next in a log.
fn next_place(liars: &Coalition, number: u32, of: &Node<KeyValue>, log: &Log<KeyValue>) -> u64 {
    let configuration = log.configuration.number;
    let heard = of.streams[number as usize].track.at;
    let said = liars.members[&number].notes.proved;
    let places = [heard, said].into_iter().filter(|it| it.0 == configuration).map(|it| it.1);
    places.max().unwrap_or(0).max(log.start) + 1
}

fn prove(liars: &mut Coalition, by: By, of: &Node<KeyValue>, is_newest: bool) {
    let Some(log) = log_of(liars, of, is_newest) else {
        return;
    };
    let configuration = log.configuration.number;
    for number in liars.those(by) {
        let is_late = liars.members[&number].notes.promised > configuration;
        let name = if is_late { StepName::LateProve } else { StepName::Prove };
        let Some(previous) = log.configuration.before(number) else {
            continue;
        };
        let first = next_place(liars, number, of, log);
        for place in (first..=log.length()).take(PROOFS) {
            let (Some(entry), Some(before)) = (log.entry(place), log.proof(place, previous)) else {
                break;
            };
            let output = entry.output;
            let statement = Statement::Proof { configuration, place, output, before };
            liars.say(By::One(number), &encode(&statement), name);
        }
    }
}

fn prove_falsely(liars: &mut Coalition, by: By, of: &Node<KeyValue>, is_output: bool) {
    let Some(log) = log_of(liars, of, true) else {
        return;
    };
    let configuration = log.configuration.number;
    for number in liars.those(by) {
        let place = next_place(liars, number, of, log);
        let (Some(previous), Some(entry)) = (log.configuration.before(number), log.entry(place))
        else {
            continue;
        };
        let before = log.proof(place, previous).unwrap_or_default();
        let (output, before, name) = match is_output {
            true => ([9; 32], before, StepName::FalseOutput),
            false => (entry.output, [9; 32], StepName::FalseLink),
        };
        let statement = Statement::Proof { configuration, place, output, before };
        liars.say(By::One(number), &encode(&statement), name);
    }
}
