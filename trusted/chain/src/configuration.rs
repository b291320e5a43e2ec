// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The order of the chain, as a trusted service gives it.

use serde::{Deserialize, Serialize};

/// An order of all nodes. The first f + 1 commit.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Configuration {
    /// Its number. Each configuration has one above the one before.
    pub number: u64,
    /// All nodes, the head first.
    pub order: Vec<u32>,
}

impl Configuration {
    /// The configuration of a number, by which a service that knows nothing of its nodes tries each
    /// choice of the first f + 1 in turn: in one of them all are correct.
    #[must_use]
    pub fn of_number(number: u64, nodes: u32) -> Self {
        let sets: Vec<u32> = choices(nodes).collect();
        let at = number % (sets.len() as u64).max(1);
        let set = sets.get(usize::try_from(at).unwrap_or(0)).copied().unwrap_or(0);
        let is_first = |node: &u32| set >> node & 1 == 1;
        let (mut order, rest): (Vec<u32>, Vec<u32>) = (0..nodes).partition(is_first);
        order.extend(rest);
        Self { number, order }
    }

    /// How many choices of the first f + 1 there are.
    pub(crate) fn choices(nodes: u32) -> u32 {
        choices(nodes).count() as u32
    }

    /// Whether this is an order of so many nodes.
    pub(crate) fn is_of(&self, nodes: u32) -> bool {
        let mut sorted = self.order.clone();
        sorted.sort_unstable();
        sorted.into_iter().eq(0..nodes)
    }

    /// The first node.
    pub(crate) fn head(&self) -> Option<u32> {
        self.order.first().copied()
    }

    /// The place of a node, from 0.
    pub(crate) fn position(&self, node: u32) -> Option<usize> {
        self.order.iter().position(|it| *it == node)
    }

    /// The node before this one.
    pub(crate) fn before(&self, node: u32) -> Option<u32> {
        self.order.get(self.position(node)?.checked_sub(1)?).copied()
    }

    /// The node after this one.
    pub(crate) fn after(&self, node: u32) -> Option<u32> {
        self.order.get(self.position(node)? + 1).copied()
    }
}

/// The choices of f + 1 nodes, as bits. The set of the first nodes comes first.
fn choices(nodes: u32) -> impl Iterator<Item = u32> {
    let size = nodes / 2 + 1;
    (0_u32..1 << nodes.min(16)).filter(move |set| set.count_ones() == size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_choice_of_the_first_nodes_comes_in_its_turn() {
        assert_eq!(Configuration::of_number(0, 5).order, [0, 1, 2, 3, 4]);
        let first = |number| Configuration::of_number(number, 5).order[..3].to_vec();
        let all: std::collections::BTreeSet<Vec<u32>> = (0..10).map(first).collect();
        assert_eq!(all.len(), 10);
        assert_eq!([3, 5, 9].map(Configuration::choices), [3, 10, 126]);
        assert!((0..20).all(|it| Configuration::of_number(it, 5).is_of(5)));
    }
}
