// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node whose host lies. Its device is genuine.

use std::collections::{BTreeMap, VecDeque};

use smt_simulation::Random;

use crate::authenticator::{self, Authenticator, Receipt, SentMessage, body_digest};
use crate::entry::{Entry, Input};
use crate::evidence::Evidence;
use crate::message::{Message, Segment, encode};
use crate::node::{Host, Node};
use crate::sim::attack::Attack;
use crate::sim::together::{Sent, Together};
use crate::state::{Made, State};
use crate::tree::{Content, Tree};

/// How many lies a liar puts into its log, and how many old messages it keeps.
const LOGGED: u64 = 3;
const KEPT: usize = 100;
/// Ticks after which a liar that puts audits off begins.
const DEFER_AFTER: u64 = 110;
/// Ticks after which a liar that restores its host keeps the state, and has it again.
const SAVE_AFTER: u64 = 60;
const RESTORE_AFTER: u64 = 120;
/// The ticks between what it shows.
const SHOW_EVERY: u64 = 4;

/// A liar: nodes that follow the protocol but for the lie. With a device that was rolled back there
/// are two, which speak with one half of the others each.
pub(super) struct Liar {
    /// The way in which it lies now, if it does.
    pub(super) attack: Option<Attack>,
    pub(super) cores: Vec<Node<Tree>>,
    /// All that it does by a plan beside the attack.
    pub(super) together: Together,
    pub(super) random: Random,
    pub(super) lies: u64,
    pub(super) has_stopped: bool,
    kept: VecDeque<(u32, Vec<u8>)>,
    pub(super) held: Vec<(u32, Vec<u8>)>,
    /// An old state of the host.
    pub(super) saved: Option<(Host, State<Tree>)>,
    /// Ticks since it lies in this way.
    pub(super) ticks: u64,
    /// How often it had lied before.
    pub(super) lies_before: u64,
    /// The index up to which each witness was shown the log, since audits are put off.
    pub(super) shown: BTreeMap<u32, u64>,
    /// The beginning of another node's log.
    log: Option<(u32, Vec<Entry>)>,
    /// The number of a content that is never sent.
    beyond: u64,
}

impl Liar {
    pub(super) fn new(
        attack: Option<Attack>,
        mut cores: Vec<Node<Tree>>,
        seed: u64,
        beyond: u64,
    ) -> Self {
        cores.iter_mut().for_each(|it| it.lie.attack = attack);
        Self {
            attack,
            cores,
            together: Together::default(),
            random: Random::new(seed),
            lies: 0,
            has_stopped: false,
            kept: VecDeque::new(),
            held: Vec::new(),
            saved: None,
            ticks: 0,
            lies_before: 0,
            shown: BTreeMap::new(),
            log: None,
            beyond,
        }
    }

    /// How often it lied.
    pub(super) fn lies(&self) -> u64 {
        self.lies + self.cores.iter().map(|it| it.lie.lies).sum::<u64>()
    }

    /// How often it lied in the way in which it lies now.
    pub(super) fn lies_of_attack(&self) -> u64 {
        self.lies() - self.lies_before
    }

    pub(super) fn own(&self) -> u32 {
        self.cores[0].own
    }

    fn side(&self, other: u32) -> usize {
        other as usize % self.cores.len()
    }

    /// A part of the stream, if this node is the source. Two devices tell two stories.
    pub(super) fn local(&mut self, input: &[u8]) {
        for (side, core) in self.cores.iter_mut().enumerate() {
            let mut input = input.to_vec();
            input.extend(vec![b'+'; side]);
            core.local(input);
        }
    }

    pub(super) fn receive(&mut self, from: u32, bytes: &[u8]) {
        let side = self.side(from);
        let message = Message::decode(bytes);
        if message.as_ref().is_some_and(|it| self.ignores(from, it)) {
            return;
        }
        let takes = match (self.attack_on(from), message) {
            (Some(Attack::Stop), _) => !self.has_stopped,
            (Some(Attack::Mute), Some(Message::Audit { .. })) => {
                self.lies += 1;
                false
            }
            (Some(Attack::Stale), Some(Message::Audit { after, .. })) => {
                self.lies += 1;
                let empty = Segment { after, entries: Vec::new(), receipts: Vec::new() };
                self.held.push((from, Message::Segment(empty).encode()));
                false
            }
            (Some(Attack::Defer), Some(Message::Audit { .. })) if self.ticks > DEFER_AFTER => {
                // One more answer, and no audit is open.
                let is_first = !self.shown.contains_key(&from);
                if is_first {
                    self.cores[side].receive(from, bytes);
                    self.shown.insert(from, self.cores[side].last());
                } else {
                    self.lies += 1;
                }
                false
            }
            (Some(Attack::Blind), Some(Message::Segment(_) | Message::Complaint(_))) => {
                self.lies += 1;
                false
            }
            (Some(attack), Some(Message::Sent(message) | Message::Challenge(message))) => {
                self.receive_sent(attack, from, &message)
            }
            (Some(Attack::FalseAccuser), Some(Message::Segment(it))) => {
                let has_received =
                    it.entries.iter().any(|it| matches!(it.input, Input::Received(_)));
                if it.after == 0 && has_received {
                    self.log = Some((from, it.entries));
                }
                true
            }
            _ => true,
        };
        if takes {
            self.cores[side].receive(from, bytes);
        }
    }

    /// Whether a message is left to the protocol.
    fn receive_sent(&mut self, attack: Attack, from: u32, message: &SentMessage) -> bool {
        let side = self.side(from);
        let next = self.cores[side].state.received(message.from()) + 1;
        match attack {
            Attack::Hide => {
                self.lies += 1;
                false
            }
            Attack::HideLater if next > 1 => {
                let is_new = message.number >= next;
                self.lies += u64::from(is_new && message.is_genuine(&self.cores[side].group));
                !is_new
            }
            Attack::FalseReceipt => {
                self.lies += 1;
                let own = self.unsigned(self.own(), message.received_digest(), Vec::new());
                let receipt = Message::Receipt(Box::new(Receipt::new(own, message))).encode();
                self.held.push((message.from(), receipt.clone()));
                self.held.push((from, receipt));
                false
            }
            Attack::Skip if message.number > next && self.lies_of_attack() < LOGGED => {
                self.log_raw(side, Input::Received(Box::new(message.clone())));
                false
            }
            Attack::Skip => message.number != next || self.lies_of_attack() >= LOGGED,
            Attack::Twice if message.number < next && self.lies_of_attack() < LOGGED => {
                self.log_raw(side, Input::Received(Box::new(message.clone())));
                true
            }
            _ => true,
        }
    }

    /// Puts an input into the log that no correct node takes.
    fn log_raw(&mut self, side: usize, input: Input) {
        self.lies += 1;
        let core = &mut self.cores[side];
        core.lie.is_logged = true;
        core.commit(input, Made::default());
    }

    /// An entry of a node that has not signed it.
    pub(super) fn unsigned(
        &self,
        node: u32,
        input: [u8; 32],
        sent: Vec<authenticator::Sent>,
    ) -> Authenticator {
        let index = self.cores[0].last() + 1;
        Authenticator { node, index, previous: [7; 32], input, sent, signature: [[0; 32]; 2] }
    }

    /// A message that its sender has not sent.
    fn forged(&self, from: u32, to: u32, number: u64) -> SentMessage {
        let body = encode(&Content { number, bytes: b"forged".to_vec() });
        let sent = vec![authenticator::Sent { to, number, body: body_digest(&body) }];
        SentMessage { authenticator: self.unsigned(from, [7; 32], sent), to, number, body }
    }

    pub(super) fn tick(&mut self) {
        self.ticks += 1;
        let stops = self.attack == Some(Attack::Stop);
        if stops && (self.has_stopped || self.random.chance(3)) {
            self.has_stopped = true;
            self.lies += 1;
            return;
        }
        self.cores.iter_mut().for_each(Node::tick);
        for side in 0..self.cores.len() {
            self.lie(side);
        }
    }

    /// Lies of its own accord.
    fn lie(&mut self, side: usize) {
        let count = self.cores[side].application().count();
        let Some(attack) = self.attack else {
            return;
        };
        match attack {
            Attack::Replay if !self.kept.is_empty() => {
                self.lies += 1;
                for _ in 0..4 {
                    let at = self.random.below(self.kept.len() as u64) as usize;
                    self.held.extend(self.kept.get(at).cloned());
                }
            }
            Attack::Forge => self.forge(side, count),
            Attack::Invent if self.lies_of_attack() < LOGGED && self.random.chance(5) => {
                let from = (self.own() + 1) % self.cores[side].group.nodes();
                let next = self.cores[side].state.received(from) + 1;
                let forged = self.forged(from, self.own(), next);
                self.log_raw(side, Input::Received(Box::new(forged)));
            }
            Attack::OldState => self.restore(side),
            Attack::Defer => self.defer(side),
            Attack::FalseAccuser => self.accuse(side, count),
            Attack::Flood => {
                let audited: Vec<(u32, u64)> =
                    self.cores[side].audits.iter().map(|(to, it)| (*to, it.0.index())).collect();
                for (to, after) in audited {
                    self.lies += 1;
                    let audit = Message::Audit { after, nonce: self.random.nonce() };
                    self.held.push((to, audit.encode()));
                }
            }
            _ => {}
        }
    }

    /// Says what others have not said.
    fn forge(&mut self, side: usize, count: u64) {
        self.lies += 1;
        let tree = self.cores[side].application().clone();
        let (own, nodes) = (self.own(), self.cores[side].group.nodes());
        for to in (1..nodes).filter(|it| *it != own) {
            let Some(parent) = tree.parent(to).filter(|it| *it != own) else {
                continue;
            };
            let number = count + 1 + self.random.below(2);
            let message = self.forged(parent, to, number);
            let input = message.received_digest();
            let receipt = Receipt::new(self.unsigned(to, input, Vec::new()), &message);
            self.held.push((to, Message::Sent(Box::new(message)).encode()));
            self.held.push((parent, Message::Receipt(Box::new(receipt)).encode()));
        }
    }

    /// The host restarts with what it was some time ago. The device has gone on.
    fn restore(&mut self, side: usize) {
        if self.ticks == SAVE_AFTER {
            let core = &self.cores[side];
            self.saved = Some((core.host.clone(), core.state.clone()));
        }
        let is_old = |saved: &(Host, State<Tree>)| saved.0.log.last() < self.cores[side].last();
        if self.ticks >= RESTORE_AFTER && self.saved.as_ref().is_some_and(is_old) {
            self.lies += 1;
            if let Some((Host { log, outboxes, receipts, .. }, state)) = self.saved.take() {
                let core = &mut self.cores[side];
                core.lie.is_logged = true;
                (core.host.log, core.host.outboxes) = (log, outboxes);
                (core.host.receipts, core.state) = (receipts, state);
            }
        }
    }

    /// Logs nonces faster than it shows them: what it has logged of late stays unseen.
    fn defer(&mut self, side: usize) {
        let core = &mut self.cores[side];
        for (witness, shown) in &mut self.shown {
            core.record(Input::Audit { witness: *witness, nonce: [0; 16] });
            if self.ticks.is_multiple_of(SHOW_EVERY) {
                self.lies += 1;
                let mut entries = core.host.log.after(*shown, core.group.options.segment);
                let is_its = |it: &Entry| matches!(&it.input, Input::Audit { witness: it, .. } if it == witness);
                if let Some(place) = entries.iter().position(is_its) {
                    entries.truncate(place + 1);
                }
                let after = *shown;
                *shown += entries.len() as u64;
                let segment = Segment { after, entries, receipts: Vec::new() };
                self.held.push((*witness, Message::Segment(segment).encode()));
            }
        }
    }

    /// Makes evidence and challenges up.
    fn accuse(&mut self, side: usize, count: u64) {
        self.lies += 1;
        let (own, nodes) = (self.own(), self.cores[side].group.nodes());
        let victim = (own + 1 + self.random.below(u64::from(nodes) - 1) as u32) % nodes;
        let entries = vec![Entry {
            input: Input::Local(vec![1]),
            sent: vec![authenticator::Sent { to: own, number: 9, body: [1; 32] }],
            signature: [[5; 32]; 2],
        }];
        self.say_all(&Message::Evidence(Box::new(Evidence::Log {
            node: victim,
            base: None,
            entries,
        })));
        let one = self.unsigned(victim, [1; 32], Vec::new());
        let two = Authenticator { previous: [8; 32], ..one.clone() };
        self.say_all(&Message::Evidence(Box::new(Evidence::Conflict(Box::new([one, two])))));
        let tree = self.cores[side].application().clone();
        let from = tree.parent(victim).unwrap_or((victim + 1) % nodes);
        for number in [count + 1, self.beyond] {
            let complaint = self.forged(from, victim, number);
            self.say_all(&Message::Complaint(Box::new(complaint)));
        }
        // A true log, with something in it that the device's signature might not cover.
        if let Some((node, mut entries)) = self.log.clone() {
            let change = self.random.below(4);
            for entry in &mut entries {
                if let Input::Received(message) = &mut entry.input {
                    match change {
                        0 => message.authenticator.signature[0][0] ^= 1,
                        1 => message.to ^= 1,
                        2 => message.number += 1,
                        _ => {}
                    }
                }
            }
            self.say_all(&Message::Evidence(Box::new(Evidence::Log { node, base: None, entries })));
        }
    }

    fn say_all(&mut self, message: &Message) {
        let bytes = message.encode();
        let others = (0..self.cores[0].group.nodes()).filter(|it| *it != self.own());
        let held: Vec<_> = others.map(|it| (it, bytes.clone())).collect();
        self.held.extend(held);
    }

    /// All that leaves the host.
    pub(super) fn outputs(&mut self) -> Vec<Sent> {
        let lie = |(to, bytes)| Sent { to, bytes, is_lie: true };
        let mut sent: Vec<Sent> = std::mem::take(&mut self.held).into_iter().map(lie).collect();
        for side in 0..self.cores.len() {
            for output in self.cores[side].outputs() {
                let nodes = self.cores[side].group.nodes();
                for (to, bytes) in output.to_nodes(self.own(), nodes) {
                    if self.side(to) == side {
                        let said = self.alter(side, to, bytes.to_vec());
                        sent.extend(said.map(|it| Sent { is_lie: it.1 != bytes, ..lie(it) }));
                    }
                }
            }
        }
        if self.has_stopped {
            sent.clear();
        }
        if self.attack == Some(Attack::Reorder) && sent.len() > 1 {
            self.lies += 1;
            sent.reverse();
        }
        self.leave(sent)
    }

    /// The fate of a message that the protocol has the node send.
    fn alter(&mut self, side: usize, to: u32, bytes: Vec<u8>) -> Option<(u32, Vec<u8>)> {
        let is_witness = self.cores[side].group.is_witness(to, self.own());
        let Some(attack) = self.attack_on(to) else {
            return Some((to, bytes));
        };
        match (attack, Message::decode(&bytes)) {
            (Attack::Omit, _) if self.random.chance(50) => {
                self.lies += 1;
                return None;
            }
            (Attack::Selfish, Some(Message::Sent(_) | Message::Complaint(_)))
            | (Attack::Frame | Attack::TellOwn, Some(Message::Sent(_))) => {
                self.lies += 1;
                return None;
            }
            (Attack::TellOwn, Some(Message::Complaint(_))) if !is_witness => return None,
            (Attack::HideLater, Some(Message::Receipt(receipt))) if receipt.by() == self.own() => {
                return None;
            }
            // A liar that is a witness of its child does not deliver as a witness either.
            (
                Attack::Selfish | Attack::TellOwn | Attack::Frame,
                Some(Message::Challenge(message)),
            ) if message.from() == self.own() => {
                return None;
            }
            (Attack::Equivocate, Some(Message::Sent(mut message))) if to.is_multiple_of(2) => {
                self.lies += 1;
                message.body.push(1);
                return Some((to, Message::Sent(message).encode()));
            }
            (Attack::Frame, Some(Message::Complaint(message))) => {
                let outbox = self.cores[side].host.outboxes.get(&message.to);
                let later = outbox.and_then(|it| it.second()).cloned();
                return later.map(|it| (to, Message::Complaint(Box::new(it)).encode()));
            }
            (Attack::Replay, _) => {
                self.kept.push_back((to, bytes.clone()));
                if self.kept.len() > KEPT {
                    self.kept.pop_front();
                }
            }
            _ => {}
        }
        Some((to, bytes))
    }
}
