// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A liar of several.

use std::collections::BTreeSet;

use smt_replica::sim::To;
use smt_replica::{AnyService, Attested};

use crate::message::{Message, Statement, decode};
use crate::replica::{Output, Replica};
use crate::sim::coalition::Lie;
use crate::sim::liar::attest;
use crate::sim::step::StepName;

/// A liar of several: a replica that follows the protocol with some, and more that its host has
/// attested.
pub(crate) struct Member {
    pub(crate) core: Replica<AnyService>,
    /// The correct replicas with which it follows the protocol.
    pub(crate) with: BTreeSet<u32>,
    /// All that its device has attested, as messages, and the step that each comes from.
    said: Vec<(Vec<u8>, StepName)>,
    /// The counter up to which `said` has all of this epoch.
    counted: u64,
    /// How much of `said` each replica was shown.
    shown: Vec<usize>,
    /// The latest view that it has promised in this epoch.
    pub(crate) promised: u64,
    /// The views that it has entered in this epoch.
    pub(crate) entered: BTreeSet<u64>,
}

impl Member {
    pub(crate) fn new(core: Replica<AnyService>, replicas: u32) -> Self {
        Self {
            core,
            with: BTreeSet::new(),
            said: Vec::new(),
            counted: 0,
            shown: vec![0; replicas as usize],
            promised: 0,
            entered: BTreeSet::new(),
        }
    }

    pub(crate) fn own(&self) -> u32 {
        self.core.own
    }

    /// Notes what its replica has said.
    pub(crate) fn collect(&mut self, name: StepName) {
        let own = self.core.own_key();
        let Some(stream) = self.core.streams.get(&own) else {
            return;
        };
        let all: Vec<Attested> = stream.after(self.counted, usize::MAX).cloned().collect();
        for it in all {
            self.note(it, name);
        }
    }

    fn note(&mut self, it: Attested, name: StepName) {
        let Some(header) = it.attestation().claim() else {
            return;
        };
        self.counted = header.counter;
        match decode(&it.body) {
            Some(Statement::ViewChange { view }) => self.promised = self.promised.max(view),
            Some(Statement::Enter { view, .. }) => {
                self.entered.insert(view);
            }
            _ => {}
        }
        self.said.push((Message::Statement(it).encode(), name));
    }

    /// Has a statement attested, and tells nobody.
    pub(crate) fn says(&mut self, statement: &Statement, name: StepName) -> Option<Attested> {
        self.collect(StepName::Follow);
        let said = attest(&mut self.core, statement)?;
        self.note(said.clone(), name);
        self.core.drain();
        Some(said)
    }

    /// Begins another epoch.
    pub(crate) fn restart(&mut self, nonce: [u8; 16]) {
        self.collect(StepName::Follow);
        crate::sim::liar::restart_keeping_state(&mut self.core, nonce);
        (self.counted, self.promised) = (0, 0);
        self.entered.clear();
        self.collect(StepName::Restart);
    }

    /// All that a replica was not shown, but for the last `held` statements.
    pub(crate) fn show(&mut self, to: u32, held: usize, name: StepName) -> Vec<Lie> {
        self.collect(StepName::Follow);
        let end = self.said.len().saturating_sub(held);
        let Some(shown) = self.shown.get_mut(to as usize).filter(|it| **it < end) else {
            return Vec::new();
        };
        let begin = std::mem::replace(shown, end);
        let from = self.core.own;
        let lie = |(bytes, step): &(Vec<u8>, StepName)| {
            let (to, bytes) = (To::Node(to), bytes.clone());
            Lie { from, to, bytes, steps: vec![*step, name] }
        };
        self.said[begin..end].iter().map(lie).collect()
    }

    /// All that its replica sends to those with whom it follows the protocol, and to other liars.
    pub(crate) fn outputs(&mut self, liars: &[u32]) -> Vec<Lie> {
        self.collect(StepName::Follow);
        let mut sent = Vec::new();
        let hears: Vec<u32> = self.with.iter().chain(liars).copied().collect();
        for to in &hears {
            sent.extend(self.show(*to, 0, StepName::Follow));
        }
        let from = self.core.own;
        let lie = |to, bytes| Lie { from, to, bytes, steps: vec![StepName::Follow] };
        for output in self.core.outputs() {
            match output {
                Output::Client(to, bytes) => sent.push(lie(To::Client(to), bytes)),
                Output::Replica(to, bytes) => {
                    sent.extend(hears.contains(&to).then(|| lie(To::Node(to), bytes)));
                }
                // Statements were shown before.
                Output::Replicas(bytes)
                    if !matches!(Message::decode(&bytes), Some(Message::Statement(_))) =>
                {
                    sent.extend(hears.iter().map(|to| lie(To::Node(*to), bytes.clone())));
                }
                Output::Replicas(_) => {}
            }
        }
        sent
    }
}
