// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The effects of messages on a node: what it writes to a disk needs only those that change it.

use super::Node;
use crate::application::Application;
use crate::authenticator::SentMessage;
use crate::message::{Message, Segment};

/// Messages of a sender, or entries of a log, behind a gap that are kept until the next commit:
/// those before them may be among the inputs that wait for it.
const AHEAD: u64 = 1024;

/// The most that comes of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Effect {
    /// Nothing, now or later.
    Nothing,
    /// An answer. Whatever it changes is forgotten at a restart, and need not be known then.
    Answer,
    /// A change.
    Change,
}

impl<A: Application> Node<A> {
    /// The effect of a message, if other inputs may be taken before it.
    pub(crate) fn effect_of(&self, from: u32, message: &Message) -> Effect {
        match message {
            Message::Sent(it) | Message::Challenge(it) => self.effect_of_sent(it),
            Message::Receipt(it) => {
                let outbox = self.host.outboxes.get(&it.by());
                let is_own = it.from == self.own && outbox.is_some_and(|own| own.wants(it));
                let audited = self.audits.get(&it.from);
                change_if(is_own || audited.is_some_and(|audited| audited.wants(it)))
            }
            Message::Audit { nonce, .. } if self.group.is_witness(from, self.own) => {
                // A question that is repeated is in the log already.
                let is_known = self.asked.get(&from).is_some_and(|it| it.nonce == Some(*nonce));
                if is_known { Effect::Answer } else { Effect::Change }
            }
            Message::Audit { .. } => Effect::Nothing,
            Message::Segment(it) => change_if(self.may_take(from, it)),
            Message::Complaint(it) => {
                let concerned = [it.from(), it.to];
                change_if(concerned.iter().any(|node| self.audits.contains_key(node)))
            }
            Message::Exposed(known) => {
                let is_missing = self.exposed.keys().any(|it| !known.contains(it));
                if is_missing { Effect::Answer } else { Effect::Nothing }
            }
            Message::Evidence(it) => {
                let accused = it.accused();
                let is_news = accused != self.own && !self.exposed.contains_key(&accused);
                change_if(is_news && it.verify(&self.group, &self.reference).is_ok())
            }
        }
    }

    fn effect_of_sent(&self, message: &SentMessage) -> Effect {
        if message.to != self.own || message.from() >= self.group.nodes() {
            return Effect::Nothing;
        }
        let options = &self.group.options;
        if message.body.len() > options.body || message.authenticator.sent.len() > options.sends {
            return Effect::Nothing;
        }
        let last = self.host.state.received(message.from());
        match message.number.checked_sub(last) {
            None | Some(0) => Effect::Answer,
            Some(ahead) => change_if(ahead <= AHEAD),
        }
    }

    fn may_take(&self, from: u32, segment: &Segment) -> bool {
        let Some(audited) = self.audits.get(&from).filter(|_| !self.exposed.contains_key(&from))
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
