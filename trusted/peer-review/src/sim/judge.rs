// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The properties that each run must have.

use crate::group::Group;
use crate::node::{Node, Verdict};
use crate::sim::attack::{Attack, Found};
use crate::sim::scenario::{DEGREE, Scenario};
use crate::tree::{Content, Delivery, Tree};

/// A witness may be so many entries behind a correct node's log.
const BEHIND: u64 = 40;

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
}

/// The end of a run.
pub(super) struct Record<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) group: &'a Group,
    /// The stream, as the source's host has put it in.
    pub(super) stream: &'a [Vec<u8>],
    pub(super) correct: Vec<(u32, &'a Node<Tree>)>,
    /// The deliveries of each node.
    pub(super) delivered: &'a [Vec<Vec<u8>>],
    /// Liars that have lied.
    pub(super) lied: Vec<(u32, Attack)>,
    /// Pairs of witness and liar of whom the first has suspected the second in honest times.
    pub(super) suspected: &'a [(u32, u32)],
    pub(super) ticks: u64,
}

impl Record<'_> {
    fn attack(&self, node: u32) -> Option<Attack> {
        self.scenario.liars.iter().find(|it| it.0 == node).map(|it| it.1)
    }

    pub(super) fn judge(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        for (number, node) in &self.correct {
            self.judge_node(*number, node, &mut found);
        }
        for (liar, attack) in &self.lied {
            if !self.is_found(*liar, *attack) {
                found.push(Violation::NotFound(*liar));
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
            let is_correct = self.attack(other).is_none();
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

    /// Whether correct nodes know of a liar what they must.
    fn is_found(&self, liar: u32, attack: Attack) -> bool {
        let is_exposed =
            |it: &&(u32, &Node<Tree>)| matches!(it.1.verdict(liar), Verdict::Exposed(_));
        let witnesses = self.correct.iter().filter(|it| self.group.is_witness(it.0, liar));
        // A message that a node hides is missed by its sender, if the sender is correct.
        let parent = Tree::new(self.scenario.nodes, DEGREE).parent(liar);
        let is_missed = parent.is_none_or(|it| self.attack(it).is_none());
        match attack.found() {
            Found::Exposed => self.correct.iter().filter(is_exposed).count() == self.correct.len(),
            Found::Suspected if !is_missed && attack.is_of_child() => true,
            Found::Suspected => { witnesses }.all(|it| it.1.verdict(liar) != Verdict::Trusted),
            // The first witness that suspects it delivers its messages, so others need not.
            Found::AtTimes => { witnesses }.any(|it| self.suspected.contains(&(it.0, liar))),
            Found::Open => true,
        }
    }

    fn judge_stream(&self, found: &mut Vec<Violation>) {
        let contents = |node: u32| -> Vec<Content> {
            let delivered = self.delivered[node as usize].iter();
            delivered.filter_map(|it| Delivery::decode(it)).map(|it| it.content).collect()
        };
        let tree = Tree::new(self.scenario.nodes, DEGREE);
        let is_any_exposed = self.scenario.liars.iter().any(|liar| {
            let verdicts = self.correct.iter().map(|it| it.1.verdict(liar.0));
            { verdicts }.all(|it| matches!(it, Verdict::Exposed(_)))
        });
        let is_suspect = self.lied.iter().any(|it| it.1.found() == Found::Suspected);
        for (node, _) in &self.correct {
            let own = contents(*node);
            let above = std::iter::successors(tree.parent(*node), |it| tree.parent(*it));
            let comes_through = { above }.all(|it| self.attack(it).is_none_or(Attack::streams));
            if comes_through && !self.scenario.is_rolled_back {
                for content in &own {
                    let place = usize::try_from(content.number - 1).unwrap_or(usize::MAX);
                    if self.stream.get(place) != Some(&content.bytes) {
                        found.push(Violation::Invented(*node, content.number));
                    }
                }
                let missing = self.stream.len().saturating_sub(own.len());
                if missing > 0 {
                    found.push(Violation::Stuck(*node, missing));
                }
            }
            for (other, _) in self.correct.iter().filter(|it| it.0 > *node) {
                let two = own.iter().zip(contents(*other));
                let differ = { two }.find(|(one, other)| *one != other).map(|it| it.0.number);
                if let Some(place) = differ.filter(|_| !is_any_exposed && !is_suspect) {
                    found.push(Violation::Differ(place));
                }
            }
        }
    }
}
