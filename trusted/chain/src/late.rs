// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long a node waits before it wants another configuration.

use serde::{Deserialize, Serialize};
use smt_replica::Service;

use crate::configuration::Configuration;
use crate::node::{Accuse, Node, Output};

/// The most doublings of the time that a configuration has to be opened.
const DOUBLINGS: u32 = 16;
/// The most choices between two doublings: those of seven nodes. Nine nodes have 126 choices, and
/// would have used up all that they may freeze after eight doublings.
const ROUND_MAX: u32 = 35;

/// An accusation of this node.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Accused {
    number: u64,
    /// The place up to which clients had had their replies.
    replied: u64,
    /// The ticks since then. Requests that waited already are as old as this at least.
    age: u32,
}

impl<S: Service + Clone> Node<S> {
    /// Counts a tick, and accuses the newest configuration if another one is wanted.
    pub(crate) fn accuse_if_late(&mut self) {
        if self.is_late() {
            self.metrics.accusations += 1;
            self.waited = 0;
            self.pending.wait_again();
            let (number, replied) = (self.own_track().promised, self.replied);
            self.accused = Some(Accused { number, replied, age: 0 });
            self.outputs.push(Output::Host(Accuse(number)));
        } else if let Some(accused) = &mut self.accused {
            accused.age = accused.age.saturating_add(1);
        }
    }

    /// The configuration that this node accuses. Nothing when it waits no longer for what was late:
    /// f liars with an old accusation would otherwise end a configuration that serves.
    pub fn accusation(&self) -> Option<u64> {
        let accused = self.accused?;
        let track = self.own_track();
        let waits = track.at.0 < track.promised
            || self.replied == accused.replied
            || self.pending.iter().any(|it| it.age >= accused.age);
        (waits && accused.number == track.promised).then_some(accused.number)
    }

    /// Counts a tick. True if another configuration is wanted.
    fn is_late(&mut self) -> bool {
        let limit = self.group.options.timeout;
        let track = self.own_track();
        if track.at.0 < track.promised {
            let limit = opening_limit(limit, self.group.replicas, track.frozen);
            self.waited = self.waited.saturating_add(1);
            return self.waited > limit;
        }
        self.waited = 0;
        self.pending.tick(limit)
    }
}

/// The ticks in which a configuration is to be opened, after so many that were frozen in vain. They
/// double with each round of choices: what is wrong then is no node, but the network, and the
/// configurations that others let a node freeze in vain would run out (`Track::may_freeze`).
fn opening_limit(timeout: u32, nodes: u32, frozen: u32) -> u32 {
    let round = Configuration::choices(nodes).clamp(1, ROUND_MAX);
    timeout.saturating_mul(1 << (frozen / round).min(DOUBLINGS))
}

#[cfg(all(test, feature = "sim"))]
mod tests {
    use super::opening_limit;
    use crate::configuration::Configuration;
    use crate::sim::together::Together;

    // Once, each of these timeouts made a configuration that nobody could open, and after 1,024 of
    // them the next FREEZE made its own sender a liar.
    #[test]
    fn two_nodes_that_were_cut_off_for_1100_timeouts_answer_when_they_are_joined() {
        let mut nodes = Together::new(2);
        let ticks = 1_100 * (nodes.timeout() + 1);
        nodes.is_cut = true;
        nodes.request(1, 2);
        (0..ticks).for_each(|_| nodes.tick());
        assert!(nodes.replies.is_empty());
        nodes.is_cut = false;
        let is_answered = (0..ticks).any(|_| {
            nodes.tick();
            nodes.replies.len() >= 2
        });
        assert!(is_answered, "{:?}", nodes.nodes[0].metrics());
        assert!(nodes.nodes.iter().all(|it| it.faulty().count() == 0));
    }

    // Once, nine nodes had frozen all that they may after 32,130 timeouts without a network: nine
    // hours, if a timeout is a second. With more choices in a round, the time doubled too rarely.
    #[test]
    fn groups_of_all_sizes_try_each_choice_soon_and_freeze_for_a_year_of_seconds() {
        for nodes in [3, 5, 7, 9] {
            let limits = |count| (0..count).map(|it| u64::from(opening_limit(1, nodes, it)));
            let of_all_choices = limits(Configuration::choices(nodes)).sum::<u64>();
            assert!(of_all_choices <= 420, "{nodes} nodes: {of_all_choices}");
            let of_all_freezes = limits(1024).sum::<u64>();
            assert!(of_all_freezes > 365 * 86_400, "{nodes} nodes: {of_all_freezes}");
        }
    }

    #[test]
    fn an_accusation_ends_when_what_was_late_is_answered() {
        let mut nodes = Together::new(2);
        nodes.is_cut = true;
        nodes.request(1, 1);
        (0..nodes.timeout()).for_each(|_| nodes.tick());
        assert_eq!(nodes.nodes[0].accusation(), None);
        (0..3).for_each(|_| nodes.tick());
        assert_eq!(nodes.nodes[0].accusation(), Some(0));
        nodes.is_cut = false;
        nodes.tick();
        assert_eq!(nodes.nodes[0].metrics().committed, 1);
        assert_eq!(nodes.nodes[0].accusation(), None);
    }

    // Once, it waited while the client's last request was not committed, which a client with
    // requests under way can have at each tick: the node accused one configuration after the other.
    #[test]
    fn a_request_that_is_refused_makes_no_node_accuse_while_its_client_has_others_under_way() {
        let mut nodes = Together::new(3);
        nodes.request(40, 3);
        for number in 41..44 + 2 * u64::from(nodes.timeout()) {
            // It is ordered, and is not committed before the tick.
            nodes.is_cut = true;
            nodes.request(number, 1);
            nodes.request(1, 3);
            nodes.is_cut = false;
            nodes.tick();
            assert_eq!(nodes.nodes[0].accusation(), None, "{number}");
            assert_eq!(nodes.nodes[0].metrics().committed, number - 39);
        }
        assert!(nodes.nodes[0].pending.is_empty());
    }

    #[test]
    fn a_node_that_may_freeze_no_other_configuration_is_silent_and_no_liar() {
        let mut nodes = Together::new(1);
        let node = &mut nodes.nodes[0];
        for number in 1..1_100 {
            // The next one has node 1 at its head, which opens none.
            node.configure(Configuration::of_number(3 * number + 2, 3));
        }
        let track = node.own_track();
        assert_eq!((track.frozen, track.counter, track.is_faulty), (1024, 1024, false));
    }
}
