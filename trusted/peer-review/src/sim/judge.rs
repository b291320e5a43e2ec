// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The properties that each run must have.

use std::collections::BTreeMap;

use crate::group::Group;
use crate::node::{Node, Verdict};
use crate::outbox::Outbox;
use crate::sim::attack::{Attack, Found};
use crate::sim::liar::Liar;
use crate::sim::scenario::{DEGREE, Scenario};
use crate::sim::step::Audience;
use crate::tree::Tree;

/// A witness may be so many entries behind a correct node's log.
const BEHIND: u64 = 40;
/// Ticks after which a receiver that has given a correct sender no receipt is suspected.
const OWES: u32 = 120;

/// A property that does not hold.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Violation {
    /// A correct node was exposed.
    Slandered(u32),
    /// A correct node was suspected long after the network became honest, by this witness.
    Suspected(u32, u32),
    /// A liar was not found as it must be.
    NotFound(u32),
    /// Evidence against this node does not convince a third party.
    Unconvincing(u32),
    /// A correct node has delivered, at this place, what the source has not sent, though no node
    /// before it changes the stream.
    Invented(u32, u64),
    /// Two correct nodes have different content at a place, and nobody was exposed.
    Differ(u64),
    /// A correct node lacks a part of the stream, though it comes through all nodes before.
    ///
    /// The second number is that of the parts that are missing.
    Stuck(u32, usize),
    /// A witness has not audited a correct node's log to its end.
    Behind(u32, u32),
    /// A witness has made the log of a correct node grow without bound.
    Flooded(u32),
    /// A correct node has failed.
    Failed(u32),
    /// A correct node has delivered two parts at this place.
    Redelivered(u32, u64),
    /// A correct node that was killed is refused its own journal.
    JournalRefused(u32),
}

/// A liar at the end of a run.
pub(super) struct Lied {
    number: u32,
    /// The way in which it lies now, and those to whom.
    attack: Option<Attack>,
    to: Audience,
    has_lied: bool,
    /// Whether its device has signed what is not the log of a correct node.
    is_logged: bool,
}

impl Lied {
    pub(super) fn new(number: u32, liar: &Liar) -> Self {
        Self {
            number,
            attack: liar.attack,
            to: liar.together.to,
            has_lied: liar.lies_of_attack() > 0,
            is_logged: liar.cores.iter().any(|it| it.lie.is_logged),
        }
    }

    /// Whether the stream comes through it, if need be by its witnesses. A liar of a plan that has
    /// lied in another way before has ended that, unless it stands in its log.
    fn streams(&self, has_plan: bool) -> bool {
        let is_logged = has_plan && self.is_logged;
        !is_logged && self.attack.is_none_or(Attack::streams)
    }
}

/// The end of a run.
pub(super) struct Record<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) group: &'a Group,
    /// The stream, as the source's host has put it in.
    pub(super) stream: &'a [Vec<u8>],
    pub(super) correct: Vec<(u32, &'a Node<Tree>)>,
    /// The parts of the stream that each node has delivered, by number.
    pub(super) delivered: &'a [BTreeMap<u64, Vec<u8>>],
    pub(super) liars: Vec<Lied>,
    /// Liars that accepted nothing until their parent had to forget what comes next for them.
    pub(super) cut_off: Vec<u32>,
    /// Pairs of witness and liar of whom the first has suspected the second in honest times.
    pub(super) suspected: &'a [(u32, u32)],
    pub(super) ticks: u64,
}

impl Record<'_> {
    fn liar(&self, node: u32) -> Option<&Lied> {
        self.liars.iter().find(|it| it.number == node)
    }

    fn has_plan(&self) -> bool {
        self.scenario.plan.is_some()
    }

    pub(super) fn judge(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        for (number, node) in &self.correct {
            self.judge_node(*number, node, &mut found);
        }
        for liar in &self.liars {
            let is_found = match self.has_plan() {
                true => self.is_found_in_the_end(liar),
                false => !liar.has_lied || self.is_found(liar),
            };
            if !is_found {
                found.push(Violation::NotFound(liar.number));
            }
        }
        self.judge_stream(&mut found);
        found
    }

    fn judge_node(&self, number: u32, node: &Node<Tree>, found: &mut Vec<Violation>) {
        if node.failure().is_some() {
            found.push(Violation::Failed(number));
        }
        let closest = u64::from(self.group.options.audit / 2);
        if node.audits_recorded() > self.ticks / closest + 2 {
            found.push(Violation::Flooded(number));
        }
        for other in (0..self.scenario.nodes).filter(|it| *it != number) {
            let is_correct = self.liar(other).is_none();
            if let Verdict::Exposed(evidence) = node.verdict(other) {
                if is_correct {
                    found.push(Violation::Slandered(other));
                }
                // A third party has the bytes, the public keys and the application alone.
                let tree = Tree::new(self.scenario.nodes, DEGREE);
                let read = crate::Evidence::decode(&evidence.encode());
                if read.is_none_or(|it| it.verify(self.group, &tree).is_err()) {
                    found.push(Violation::Unconvincing(other));
                }
            }
            let last = self.correct.iter().find(|it| it.0 == other).map(|it| it.1.last());
            if let (Some(last), Some(audited)) = (last, node.audited(other))
                && last.saturating_sub(audited) > BEHIND
            {
                found.push(Violation::Behind(number, other));
            }
        }
    }

    /// Whether correct nodes know of a liar what they must, if it has lied in one way alone.
    fn is_found(&self, liar: &Lied) -> bool {
        // A message that a node hides is missed by its sender, if the sender is correct.
        let parent = Tree::new(self.scenario.nodes, DEGREE).parent(liar.number);
        let is_missed = parent.is_none_or(|it| self.liar(it).is_none());
        let is_of_child = liar.attack.is_some_and(Attack::is_of_child);
        match liar.attack.map_or(Found::Open, Attack::found) {
            Found::Exposed => self.is_exposed(liar.number),
            Found::Suspected if !is_missed && is_of_child => true,
            Found::Suspected => self.is_suspected(liar.number, |_| true),
            // The first witness that suspects it delivers its messages, so others need not.
            Found::AtTimes => {
                let mut witnesses = self.witnesses(liar.number);
                witnesses.any(|it| self.suspected.contains(&(it.0, liar.number)))
            }
            Found::Open => true,
        }
    }

    /// The same for a liar of a plan: whatever it did before, a lie in its log leads to evidence,
    /// or it does not show the log. Otherwise it is suspected of what it hides now.
    fn is_found_in_the_end(&self, liar: &Lied) -> bool {
        let node = liar.number;
        if liar.is_logged {
            return self.is_exposed(node) || self.is_suspected(node, |_| true);
        }
        let hides_log = matches!(
            liar.attack,
            Some(Attack::Stop | Attack::Mute | Attack::Stale | Attack::Defer)
        );
        if hides_log && liar.has_lied && !self.is_suspected(node, |it| liar.to.has(it)) {
            return false;
        }
        let parent = Tree::new(self.scenario.nodes, DEGREE).parent(node);
        let parent = self.correct.iter().find(|it| Some(it.0) == parent);
        let owes = parent.and_then(|it| it.1.host.outboxes.get(&node)).map_or(0, Outbox::age);
        // It cannot accept what comes after messages that its parent has forgotten.
        let is_cut_off = self.cut_off.contains(&node);
        owes <= OWES || is_cut_off || self.is_suspected(node, |_| true)
    }

    /// Whether all correct nodes have evidence against a node.
    fn is_exposed(&self, node: u32) -> bool {
        self.correct.iter().all(|it| it.1.evidence(node).is_some())
    }

    /// Whether those of its correct witnesses for which this is true suspect a node, or have
    /// evidence.
    fn is_suspected(&self, node: u32, must: impl Fn(u32) -> bool) -> bool {
        let mut witnesses = self.witnesses(node).filter(|it| must(it.0));
        witnesses.all(|it| it.1.verdict(node) != Verdict::Trusted)
    }

    fn witnesses(&self, node: u32) -> impl Iterator<Item = &(u32, &Node<Tree>)> {
        self.correct.iter().filter(move |it| self.group.is_witness(it.0, node))
    }

    fn judge_stream(&self, found: &mut Vec<Violation>) {
        let tree = Tree::new(self.scenario.nodes, DEGREE);
        let is_found = self.liars.iter().any(|it| match self.has_plan() {
            true => it.is_logged,
            false => {
                let is_hidden = it.attack.map(Attack::found) == Some(Found::Suspected);
                self.is_exposed(it.number) || (it.has_lied && is_hidden)
            }
        });
        for (node, _) in &self.correct {
            let own = &self.delivered[*node as usize];
            let above = std::iter::successors(tree.parent(*node), |it| tree.parent(*it));
            let streams = |it| {
                let is_correct_or_streams =
                    self.liar(it).is_none_or(|it| it.streams(self.has_plan()));
                is_correct_or_streams && !self.cut_off.contains(&it)
            };
            if { above }.all(streams) && !self.scenario.is_rolled_back {
                for (number, bytes) in own {
                    let place = usize::try_from(number - 1).unwrap_or(usize::MAX);
                    if self.stream.get(place) != Some(bytes) {
                        found.push(Violation::Invented(*node, *number));
                    }
                }
                let missing = self.stream.len().saturating_sub(own.len());
                if missing > 0 {
                    found.push(Violation::Stuck(*node, missing));
                }
            }
            for (other, _) in self.correct.iter().filter(|it| it.0 > *node) {
                let others = &self.delivered[*other as usize];
                let differs = |it: &(&u64, &Vec<u8>)| others.get(it.0).is_some_and(|at| at != it.1);
                if let Some((place, _)) = own.iter().find(differs).filter(|_| !is_found) {
                    found.push(Violation::Differ(*place));
                }
            }
        }
    }
}
