// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Pairs of hosts, in no order: those whose sessions may end in a case. A fault of one pair excuses
//! no failure of another.

use std::collections::BTreeSet;

use crate::net::packet::HostId;

/// Pairs of hosts.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HostPairs(BTreeSet<(HostId, HostId)>);

impl HostPairs {
    /// Adds a pair.
    pub fn add(&mut self, one: HostId, other: HostId) {
        self.0.insert((one.min(other), one.max(other)));
    }

    /// Adds this host with each of so many, and itself.
    pub fn add_all_of(&mut self, host: HostId, hosts: u32) {
        (0..hosts).for_each(|other| self.add(host, HostId(other)));
    }

    /// Adds a pair, or all of so many hosts.
    pub fn add_either(&mut self, pair: Option<(HostId, HostId)>, hosts: u32) {
        match pair {
            Some((one, other)) => self.add(one, other),
            None => (0..hosts).for_each(|host| self.add_all_of(HostId(host), hosts)),
        }
    }

    /// Whether it is one of them.
    pub fn contains(&self, one: HostId, other: HostId) -> bool {
        self.0.contains(&(one.min(other), one.max(other)))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those of two hosts, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (HostId, HostId)> + '_ {
        self.0.iter().copied().filter(|(one, other)| one != other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_has_no_order() {
        let mut pairs = HostPairs::default();
        pairs.add(HostId(2), HostId(1));
        assert!(pairs.contains(HostId(1), HostId(2)) && pairs.contains(HostId(2), HostId(1)));
        assert!(!pairs.contains(HostId(0), HostId(1)));
    }

    #[test]
    fn those_of_a_host_are_no_others() {
        let mut pairs = HostPairs::default();
        pairs.add_all_of(HostId(1), 4);
        let names: Vec<_> = pairs.iter().map(|(one, other)| (one.0, other.0)).collect();
        assert_eq!(names, [(0, 1), (1, 2), (1, 3)]);
        pairs.add_either(None, 4);
        assert_eq!(pairs.iter().count(), 6);
    }
}
