// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long a node waits before it wants another configuration.

use smt_bft::Service;

use crate::configuration::Configuration;
use crate::node::Node;

/// The most doublings of the time that a configuration has to be opened.
const DOUBLINGS: u32 = 16;

impl<S: Service + Clone> Node<S> {
    /// Counts a tick. True if another configuration is wanted.
    pub(crate) fn is_late(&mut self) -> bool {
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
        nodes.request(1);
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
