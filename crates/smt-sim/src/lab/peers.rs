// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Pairs of hosts that send to each other, and pairs that have a session: a session is for both
//! directions, so there may be more of these.

use std::collections::BTreeSet;

use super::scenario::{Pattern, Scenario};
use crate::net::packet::HostId;
use crate::random::Random;

/// By host.
pub(super) struct Peers {
    /// Whom it sends to.
    pub(super) sends_to: Vec<Vec<HostId>>,
    /// Whom it sends to or hears from.
    pub(super) sessions: Vec<Vec<HostId>>,
}

impl Peers {
    /// As a scenario has it.
    pub(super) fn of(scenario: &Scenario, random: &mut Random) -> Self {
        let hosts = scenario.topology.hosts();
        let sends_to = match scenario.pattern {
            Pattern::Incast { senders, .. } => (0..hosts)
                .map(|host| match (1..=senders).contains(&host) {
                    true => vec![HostId(0)],
                    false => Vec::new(),
                })
                .collect(),
            Pattern::Uniform { .. } if scenario.peers + 1 >= hosts => all(hosts),
            Pattern::Uniform { .. } => some(hosts, scenario.peers, random),
        };
        Self { sessions: both_ways(&sends_to), sends_to }
    }
}

/// Everybody to everybody.
fn all(hosts: u32) -> Vec<Vec<HostId>> {
    let others = |host| (0..hosts).filter(move |other| *other != host);
    (0..hosts).map(|host| others(host).map(HostId).collect()).collect()
}

/// Each to so many others, and each hears from as many, so that all links are offered the same:
/// hosts stand in a ring in random order, and each sends to those that are some random steps ahead,
/// the same steps for all.
fn some(hosts: u32, peers: u32, random: &mut Random) -> Vec<Vec<HostId>> {
    let ring = shuffled(0..hosts, random);
    let steps = shuffled(1..hosts, random);
    let steps = &steps[..peers as usize];
    let mut sends_to = vec![Vec::new(); hosts as usize];
    for (place, host) in (0..).zip(&ring) {
        let ahead = |step: &u32| HostId(ring[((place + step) % hosts) as usize]);
        sends_to[*host as usize] = steps.iter().map(ahead).collect();
    }
    sends_to
}

fn both_ways(sends_to: &[Vec<HostId>]) -> Vec<Vec<HostId>> {
    let mut sessions = vec![BTreeSet::new(); sends_to.len()];
    for (host, to) in (0..).map(HostId).zip(sends_to) {
        for other in to {
            sessions[host.0 as usize].insert(*other);
            sessions[other.0 as usize].insert(host);
        }
    }
    let list = |set: BTreeSet<HostId>| set.into_iter().collect();
    sessions.into_iter().map(list).collect()
}

fn shuffled(numbers: std::ops::Range<u32>, random: &mut Random) -> Vec<u32> {
    let mut numbers: Vec<u32> = numbers.collect();
    for end in (1..numbers.len()).rev() {
        numbers.swap(end, random.below(end as u64 + 1) as usize);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::{Named, ScenarioFile};

    /// The peers of the hosts of a rack.
    fn peers(hosts: u32, peers: u32) -> Peers {
        let mut scenario =
            ScenarioFile::parse(Named::find("rack-10").unwrap().text).unwrap().scenario();
        scenario.topology.hosts_per_rack = hosts;
        scenario.peers = peers;
        Peers::of(&scenario, &mut Random::new(7))
    }

    #[test]
    fn each_sends_to_so_many_others_and_hears_from_as_many() {
        for (hosts, count) in [(100, 8), (10, 8), (10, 9), (10, 40), (3, 1)] {
            let sends_to = peers(hosts, count).sends_to;
            let count = count.min(hosts - 1) as usize;
            for host in (0..hosts).map(HostId) {
                let own: BTreeSet<_> = sends_to[host.0 as usize].iter().collect();
                assert_eq!((own.len(), own.contains(&host)), (count, false));
                let from = sends_to.iter().filter(|to| to.contains(&host));
                assert_eq!(from.count(), count, "{hosts} hosts");
            }
        }
    }

    #[test]
    fn host_that_sends_or_hears_has_a_session_and_no_other_has() {
        let Peers { sends_to, sessions } = peers(100, 8);
        let is_sent = |from: u32, to: u32| sends_to[from as usize].contains(&HostId(to));
        for (one, other) in (0..100).flat_map(|one| (0..100).map(move |other| (one, other))) {
            let has_session = sessions[one as usize].contains(&HostId(other));
            assert_eq!(has_session, is_sent(one, other) || is_sent(other, one));
        }
    }

    #[test]
    fn choice_of_receivers_follows_no_order_of_the_hosts() {
        let sends_to = peers(100, 8).sends_to;
        let steps = |host: u32| {
            let to = sends_to[host as usize].iter();
            to.map(|to| (to.0 + 100 - host) % 100).collect::<Vec<_>>()
        };
        assert_ne!(steps(0), steps(1));
    }
}
