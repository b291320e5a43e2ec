// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Accusations, and the configurations that they make.
//!
//! A configuration is a function of its number, and the number counts with the accusations of f + 1
//! nodes beside it: one of them is correct, and wants another configuration. Anybody may therefore
//! put the two together, and anybody may carry them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use smt_replica::{Digest, Group, SignatureBytes, SigningKey};

use crate::digest::digest;
use crate::message::encode;

/// A node's word that a configuration is to end.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Accusation {
    /// The node.
    pub node: u32,
    /// The number of the configuration.
    pub number: u64,
    /// The signature by the node's key of replies.
    pub signature: SignatureBytes,
}

impl Accusation {
    /// Signs an accusation.
    #[must_use]
    pub fn sign(group: &Group, node: u32, number: u64, key: &SigningKey) -> Self {
        let signature = smt_replica::sign(key, &said(group, node, number));
        Self { node, number, signature }
    }

    /// Whether a node of the group has signed this.
    #[must_use]
    pub fn is_genuine(&self, group: &Group) -> bool {
        let said = said(group, self.node, self.number);
        let key = group.reply_keys.get(self.node as usize);
        key.is_some_and(|key| smt_replica::verifies(key, &said, &self.signature))
    }
}

/// The hash that is signed. Another group has other keys or another stream.
fn said(group: &Group, node: u32, number: u64) -> Digest {
    let members = encode(&(&group.reply_keys, group.stream));
    digest("accusation", &[&members, &node.to_be_bytes(), &number.to_be_bytes()])
}

/// A configuration's number, and the accusations of the one before that have made it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Made {
    /// The number, from 1.
    pub number: u64,
    /// The accusations of f + 1 nodes, in ascending order of the nodes.
    pub accusations: Vec<Accusation>,
}

impl Made {
    /// The highest configuration that these accusations make. Those that are forged do not count.
    #[must_use]
    pub fn of(group: &Group, accusations: &[Accusation]) -> Option<Self> {
        let mut accusers: BTreeMap<u64, BTreeMap<u32, Accusation>> = BTreeMap::new();
        for it in accusations.iter().filter(|it| it.is_genuine(group)) {
            accusers.entry(it.number).or_default().insert(it.node, *it);
        }
        let enough = |it: &(u64, BTreeMap<u32, Accusation>)| it.1.len() >= group.quorum();
        let (accused, by) = accusers.into_iter().rev().find(enough)?;
        let accusations = by.into_values().take(group.quorum()).collect();
        Some(Self { number: accused.checked_add(1)?, accusations })
    }

    /// Whether f + 1 nodes have made this.
    #[must_use]
    pub fn is_proven(&self, group: &Group) -> bool {
        let accusations = &self.accusations;
        accusations.len() == group.quorum()
            && accusations.windows(2).all(|it| it[0].node < it[1].node)
            && accusations.iter().all(|it| it.number.checked_add(1) == Some(self.number))
            && accusations.iter().all(|it| it.is_genuine(group))
    }
}

#[cfg(all(test, feature = "sim"))]
mod tests {
    use super::*;
    use smt_replica::sim::node_key;

    use crate::sim::group::group;

    fn accusation(node: u32, number: u64) -> Accusation {
        Accusation::sign(&group(5), node, number, &node_key(node))
    }

    #[test]
    fn a_configuration_is_made_by_f_plus_1_nodes_that_accuse_the_same_one() {
        let group = group(5);
        let two = [accusation(0, 3), accusation(4, 3), accusation(0, 3), accusation(1, 2)];
        assert_eq!(Made::of(&group, &two), None);
        let mut all = two.to_vec();
        all.push(accusation(2, 3));
        all.push(accusation(3, 9));
        let made = Made::of(&group, &all);
        let by = made.iter().flat_map(|it| &it.accusations).map(|it| it.node);
        assert_eq!(by.collect::<Vec<_>>(), [0, 2, 4]);
        assert!(made.is_some_and(|it| it.number == 4 && it.is_proven(&group)));
    }

    #[test]
    fn a_number_without_its_accusations_is_no_configuration() {
        let group = group(5);
        let proven = |number, accusations| Made { number, accusations }.is_proven(&group);
        let [a, b, c] = [0, 1, 2].map(|it| accusation(it, 7));
        assert!(proven(8, vec![a, b, c]));
        assert!(!proven(7, vec![a, b, c]) && !proven(9, vec![a, b, c]));
        assert!(!proven(8, vec![a, b]) && !proven(8, vec![a, b, b]) && !proven(8, vec![a, c, b]));
        let forged = Accusation { node: 3, ..c };
        assert!(!proven(8, vec![a, b, forged]) && !proven(8, vec![a, b, accusation(2, 6)]));
        assert!(!proven(0, Vec::new()));
    }

    #[test]
    fn an_accusation_of_another_group_does_not_count() {
        let it = Accusation::sign(&group(3), 0, 1, &node_key(0));
        assert!(it.is_genuine(&group(3)) && !it.is_genuine(&group(5)));
        let stranger = Accusation { node: 70, ..it };
        assert!(!stranger.is_genuine(&group(5)));
    }
}
