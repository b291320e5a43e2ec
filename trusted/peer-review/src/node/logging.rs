// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node's own log: entries that its device attests, and the segments that its witnesses get.

use smt_attestor::AttestorError;
use smt_replica::{Digest, SignatureBytes};

use super::{Node, NodeError, Output};
use crate::application::Application;
use crate::authenticator::{Authenticator, SentMessage, entry_digest};
use crate::entry::{Entry, Input};
use crate::message::{Message, Segment};
use crate::state::{At, Fault, Made, state_digest};

impl<A: Application> Node<A> {
    /// Puts an input into the log, and does what follows. Nothing if no correct node takes it.
    pub(crate) fn record(&mut self, input: Input) -> Option<Authenticator> {
        let next = self.host.log.last() + 1;
        let is_due = next.is_multiple_of(self.group.options.interval);
        #[cfg(feature = "sim")]
        let is_due = is_due && !self.lie.skips_checkpoint();
        if is_due {
            let state = state_digest(&self.state.encode());
            self.apply(Input::Checkpoint { state })?;
        }
        self.apply(input)
    }

    fn apply(&mut self, input: Input) -> Option<Authenticator> {
        if self.failure.is_some() {
            return None;
        }
        let (group, index) = (self.group.clone(), self.host.log.last() + 1);
        let at = At { node: self.own, index, group: &group };
        #[cfg(feature = "sim")]
        let at = self.lie.at(at);
        match self.state.apply(at, &input) {
            Ok(made) => self.commit(input, made),
            Err(fault) => {
                // The application has gone on, and the log has not.
                if fault == Fault::Unfit {
                    self.failure = Some(NodeError::Application(fault));
                }
                None
            }
        }
    }

    /// Has the entry attested and signed, keeps it, and sends its messages.
    pub(crate) fn commit(&mut self, input: Input, made: Made) -> Option<Authenticator> {
        #[cfg(feature = "sim")]
        let honest = made.clone();
        #[cfg(feature = "sim")]
        let (input, made) = self.lie.distort(self.host.log.last() + 1, input, made);
        let (index, previous) = (self.host.log.last() + 1, self.host.log.head());
        let input_digest = input.digest();
        let digest = entry_digest(index, &previous, &input_digest, &made.sent);
        let signature = match self.sign(index, &digest) {
            Ok(signature) => signature,
            Err(error) => {
                self.failure = Some(error);
                return None;
            }
        };
        let (node, sent) = (self.own, made.sent.clone());
        let authenticator =
            Authenticator { node, index, previous, input: input_digest, sent, signature };
        let sent = made.sent.clone();
        #[cfg(feature = "sim")]
        let sent = if self.lie.rewrites() { honest.sent } else { sent };
        let entry = Entry { input, sent, signature };
        let retained = self.group.options.retained;
        self.host.log.push(entry, digest, retained);
        self.outputs.extend(made.delivered.into_iter().map(Output::Host));
        for (sent, body) in made.sent.into_iter().zip(made.bodies) {
            let (authenticator, to, number) = (authenticator.clone(), sent.to, sent.number);
            let message = SentMessage { authenticator, to, number, body };
            self.host.outboxes.entry(to).or_default().push(message.clone(), retained);
            self.send(to, Message::Sent(Box::new(message)));
        }
        Some(authenticator)
    }

    fn sign(&mut self, index: u64, digest: &Digest) -> Result<SignatureBytes, NodeError> {
        let Some((attestation, signature)) = self.device.attest_signed(digest) else {
            let failure = self.device.failure().unwrap_or(AttestorError::Foreign);
            return Err(NodeError::Device(failure));
        };
        let counter = attestation.claim().map_or(0, |it| it.counter);
        let is_next = counter == index;
        #[cfg(feature = "sim")]
        let is_next = is_next || self.lie.restores();
        if is_next { Ok(signature) } else { Err(NodeError::OldLog { counter, last: index - 1 }) }
    }

    /// Answers a witness. Its nonce goes into the log, unless it asks too often.
    pub(super) fn answer(&mut self, witness: u32, after: u64, nonce: [u8; 16]) {
        if !self.group.is_witness(witness, self.own) {
            return;
        }
        let ticks = self.host.ticks;
        let closest = u64::from(self.group.options.audit / 2);
        let asked = self.host.asked.entry(witness).or_default();
        asked.after = asked.after.max(after.min(self.host.log.last()));
        if asked.nonce != Some(nonce) {
            let is_early = asked.nonce.is_some() && ticks < asked.at + closest;
            if is_early {
                return;
            }
            asked.nonce = Some(nonce);
            asked.at = ticks;
            #[cfg(feature = "sim")]
            {
                asked.recorded += 1;
            }
            if self.record(Input::Audit { witness, nonce }).is_none() {
                return;
            }
        }
        // One answer a tick, and what follows on it: a question is short, and a segment is not.
        let asked = self.host.asked.entry(witness).or_default();
        let goes_on = after == asked.end && after < self.host.log.last();
        if asked.answered == Some(ticks) && !goes_on {
            return;
        }
        let entries = self.host.log.after(after, self.group.options.segment);
        asked.answered = Some(ticks);
        asked.end = after.saturating_add(entries.len() as u64);
        let receipts = self.host.outboxes.values().filter_map(|it| it.receipt().cloned()).collect();
        self.send(witness, Message::Segment(Segment { after, entries, receipts }));
        self.forget();
    }

    /// Forgets the entries that all witnesses have.
    fn forget(&mut self) {
        let progress = |it| self.host.asked.get(&it).map_or(0, |it| it.after);
        if let Some(index) = self.group.witnesses(self.own).map(progress).min() {
            self.host.log.forget(index);
        }
    }
}
