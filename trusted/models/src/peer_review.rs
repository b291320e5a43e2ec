// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A model of `smt-peer-review`: a source, a liar that forwards to a child, and that child. Source
//! and child are the liar's witnesses.

mod liar;
mod node;
mod properties;

use std::fmt;
use std::sync::Arc;

use smt_peer_review::sim::observe;
use smt_peer_review::{Group, Message};
use stateright::{Model, Property};

use crate::{Limited, MessageId, Messages, RunId, Runs};
use liar::Log;
use node::{Input, Member, Seen, members};

pub use liar::{Forwards, Lie, Shown};
pub use properties::{names, twins};

/// The source of the stream, and the liar's child.
const CORRECT: [u32; 2] = [0, 2];
/// The node that lies.
const LIAR: u32 = 1;

/// The most that happens.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// How much time passes at the source. The second tick begins an audit, and with the third who
    /// has not answered is suspected.
    pub ticks: u32,
    /// How much time passes at the child.
    pub child_ticks: u32,
    /// The most entries of the liar's log.
    pub entries: usize,
}

/// Nodes, and their bounds.
pub struct PeerReview {
    bounds: Bounds,
    group: Arc<Group>,
    messages: Messages,
    runs: Runs<Member>,
    entries: liar::Entries,
}

/// A state: each correct node's, and the liar's log.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct State {
    correct: Vec<(u32, RunId)>,
    log: Log,
}

/// Something that happens.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    /// The source has a part of the stream.
    Part,
    /// Time passes at a node.
    Tick(u32),
    /// A message of one correct node comes to the other.
    Deliver(u32, MessageId),
    /// The liar has an entry attested.
    Log(Lie),
    /// The liar sends something to a node.
    Show(u32, Shown),
}

impl PeerReview {
    /// Correct nodes.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        let (group, messages) = (observe::group(), Messages::default());
        let runs = members(&group, &messages);
        let entries = liar::Entries::default();
        Self { bounds, group, messages, runs, entries }
    }

    /// How many states of single nodes were reached, and how many of their steps were played.
    pub fn runs(&self) -> (usize, usize) {
        self.runs.count()
    }

    fn see(&self, state: &State, own: u32) -> Option<Arc<Seen>> {
        let (_, run) = state.correct.iter().find(|it| it.0 == own)?;
        Some(self.runs.see(*run))
    }

    /// The states of the correct nodes.
    fn seen(&self, state: &State) -> Vec<(u32, Arc<Seen>)> {
        state.correct.iter().map(|(own, run)| (*own, self.runs.see(*run))).collect()
    }

    /// Whether a message between correct nodes has to do with the liar. In this model they do not
    /// audit each other.
    fn is_about_liar(&self, message: MessageId) -> bool {
        let message = Message::decode(&self.messages.bytes(message));
        !matches!(message, Some(Message::Audit { .. } | Message::Segment(_) | Message::Exposed(_)))
    }

    fn take(&self, state: &mut State, to: u32, input: Input) {
        if let Some((_, run)) = state.correct.iter_mut().find(|it| it.0 == to) {
            *run = self.runs.after(*run, &[input]);
        }
    }
}

impl Limited for PeerReview {
    /// All of its states are explored.
    fn end_after(&self, _: Option<usize>) {}
}

impl Model for PeerReview {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let correct = CORRECT.iter().map(|it| (*it, self.runs.first(*it))).collect();
        vec![State { correct, log: Log::default() }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (own, seen) in self.seen(state) {
            if own == 0 && !seen.has_part {
                actions.push(Action::Part);
            }
            let ticks = if own == 0 { self.bounds.ticks } else { self.bounds.child_ticks };
            if seen.ticks < ticks {
                actions.push(Action::Tick(own));
            }
            let to = CORRECT[usize::from(own == CORRECT[0])];
            let said = seen.said.iter().filter(|it| it.0 == to && self.is_about_liar(it.1));
            actions.extend(said.map(|it| Action::Deliver(to, it.1)));
            actions.extend(self.shows(state, own).into_iter().map(|it| Action::Show(own, it)));
        }
        if state.log.len() < self.bounds.entries {
            actions.extend(self.lies(state).into_iter().map(Action::Log));
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Part => self.take(&mut next, 0, Input::Part),
            Action::Tick(own) => self.take(&mut next, own, Input::Tick),
            Action::Deliver(to, it) => {
                let from = CORRECT[usize::from(to == CORRECT[0])];
                self.take(&mut next, to, Input::Message(from, it));
            }
            Action::Log(lie) => next.log = self.logged(state, lie)?,
            Action::Show(to, shown) => {
                let message = self.message(state, to, &shown)?;
                self.take(&mut next, to, Input::Message(LIAR, message));
            }
        }
        (next != *state).then_some(next)
    }

    fn format_action(&self, action: &Action) -> String {
        match action {
            Action::Part => "the source has a part of the stream".into(),
            Action::Tick(own) => format!("time passes at {own}"),
            Action::Deliver(to, it) => {
                let message = Message::decode(&self.messages.bytes(*it));
                let text = format!("{message:?}");
                let kind = text.split(['(', '{']).nth(1).unwrap_or_default();
                format!("a message of the other correct node comes to {to}: {kind}")
            }
            Action::Log(lie) => format!("{LIAR} logs: {lie:?}"),
            Action::Show(to, shown) => format!("{LIAR} sends to {to}: {shown:?}"),
        }
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}

impl fmt::Debug for PeerReview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "peer review of three nodes, of which {LIAR} lies, {:?}", self.bounds)
    }
}
