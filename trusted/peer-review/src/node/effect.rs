// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The effects of messages on a node: what it writes to a disk needs only those that change it.

use smt_replica::{Asker, Effect};

use super::{Node, Output};
use crate::application::Application;
use crate::authenticator::SentMessage;
use crate::evidence::Evidence;
use crate::logged::Event;
use crate::message::{Message, Segment};

/// Messages of a sender, or entries of a log, behind a gap that are kept until the next commit:
/// those before them may be among the inputs that wait for it.
const AHEAD: u64 = 1024;

/// Messages of each kind of a peer that are answered in one tick.
const ANSWERS_MAX: u64 = 32;

impl<A: Application> Node<A> {
    /// The effect of something from outside, if other inputs may be taken before it.
    pub(crate) fn effect_of(&mut self, event: &Event) -> Effect {
        match event {
            Event::Local(input) => {
                let is_short = input.len() <= self.group.options.body;
                change_if(is_short && self.failure.is_none())
            }
            Event::Message(from, _) if *from >= self.group.nodes() => Effect::Nothing,
            Event::Message(from, Message::Evidence(it)) => self.effect_of_evidence(*from, it),
            Event::Message(from, message) => self.effect_of_message(*from, message),
        }
    }

    fn effect_of_evidence(&mut self, from: u32, evidence: &Evidence) -> Effect {
        if self.unproven.contains(&from) {
            return Effect::Nothing;
        }
        let accused = evidence.accused();
        let is_news = accused != self.own && !self.host.exposed.contains_key(&accused);
        let effect = change_if(is_news && evidence.verify(&self.group, &self.reference).is_ok());
        if effect == Effect::Nothing {
            self.unproven.insert(from);
        }
        effect
    }

    fn effect_of_message(&self, from: u32, message: &Message) -> Effect {
        let subject = |kind: u64, number: u64| {
            Effect::Answer(Asker::Subject(from, kind * ANSWERS_MAX + number % ANSWERS_MAX))
        };
        match message {
            Message::Sent(it) => self.effect_of_sent(it, subject(0, it.number)),
            Message::Challenge(it) => self.effect_of_sent(it, subject(1, it.number)),
            Message::Receipt(it) => {
                let outbox = self.host.outboxes.get(&it.by());
                let is_own = it.from == self.own && outbox.is_some_and(|own| own.wants(it));
                let audited = self.audits.get(&it.from);
                change_if(is_own || audited.is_some_and(|audited| audited.0.wants(it)))
            }
            Message::Audit { after, nonce } if self.group.is_witness(from, self.own) => {
                // A question that is repeated is in the log already. It goes on segment by segment.
                let is_known =
                    self.host.asked.get(&from).is_some_and(|it| it.nonce == Some(*nonce));
                let segment = after / self.group.options.segment.max(1) as u64;
                if is_known { subject(2, segment) } else { Effect::Change }
            }
            Message::Segment(it) => change_if(self.may_take(from, it)),
            Message::Complaint(it) => {
                let concerned = [it.from(), it.to];
                change_if(concerned.iter().any(|node| self.audits.contains_key(node)))
            }
            Message::Exposed(known) => {
                let is_missing = self.host.exposed.keys().any(|it| !known.contains(it));
                if is_missing { subject(3, 0) } else { Effect::Nothing }
            }
            Message::Audit { .. } | Message::Evidence(_) => Effect::Nothing,
        }
    }

    /// The effect of a message of the application; `again` is that of one that was taken.
    fn effect_of_sent(&self, message: &SentMessage, again: Effect) -> Effect {
        if message.to != self.own || message.from() >= self.group.nodes() {
            return Effect::Nothing;
        }
        let options = &self.group.options;
        if message.body.len() > options.body || message.authenticator.sent.len() > options.sends {
            return Effect::Nothing;
        }
        let last = self.state.received(message.from());
        match message.number.checked_sub(last) {
            None | Some(0) => again,
            Some(ahead) => change_if(ahead <= AHEAD),
        }
    }

    /// The answer to a message. Whatever it changes is forgotten at a restart, and need not be
    /// known then.
    pub(crate) fn reply(&mut self, event: &Event) -> Vec<Output> {
        // Inputs that were taken meanwhile may have made it a change, which is not durable.
        if let Event::Message(from, message) = event
            && matches!(self.effect_of(event), Effect::Answer(_))
        {
            self.take(*from, message.clone());
        }
        self.outputs()
    }

    fn may_take(&self, from: u32, segment: &Segment) -> bool {
        let Some((audited, _)) =
            self.audits.get(&from).filter(|_| !self.host.exposed.contains_key(&from))
        else {
            return false;
        };
        // Segments before it may be among the inputs that wait.
        let ahead = segment.after.checked_sub(audited.index());
        let is_next = !segment.entries.is_empty() && ahead.is_some_and(|it| it <= AHEAD);
        is_next || segment.receipts.iter().any(|it| audited.wants(it))
    }
}

fn change_if(is_change: bool) -> Effect {
    if is_change { Effect::Change } else { Effect::Nothing }
}
