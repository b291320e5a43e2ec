// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node as one of its witnesses sees it: audits, challenges, and messages without receipts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use smt_replica::Digest;

use crate::application::Application;
use crate::authenticator::{Authenticator, Receipt, SentMessage};
use crate::entry::{Entry, Input};
use crate::evidence::{Base, Evidence};
use crate::forwarding::Forwarding;
use crate::group::{Group, Options};
use crate::message::Message;
use crate::state::{At, Made, State};

/// Why a witness suspects a node. Each ends when the node answers.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, thiserror::Error)]
pub enum Suspicion {
    /// It does not show its log.
    #[error("it does not show its log")]
    Audit,
    /// It gives no receipt for the message of a sender.
    #[error("it gives no receipt for a message of node {from}")]
    Receipt {
        /// The sender.
        from: u32,
    },
    /// Its messages to a receiver have no receipt, and it does not tell.
    #[error("its messages to node {to} have no receipt, and it does not tell of them")]
    Forwarding {
        /// The receiver.
        to: u32,
    },
}

/// A message of which a receipt is due.
#[derive(Clone, Deserialize, Serialize)]
struct Challenge {
    message: SentMessage,
    age: u32,
}

/// The state of one audit.
#[derive(Clone, Default, Deserialize, Serialize)]
struct Audit {
    nonce: [u8; 16],
    is_open: bool,
    /// Ticks since it was opened, or since it was answered.
    ticks: u32,
}

/// A node under audit, beside its state as its log gives it ([`State`]).
#[derive(Default, Deserialize, Serialize)]
pub(crate) struct Audited {
    witness: u32,
    node: u32,
    /// The last entry that was taken, and its digest.
    index: u64,
    head: Digest,
    /// Where evidence begins, and the entries from there on.
    base: Option<Base>,
    recent: Vec<Entry>,
    audit: Audit,
    /// Ticks since the beginning.
    now: u64,
    forwarding: BTreeMap<u32, Forwarding>,
    challenges: BTreeMap<u32, Challenge>,
    /// The receipt of each sender's newest message that the log has.
    receipts: BTreeMap<u32, Receipt>,
}

impl Audited {
    pub(crate) fn new(witness: u32, node: u32) -> Self {
        Self { witness, node, ..Self::default() }
    }

    /// The index up to which the log was audited.
    pub(crate) fn index(&self) -> u64 {
        self.index
    }

    pub(crate) fn suspicions(&self, options: &Options) -> Vec<Suspicion> {
        let mut found = Vec::new();
        if self.audit.is_open && self.audit.ticks > options.suspect {
            found.push(Suspicion::Audit);
        }
        let late = self.challenges.iter().filter(|it| it.1.age > options.suspect);
        found.extend(late.map(|(from, _)| Suspicion::Receipt { from: *from }));
        let late = self.forwarding.iter().filter(|it| it.1.is_late(self.now, options));
        found.extend(late.map(|(to, _)| Suspicion::Forwarding { to: *to }));
        found
    }

    /// Time passes. Gives messages with their receivers. `nonce` is used if an audit begins.
    pub(crate) fn tick(
        &mut self,
        state: &State<impl Application>,
        group: &Group,
        nonce: [u8; 16],
    ) -> Vec<(u32, Message)> {
        let options = &group.options;
        self.now = self.now.saturating_add(1);
        let mut out = Vec::new();
        self.audit.ticks = self.audit.ticks.saturating_add(1);
        if !self.audit.is_open && self.audit.ticks >= options.audit {
            self.audit = Audit { nonce, is_open: true, ticks: 1 };
        }
        let resend = options.resend.max(1);
        if self.audit.is_open && self.audit.ticks % resend == 1 % resend {
            out.push((self.node, self.question()));
        }
        self.challenges.retain(|from, it| state.received(*from) < it.message.number);
        for (from, it) in &mut self.challenges {
            // An earlier message has no receipt: that is not this node's fault.
            let is_due = state.received(*from).checked_add(1) == Some(it.message.number);
            if is_due {
                it.age = it.age.saturating_add(1);
                if it.age % resend == 1 % resend {
                    out.push((self.node, Message::Challenge(Box::new(it.message.clone()))));
                }
            }
        }
        for (to, it) in &self.forwarding {
            let due = it.due(self.now, options);
            let complaint = due.first().map(|it| Message::Complaint(Box::new(it.clone())));
            out.extend(due.into_iter().map(|it| (*to, Message::Challenge(Box::new(it)))));
            if let Some(complaint) = complaint {
                out.extend(group.witnesses(*to).map(|it| (it, complaint.clone())));
            }
        }
        out
    }

    fn question(&self) -> Message {
        Message::Audit { after: self.index, nonce: self.audit.nonce }
    }

    /// A sender without a receipt has told of a message to this node. The message is genuine.
    pub(crate) fn challenge(&mut self, state: &State<impl Application>, message: &SentMessage) {
        let from = message.from();
        let received = state.received(from);
        let kept = self.challenges.get(&from).map(|it| it.message.number);
        let is_earlier = kept.is_none_or(|kept| message.number < kept || kept <= received);
        if message.number > received && is_earlier {
            self.challenges.insert(from, Challenge { message: message.clone(), age: 0 });
        }
    }

    /// The receipt that the log itself has of a message to this node, which may keep it back.
    pub(crate) fn receipt_of(&self, message: &SentMessage) -> Option<&Receipt> {
        self.receipts.get(&message.from()).filter(|it| message.number <= it.number)
    }

    /// This node has told of its message that has no receipt, by sending it. Gives the receipt if
    /// there is one: the node has lost it.
    pub(crate) fn told(&mut self, message: &SentMessage, options: &Options) -> Option<Receipt> {
        let it = self.forwarding.entry(message.to).or_default();
        it.tell(message.number, self.now, options);
        it.receipt_of(message.number).cloned()
    }

    /// Whether a receipt tells something new.
    pub(crate) fn wants(&self, receipt: &Receipt) -> bool {
        let known = self.forwarding.get(&receipt.by());
        receipt.from == self.node && known.is_none_or(|it| it.wants(receipt))
    }

    /// Takes a genuine receipt for a message of this node.
    pub(crate) fn acknowledge(&mut self, receipt: &Receipt) {
        let it = self.forwarding.entry(receipt.by()).or_default();
        it.acknowledge(receipt.clone(), self.now);
    }

    /// Takes the next part of the log. Gives evidence if it has a fault, and else the question for
    /// what is missing.
    pub(crate) fn take(
        &mut self,
        state: &mut State<impl Application>,
        entries: &[Entry],
        group: &Group,
    ) -> Result<Option<Message>, Box<Evidence>> {
        if entries.is_empty() {
            return Ok(None);
        }
        // Evidence with a longer entry would reach nobody. No correct node shows one.
        let are_bounded = entries.iter().all(|it| it.is_bounded(&group.options));
        if entries.len() > group.options.segment || !are_bounded {
            return Ok(None);
        }
        if !self.are_signed(entries, group) {
            return Ok(None);
        }
        for (place, entry) in entries.iter().enumerate() {
            let is_checkpoint = matches!(entry.input, Input::Checkpoint { .. });
            let before = (self.head, is_checkpoint.then(|| state.encode()));
            let at = At { node: self.node, index: self.index + 1, group };
            match state.apply(at, &entry.input) {
                Ok(made) if made.sent == entry.sent => {
                    self.note(entry, at, before, made);
                }
                _ => return Err(Box::new(self.evidence(&entries[place..]))),
            }
        }
        let is_more = self.audit.is_open && entries.len() == group.options.segment;
        Ok(is_more.then(|| self.question()))
    }

    /// Whether the device has signed the last entry, which covers the contents of all, and each
    /// that is shown to others alone: one that sends, or takes a message. Contents do not cover
    /// signatures, and the witness speaks with these in the node's name.
    fn are_signed(&self, entries: &[Entry], group: &Group) -> bool {
        let (mut index, mut head) = (self.index, self.head);
        for (place, entry) in entries.iter().enumerate() {
            index += 1;
            head = entry.digest(index, &head);
            let is_shown = !entry.sent.is_empty() || matches!(entry.input, Input::Received(_));
            let is_last = place + 1 == entries.len();
            let must = is_shown || is_last;
            if must && !group.has_signed(self.node, index, &head, &entry.signature) {
                return false;
            }
        }
        true
    }

    /// The entry was taken.
    fn note(
        &mut self,
        entry: &Entry,
        at: At<'_>,
        (previous, state): (Digest, Option<Vec<u8>>),
        made: Made,
    ) {
        let index = at.index;
        self.index = index;
        self.head = entry.digest(index, &previous);
        if let Some(state) = state {
            self.base = Some(Base { index, previous, state });
            self.recent.clear();
        }
        self.recent.push(entry.clone());
        // A log may have nonces that were never asked for: they end no audit, and put none off.
        if let Input::Audit { witness, nonce } = &entry.input
            && self.audit.is_open
            && (*witness, *nonce) == (self.witness, self.audit.nonce)
        {
            self.audit = Audit::default();
        }
        let authenticator = Authenticator {
            node: self.node,
            index,
            previous,
            input: entry.input.digest(),
            sent: entry.sent.clone(),
            signature: entry.signature,
        };
        if let Input::Received(message) = &entry.input {
            let receipt = Receipt::new(authenticator.clone(), message);
            self.receipts.insert(message.from(), receipt);
        }
        for (sent, body) in entry.sent.iter().zip(made.bodies) {
            let (authenticator, to, number) = (authenticator.clone(), sent.to, sent.number);
            let message = SentMessage { authenticator, to, number, body };
            let it = self.forwarding.entry(to).or_default();
            it.add(message, self.now, at.group.options.retained);
        }
    }

    /// Evidence of a fault in the first of `rest`, whose last entry is signed.
    fn evidence(&self, rest: &[Entry]) -> Evidence {
        let entries = self.recent.iter().chain(rest).cloned().collect();
        Evidence::Log { node: self.node, base: self.base.clone(), entries }
    }
}
