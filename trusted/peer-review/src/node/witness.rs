// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node as the witness of others: complaints, segments of their logs, and evidence against them.

use super::Node;
use crate::application::Application;
use crate::authenticator::{Authenticator, SentMessage};
use crate::evidence::{Evidence, conflict};
use crate::message::{Message, Segment};

impl<A: Application> Node<A> {
    pub(super) fn take_complaint(&mut self, from: u32, message: &SentMessage) {
        let (sender, receiver) = (message.from(), message.to);
        let concerns = [sender, receiver].iter().any(|it| self.audits.contains_key(it));
        if !concerns || self.host.exposed.contains_key(&sender) {
            return;
        }
        if !message.is_genuine(&self.group) {
            return;
        }
        self.note(message.authenticator.clone());
        let mut receipts = Vec::new();
        if let Some((audited, state)) = self.audits.get_mut(&receiver) {
            audited.challenge(state, message);
            receipts.extend(audited.receipt_of(message).cloned());
        }
        if let Some((audited, _)) = self.audits.get_mut(&sender).filter(|_| from == sender) {
            receipts.extend(audited.told(message, &self.group.options));
        }
        // A witness of the sender that delivers for it complains too.
        for receipt in receipts {
            let receipt = Message::Receipt(Box::new(receipt));
            if from != sender {
                self.send(from, receipt.clone());
            }
            self.send(sender, receipt);
        }
    }

    pub(super) fn take_segment(&mut self, from: u32, segment: &Segment) {
        if self.host.exposed.contains_key(&from) {
            return;
        }
        let group = self.group.clone();
        let Some((audited, state)) =
            self.audits.get_mut(&from).filter(|it| it.0.index() == segment.after)
        else {
            return;
        };
        match audited.take(state, &segment.entries, &group) {
            Ok(question) => question.into_iter().for_each(|it| self.send(from, it)),
            Err(evidence) => return self.expose(*evidence),
        }
        for receipt in segment.receipts.iter().take(self.group.keys.len()) {
            let is_wanted = self.audits.get(&from).is_some_and(|it| it.0.wants(receipt));
            if is_wanted && self.is_receipt(receipt) {
                self.note(receipt.authenticator.clone());
                if let Some((audited, _)) = self.audits.get_mut(&from) {
                    audited.acknowledge(receipt);
                }
            }
        }
    }

    /// Compares a signed entry with the one that was seen before.
    pub(super) fn note(&mut self, new: Authenticator) {
        let Some(old) = self.host.seen.get(&new.node) else {
            self.host.seen.insert(new.node, new);
            return;
        };
        let mut two = [old.clone(), new];
        two.sort_by_key(|it| it.index);
        if conflict(&two[0], &two[1]) {
            self.expose(Evidence::Conflict(Box::new(two)));
        } else {
            let [_, newest] = two;
            self.host.seen.insert(newest.node, newest);
        }
    }

    /// Takes evidence, and tells all others if it is new and proves its point.
    pub(super) fn expose(&mut self, evidence: Evidence) {
        let accused = evidence.accused();
        if accused == self.own || self.host.exposed.contains_key(&accused) {
            return;
        }
        let verified = evidence.verify(&self.group, &self.reference);
        if verified.is_ok() {
            self.send_all(&Message::Evidence(Box::new(evidence.clone())));
            self.host.exposed.insert(accused, evidence);
        }
    }

    /// Gives a node the evidence that it does not have, at most twice in the time between audits.
    pub(super) fn inform(&mut self, to: u32, known: &[u32]) {
        let missing = self.host.exposed.iter().filter(|it| !known.contains(it.0) && *it.0 != to);
        let missing: Vec<Evidence> = missing.map(|it| it.1.clone()).collect();
        let closest = u64::from(self.group.options.audit / 2);
        let is_early = self.host.informed.get(&to).is_some_and(|it| self.host.ticks < it + closest);
        if missing.is_empty() || is_early {
            return;
        }
        self.host.informed.insert(to, self.host.ticks);
        for evidence in missing {
            self.send(to, Message::Evidence(Box::new(evidence)));
        }
    }
}
