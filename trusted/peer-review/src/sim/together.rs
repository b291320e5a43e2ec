// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A liar of several that follow a plan: to whom it lies, whom it covers, and what it says late.

use std::collections::{BTreeMap, VecDeque};

use crate::authenticator::{Receipt, SentMessage};
use crate::message::Message;
use crate::sim::attack::Attack;
use crate::sim::liar::Liar;
use crate::sim::step::{Audience, StepName};

/// Ticks after a lie in which correct nodes that do something against the liar do it because of it.
const EFFECT: u64 = 80;

/// A message that a liar sends.
pub(super) struct Sent {
    pub(super) to: u32,
    pub(super) bytes: Vec<u8>,
    /// Whether the protocol does not send it, or not now, or has sent something else.
    pub(super) is_lie: bool,
}

/// All that a liar does by a plan beside its attack.
pub(super) struct Together {
    /// Those to whom it lies.
    pub(super) to: Audience,
    /// The node that it covers; nothing in it for all nodes.
    covers: Option<Option<u32>>,
    /// The receipts that covered liars have given, by liar and sender.
    pub(super) receipts: BTreeMap<(u32, u32), Receipt>,
    delay: u64,
    /// Messages that are late, and since when each is.
    late: VecDeque<(u64, Sent)>,
    /// Whether its witnesses have audited a checkpoint since it behaves.
    is_promised: bool,
    /// When it has done each thing last.
    done: BTreeMap<StepName, u64>,
    lies: u64,
    now: u64,
}

impl Default for Together {
    fn default() -> Self {
        Self {
            to: Audience::All,
            covers: None,
            receipts: BTreeMap::new(),
            delay: 0,
            late: VecDeque::new(),
            is_promised: false,
            done: BTreeMap::new(),
            lies: 0,
            now: 0,
        }
    }
}

impl Together {
    fn did(&mut self, name: StepName) {
        self.done.insert(name, self.now);
    }

    /// All that it has done.
    pub(super) fn done(&self) -> impl Iterator<Item = StepName> {
        self.done.keys().copied()
    }

    /// The things that it has done of late.
    pub(super) fn done_of_late(&self) -> impl Iterator<Item = StepName> {
        let is_of_late = |it: &(&StepName, &u64)| self.now <= it.1 + EFFECT;
        self.done.iter().filter(is_of_late).map(|it| *it.0)
    }
}

impl Liar {
    /// Lies in a way from now on, or follows the protocol.
    pub(super) fn turn(&mut self, attack: Option<Attack>, to: Audience) {
        self.note();
        if attack.is_none() && self.lies_of_attack() > 0 {
            self.together.did(StepName::Behave);
        }
        self.attack = attack;
        self.cores.iter_mut().for_each(|it| it.lie.attack = attack);
        (self.ticks, self.lies_before, self.has_stopped) = (0, self.lies(), false);
        (self.saved, self.together.to) = (None, to);
        self.shown.clear();
        if attack.is_none() {
            (self.together.covers, self.together.delay) = (None, 0);
        }
    }

    /// Its witnesses have audited its first checkpoint, and it behaves.
    pub(super) fn promise(&mut self) {
        self.together.is_promised = self.attack.is_none();
    }

    /// Covers another liar, or all nodes.
    pub(super) fn cover(&mut self, of: Option<u32>) {
        self.together.covers = Some(of);
    }

    /// Says all later by so many ticks.
    pub(super) fn delay(&mut self, ticks: u64) {
        self.together.delay = ticks;
    }

    /// Whether it lies to a node, and how.
    pub(super) fn attack_on(&self, node: u32) -> Option<Attack> {
        self.attack.filter(|_| self.together.to.has(node))
    }

    fn covers(&self, node: u32) -> bool {
        let is_covered = |of: Option<u32>| of.is_none_or(|it| it == node);
        self.together.covers.is_some_and(is_covered)
    }

    /// Whether it is blind to a message, since it covers somebody.
    pub(super) fn ignores(&mut self, from: u32, message: &Message) -> bool {
        let is_ignored = match message {
            Message::Segment(_) => self.covers(from),
            Message::Complaint(it) => self.covers(it.to) || self.covers(it.from()),
            Message::Evidence(it) => self.covers(it.accused()),
            _ => false,
        };
        if is_ignored {
            self.together.did(StepName::Cover);
        }
        if let (true, Message::Complaint(it)) = (is_ignored, message) {
            self.answer_in_place(from, it);
        }
        is_ignored
    }

    /// Gives a receipt for a message that the covered liar has taken or not: a true one, if there
    /// is one, which that liar need not have shown to anybody, and else a false one.
    fn answer_in_place(&mut self, from: u32, message: &SentMessage) {
        if message.to == self.own() || !self.covers(message.to) {
            return;
        }
        let known = self.together.receipts.get(&(message.to, message.from()));
        let receipt = match known.filter(|it| it.number >= message.number) {
            Some(receipt) => receipt.clone(),
            None => {
                let own = self.unsigned(message.to, message.received_digest(), Vec::new());
                Receipt::new(own, message)
            }
        };
        self.held.push((from, Message::Receipt(Box::new(receipt)).encode()));
        self.together.did(StepName::AnswerInPlace);
    }

    /// A tick has passed.
    pub(super) fn pass(&mut self) {
        self.note();
        self.together.now += 1;
    }

    /// Notes whether it has lied since it was asked last.
    fn note(&mut self) {
        let lies = self.lies();
        let has_lied = lies > std::mem::replace(&mut self.together.lies, lies);
        let Some(attack) = self.attack.filter(|_| has_lied) else {
            return;
        };
        self.together.did(StepName::Lie(attack));
        if self.together.to != Audience::All {
            self.together.did(StepName::Divide);
        }
        if std::mem::take(&mut self.together.is_promised) {
            self.together.did(StepName::Promise);
        }
    }

    /// The messages that leave now, of all that it has to say.
    pub(super) fn leave(&mut self, sent: Vec<Sent>) -> Vec<Sent> {
        let together = &mut self.together;
        if together.delay == 0 && together.late.is_empty() {
            return sent;
        }
        together.late.extend(sent.into_iter().map(|it| (together.now, it)));
        let mut leaves = Vec::new();
        while let Some((since, mut it)) = together.late.pop_front() {
            if together.now < since + together.delay {
                together.late.push_front((since, it));
                break;
            }
            it.is_lie |= together.now > since;
            if together.now > since {
                together.did(StepName::Delay);
            }
            leaves.push(it);
        }
        leaves
    }
}
