// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Statements that a replica makes of its own accord.

use std::sync::Arc;

use smt_replica::{Request, Service};

use crate::message::{Batch, Statement, fits_statement};
use crate::replica::Replica;

impl<S: Service> Replica<S> {
    /// Does all that can be done now.
    pub(crate) fn advance(&mut self) {
        // A device that outlives the replica gives the rest when the log has what it gave.
        while !self.device.is_ahead_of_log() {
            self.drain();
            let (view, to) = self.decided;
            self.execute(view, to);
            if self.device.is_ahead_of_log() {
                return;
            }
            self.forget_stable();
            // Only a liar's stream can be faulty to the liar itself.
            if self.own_track().is_faulty {
                return;
            }
            if !self.may_say() || !self.say_next() {
                return;
            }
        }
    }

    /// Whether the last statement of this replica was taken here. One that waits would come again.
    fn may_say(&self) -> bool {
        self.device.counter() <= self.own_track().counter
    }

    /// Says the next statement that is due. While the own stream is far from its stable checkpoint
    /// that is only what others may need to state where it stands.
    fn say_next(&mut self) -> bool {
        let is_full = self.is_window_full();
        self.state_checkpoints()
            || self.say_checkpoint()
            || (!is_full && self.admit_newcomers())
            || self.enter_view()
            || self.join_view_change()
            || self.open_view()
            || (!is_full && (self.order() || self.commit()))
    }

    /// States the next checkpoint of the log that was executed.
    fn say_checkpoint(&mut self) -> bool {
        let last = self.own_track().checkpoint;
        match self.ledger.checkpoint_after(last) {
            Some(checkpoint) if self.metrics.is_active => {
                self.say(Statement::Checkpoint(checkpoint));
                self.own_track().checkpoint > last
            }
            _ => false,
        }
    }

    /// The view in which this replica takes part, and the place that it has committed to.
    fn part(&self) -> Option<(u64, u64)> {
        let track = self.own_track();
        track.at.filter(|at| track.promised <= at.0 && !track.is_faulty)
    }

    /// Wants a later view. A replica that has wanted as many as it may without having entered one
    /// is silent: others would take it for a liar.
    pub(crate) fn want(&mut self, view: u64) {
        let track = self.own_track();
        if track.may_want(view) && !track.is_faulty && self.may_say() {
            self.say(Statement::ViewChange { view });
            self.wait_again();
        }
    }

    /// The leader orders requests that wait.
    fn order(&mut self) -> bool {
        #[cfg(feature = "sim")]
        if self.holds_orders {
            return false;
        }
        let Some((view, last)) = self.part() else {
            return false;
        };
        let options = self.group.options;
        let has_room = last < self.ledger.stable.saturating_add(options.window);
        if self.group.leader(view) != self.own || !has_room {
            return false;
        }
        // Requests that come meanwhile go together, as Nagle's bytes do: else each would be a
        // batch, with a statement of each replica.
        let behind = last.saturating_sub(options.pipeline.max(1) - 1);
        let is_pipeline_full = self.decided < (view, behind);
        let (batch, is_full) = self.next_batch();
        if batch.is_empty() || (is_pipeline_full && !is_full) {
            return false;
        }
        let batch: Vec<Request> = batch.into_iter().cloned().collect();
        let sequence = last + 1;
        for request in &batch {
            if let Some(pending) = self.pending.get_mut(request.client, request.number) {
                pending.ordered = Some(sequence);
            }
        }
        let batch: Batch = Arc::new(batch);
        self.say(Statement::Prepare { view, sequence, batch });
        self.part() == Some((view, sequence))
    }

    /// Requests that are not ordered yet, and whether no further one fits beside them.
    fn next_batch(&self) -> (Vec<&Request>, bool) {
        let mut batch: Vec<&Request> = Vec::new();
        for pending in self.pending.iter().filter(|it| it.ordered.is_none()) {
            let lengths =
                { batch.iter().copied() }.chain([&pending.request]).map(|it| it.operation.len());
            let fits = fits_statement(lengths);
            if batch.len() == self.group.options.batch || !fits {
                return (batch, true);
            }
            batch.push(&pending.request);
        }
        let is_full = batch.len() == self.group.options.batch;
        (batch, is_full)
    }

    /// A follower commits to all that the leader has ordered.
    fn commit(&mut self) -> bool {
        #[cfg(feature = "sim")]
        if self.holds_commits {
            return false;
        }
        let Some((view, last)) = self.part() else {
            return false;
        };
        let end = self.views.get(&view).map(crate::view::View::end);
        let Some(sequence) = end.filter(|end| *end > last) else {
            return false;
        };
        if self.group.leader(view) == self.own {
            return false;
        }
        self.say(Statement::Commit { view, sequence });
        self.part() == Some((view, sequence))
    }

    /// Enters the latest view that was opened.
    fn enter_view(&mut self) -> bool {
        let track = self.own_track();
        let Some((view, opened)) = self.views.last_key_value() else {
            return false;
        };
        let is_later = track.at.is_none_or(|at| at.0 < *view) && track.promised <= *view;
        if !is_later || opened.epoch(self.own) != Some(self.start.epoch.0) || track.is_faulty {
            return false;
        }
        let (view, opening) = (*view, opened.digest);
        self.say(Statement::Enter { view, opening });
        if self.own_track().at.is_none_or(|at| at.0 != view) {
            return false;
        }
        self.entered(view);
        true
    }

    /// Joins f + 1 others.
    fn join_view_change(&mut self) -> bool {
        let wanted = self.wanted_by_quorum();
        if !self.metrics.is_active || wanted <= self.own_track().promised {
            return false;
        }
        self.want(wanted);
        self.own_track().promised == wanted
    }

    /// Opens the view that this replica is to lead, when f + 1 want it.
    fn open_view(&mut self) -> bool {
        let view = self.own_track().promised;
        let is_open = self.views.contains_key(&view) || !self.own_track().may_open(view);
        if self.group.leader(view) != self.own || is_open || !self.metrics.is_active {
            return false;
        }
        let Some(votes) = self.votes_for(view) else {
            return false;
        };
        self.say(Statement::NewView { view, votes });
        self.views.contains_key(&view)
    }
}
