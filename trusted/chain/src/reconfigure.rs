// SPDX-License-Identifier: Apache-2.0 OR MIT
//! New configurations: what f + 1 FREEZEs come to.
//!
//! A FREEZE carries its sender's whole gapless stream by reference: its receiver has taken that
//! stream up to there, or waits. A sender can hide nothing that it has proved.

use smt_replica::Service;

use crate::accusation::Made;
use crate::configuration::Configuration;
use crate::judge::{From, Verdict};
use crate::message::Reference;
use crate::node::Node;
use crate::track::{Frozen, Track};

impl<S: Service + Clone> Node<S> {
    /// Takes a configuration of the trusted service. Each node gets each, in any order.
    pub fn configure(&mut self, configuration: Configuration) {
        if configuration.is_of(self.group.replicas) {
            self.configurations.entry(configuration.number).or_insert(configuration);
            self.advance();
        }
    }

    /// Takes a configuration that f + 1 nodes have made, and all before it: those were made too,
    /// and streams may refer to them.
    pub(crate) fn learn(&mut self, made: Made) {
        // A newer one may have come since its signatures were verified.
        if !self.is_newer(&made) {
            return;
        }
        let nodes = self.group.replicas;
        for earlier in self.newest() + 1..made.number {
            self.configurations.insert(earlier, Configuration::of_number(earlier, nodes));
        }
        let configuration = Configuration::of_number(made.number, nodes);
        self.made = Some(made);
        self.configure(configuration);
    }

    /// Whether a configuration is newer than all that were proved before, and proved.
    pub(crate) fn is_news(&self, made: &Made) -> bool {
        self.is_newer(made) && made.is_proven(&self.group)
    }

    fn is_newer(&self, made: &Made) -> bool {
        self.made.as_ref().is_none_or(|it| it.number < made.number)
    }

    /// The newest configuration that was proved; nothing before the first reconfiguration.
    pub fn made(&self) -> Option<&Made> {
        self.made.as_ref()
    }

    /// The newest configuration that it knows.
    pub(crate) fn newest(&self) -> u64 {
        self.configurations.last_key_value().map_or(0, |it| *it.0)
    }

    /// Judges an OPEN, and opens the configuration.
    pub(crate) fn judge_open(
        &mut self,
        track: &Track,
        from: From,
        configuration: u64,
        references: &[Reference],
    ) -> Verdict {
        // Before any wait: the statement is kept while it waits. A head opens the configuration
        // that it has frozen last: nobody goes back behind the places that it has proved.
        if !self.is_quorum(references) || configuration != track.promised {
            return Verdict::Faulty;
        }
        // The service makes configurations, and no node: this one may come yet.
        let Some(order) = self.configurations.get(&configuration).cloned() else {
            return Verdict::Wait;
        };
        if order.head() != Some(from.node) || self.logs.contains_key(&configuration) {
            return Verdict::Faulty;
        }
        let mut frozen = Vec::new();
        for reference in references {
            let Some(stream) = self.streams.get(reference.node as usize) else {
                return Verdict::Faulty;
            };
            if stream.track.counter < reference.counter {
                return Verdict::Wait;
            }
            let is_it = |it: &&Frozen| it.counter == reference.counter && it.mac == reference.mac;
            let Some(it) = stream.track.freezes.get(&configuration).filter(is_it) else {
                return Verdict::Faulty;
            };
            frozen.push(it.at);
        }
        // All that was committed has f + 1 proofs in the latest of these configurations, or before
        // it: those and these f + 1 have a node in common, which can hide nothing.
        let Some((latest, start)) = frozen.iter().max().copied() else {
            return Verdict::Faulty;
        };
        let Some(before) = self.logs.get(&latest) else {
            return Verdict::Wait;
        };
        // No FREEZEs of f + 1 nodes are behind what was left out (`Node::leave_out`).
        let Some(log) = before.begin(order, start) else {
            return Verdict::Wait;
        };
        self.logs.insert(configuration, log);
        Verdict::Taken
    }

    /// Whether these are FREEZEs of f + 1 distinct nodes.
    fn is_quorum(&self, references: &[Reference]) -> bool {
        let is_ascending = references.windows(2).all(|it| it[0].node < it[1].node);
        references.len() == self.group.quorum() && is_ascending
    }

    /// The FREEZEs with which this node can open a configuration.
    pub(crate) fn freezes_for(&self, configuration: u64) -> Option<Vec<Reference>> {
        let found = (0..).zip(&self.streams).filter_map(|(node, stream)| {
            let it = stream.track.freezes.get(&configuration)?;
            Some(Reference { node, counter: it.counter, mac: it.mac })
        });
        let found: Vec<Reference> = found.take(self.group.quorum()).collect();
        (found.len() == self.group.quorum()).then_some(found)
    }

    /// Forgets the logs that no stream refers to any more, but for those of slow nodes. The one in
    /// which a place was committed last has the answers, and stays.
    pub(crate) fn forget_logs(&mut self) {
        let committed = self.committed.0;
        // A node that lags for longer follows no more.
        while self.logs.len() > LOGS {
            let Some(oldest) = self.logs.keys().copied().find(|it| *it != committed) else {
                break;
            };
            self.logs.remove(&oldest);
        }
        let lowest = self.lowest().0.min(committed);
        self.logs.retain(|number, _| *number >= lowest);
        self.configurations = self.configurations.split_off(&lowest);
    }

    /// The configuration and the place that all have proved who are followed. No statement is of
    /// earlier ones.
    fn lowest(&self) -> (u64, u64) {
        let followed = self.streams.iter().map(|it| &it.track).filter(|it| !it.is_faulty);
        followed.map(|it| it.at).min().unwrap_or_default()
    }

    /// Leaves out the part of the log that all have proved, and clients have had their replies of.
    ///
    /// A later configuration begins behind it: f + 1 have proved the place, and a FREEZE of one of
    /// them is among those of each OPEN.
    pub(crate) fn leave_out(&mut self) {
        let (lowest, place) = self.lowest();
        let place = place.min(self.replied);
        let Some(log) = self.logs.get(&self.committed.0).filter(|_| lowest == self.committed.0)
        else {
            return;
        };
        // Entries are executed again for the state after them: some at a time.
        if place < log.left_out() + self.group.options.interval.max(1) {
            return;
        }
        let mut before = None;
        self.logs.values_mut().for_each(|it| it.leave_out(place, &mut before));
        self.forget_logs();
    }
}

/// How many logs are remembered, for streams that are behind.
const LOGS: usize = 64;

#[cfg(all(test, feature = "sim"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use crate::message::{Message, Reference, Statement};
    use crate::sim::together::Together;

    // It would wait for a configuration that the service need not make.
    #[test]
    fn an_open_with_more_or_fewer_freezes_than_a_quorum_is_faulty_at_once() {
        for (count, is_faulty) in [(0, true), (1, true), (2, false), (3, true)] {
            let mut nodes = Together::new(2);
            say(&mut nodes, &Statement::Freeze { configuration: 7 });
            say(&mut nodes, &open(7, count));
            assert_eq!(nodes.nodes[0].faulty().count() == 1, is_faulty, "{count}");
        }
    }

    // It would begin behind what is left out of the log, and no receiver could judge what follows.
    #[test]
    fn an_open_of_another_configuration_than_its_sender_has_frozen_last_is_faulty() {
        for (frozen, is_faulty) in [(7, false), (8, true)] {
            let mut nodes = Together::new(2);
            say(&mut nodes, &Statement::Freeze { configuration: 7 });
            if frozen > 7 {
                say(&mut nodes, &Statement::Freeze { configuration: frozen });
            }
            say(&mut nodes, &open(7, 2));
            assert_eq!(nodes.nodes[0].faulty().count() == 1, is_faulty, "{frozen}");
        }
    }

    fn open(configuration: u64, count: u32) -> Statement {
        let reference = |node| Reference { node, counter: 1, mac: [0; 32] };
        Statement::Open { configuration, freezes: (0..count).map(reference).collect() }
    }

    /// Node 1 says this to node 0.
    fn say(nodes: &mut Together, statement: &Statement) {
        let said = nodes.nodes[1].attest(statement).unwrap();
        nodes.nodes[0].receive(&Message::Statement(said).encode());
    }

    #[test]
    fn nothing_is_left_out_while_a_node_is_away_and_it_follows_when_it_is_back() {
        let mut nodes = Together::new(3);
        nodes.request(1, 3);
        let mut away = nodes.nodes.remove(2);
        for number in 2..=9 {
            nodes.request(number, 2);
        }
        (0..3).for_each(|_| nodes.tick());
        assert_eq!(nodes.nodes[0].metrics().committed, 9);
        assert_eq!(nodes.nodes[0].metrics().left_out, 0);
        away.outputs();
        nodes.nodes.push(away);
        (0..3).for_each(|_| nodes.tick());
        let numbers = nodes.nodes.iter().map(|it| (it.metrics().committed, it.metrics().left_out));
        assert!({ numbers }.all(|(committed, left)| committed == 9 && left >= 8), "they follow");
        // The last answer of a client stays.
        let replies = nodes.replies.len();
        nodes.request(9, 1);
        assert_eq!(nodes.replies.len(), replies + 1);
    }
}
