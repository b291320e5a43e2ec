// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Statements that a node makes of its own accord.

use smt_replica::Service;

use crate::configuration::Configuration;
use crate::message::Statement;
use crate::node::Node;

impl<S: Service + Clone> Node<S> {
    /// Does all that can be done now.
    pub(crate) fn advance(&mut self) {
        // A device that outlives the node gives the rest when the log has what it gave.
        while !self.device.is_ahead_of_log() {
            self.drain();
            self.reply_to_committed();
            self.leave_out();
            // Only a liar's stream can be faulty to the liar itself.
            if self.own_track().is_faulty {
                return;
            }
            let did = self.freeze()
                || self.open_configuration()
                || self.enter()
                || self.order()
                || self.prove();
            if !did {
                return;
            }
        }
    }

    /// The log in which this node may speak, and the place that it has proved.
    fn part(&self) -> Option<(u64, u64)> {
        let track = self.own_track();
        (track.promised <= track.at.0 && !track.is_faulty).then_some(track.at)
    }

    /// The newest configuration ends all before. A node that has frozen as many as it may without
    /// having entered one says nothing: others would take it for a liar. It follows when f + 1
    /// others have frozen one that is opened.
    fn freeze(&mut self) -> bool {
        let configuration = self.newest();
        if !self.own_track().may_freeze(configuration) {
            return false;
        }
        self.say(&Statement::Freeze { configuration });
        self.entered();
        self.own_track().promised == configuration
    }

    /// The new head opens the configuration, when f + 1 have frozen.
    fn open_configuration(&mut self) -> bool {
        #[cfg(feature = "sim")]
        if self.holds_proofs {
            return false;
        }
        let configuration = self.own_track().promised;
        let head = self.configurations.get(&configuration).and_then(Configuration::head);
        if head != Some(self.own) || self.logs.contains_key(&configuration) {
            return false;
        }
        let Some(freezes) = self.freezes_for(configuration) else {
            return false;
        };
        self.say(&Statement::Open { configuration, freezes });
        self.logs.contains_key(&configuration)
    }

    /// Enters the latest configuration that was opened.
    fn enter(&mut self) -> bool {
        let track = self.own_track();
        let Some((configuration, log)) = self.logs.last_key_value() else {
            return false;
        };
        if *configuration <= track.at.0 || *configuration < track.promised {
            return false;
        }
        let (configuration, opening) = (*configuration, log.opening());
        self.say(&Statement::Enter { configuration, opening });
        self.entered();
        self.forget_logs();
        self.own_track().at.0 == configuration
    }

    /// The head orders and executes requests that wait.
    fn order(&mut self) -> bool {
        #[cfg(feature = "sim")]
        if self.holds_orders {
            return false;
        }
        let Some((configuration, last)) = self.part() else {
            return false;
        };
        let committed = if self.committed.0 == configuration { self.committed.1 } else { 0 };
        let Some(log) = self.logs.get_mut(&configuration) else {
            return false;
        };
        let window = log.start.max(committed) + self.group.options.window;
        if log.configuration.head() != Some(self.own) || last >= window {
            return false;
        }
        // The one that came first: a client that asks again and again keeps no other out.
        let next = self.pending.iter().find(|it| log.is_new(&it.request));
        let Some(request) = next.map(|it| it.request.clone()) else {
            return false;
        };
        let output = log.append(request.clone()).output;
        let place = log.length();
        self.say(&Statement::Order { configuration, place, request, output });
        self.part() == Some((configuration, place))
    }

    /// Proves the next place that the node before has proved.
    fn prove(&mut self) -> bool {
        #[cfg(feature = "sim")]
        if self.holds_proofs {
            return false;
        }
        let Some((configuration, last)) = self.part() else {
            return false;
        };
        let place = last + 1;
        let Some(log) = self.logs.get(&configuration) else {
            return false;
        };
        let Some(previous) = log.configuration.before(self.own) else {
            return false;
        };
        let (Some(before), Some(entry)) = (log.proof(place, previous), log.entry(place)) else {
            return false;
        };
        let output = entry.output;
        self.say(&Statement::Proof { configuration, place, output, before });
        self.part() == Some((configuration, place))
    }
}
