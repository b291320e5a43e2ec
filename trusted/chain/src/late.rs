// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long a node waits before it wants another configuration.

use smt_bft::Service;

use crate::configuration::Configuration;
use crate::node::{Node, Output};

/// The most doublings of the time that a configuration has to be opened.
const DOUBLINGS: u32 = 16;

/// An accusation of this node.
#[derive(Clone, Copy, Debug)]
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
            self.pending.values_mut().for_each(|it| it.age = 0);
            let (number, replied) = (self.own_track().promised, self.replied);
            self.accused = Some(Accused { number, replied, age: 0 });
            self.outputs.push(Output::Accuse(number));
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
            || self.pending.values().any(|it| it.age >= accused.age);
        (waits && accused.number == track.promised).then_some(accused.number)
    }

    /// Counts a tick. True if another configuration is wanted.
    fn is_late(&mut self) -> bool {
        let limit = self.group.options.timeout;
        let track = self.own_track();
        if track.at.0 < track.promised {
            let limit = self.opening_limit();
            self.waited = self.waited.saturating_add(1);
            return self.waited > limit;
        }
        self.waited = 0;
        let ages = self.pending.values_mut().map(|it| {
            it.age = it.age.saturating_add(1);
            it.age
        });
        ages.max().is_some_and(|age| age > limit)
    }

    /// The ticks in which a configuration is to be opened. They double with each round of choices
    /// in vain: what is wrong then is no node, but the network, and the configurations that others
    /// let a node freeze in vain would run out (`Track::may_freeze`).
    fn opening_limit(&self) -> u32 {
        let choices = Configuration::choices(self.group.replicas).max(1);
        let rounds = self.own_track().frozen / choices;
        self.group.options.timeout.saturating_mul(1 << rounds.min(DOUBLINGS))
    }
}

#[cfg(all(test, feature = "sim"))]
mod tests {
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
