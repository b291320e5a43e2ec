// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Client, server and network, as one deterministic machine.
//!
//! The parts are those of the product and cannot be copied: they hold keys, and rights to use a
//! number once. A state of the exploration is therefore the actions that led to it, and a world is
//! built anew by repeating them.

use std::collections::{BTreeMap, BTreeSet};

use crate::bounds::Bounds;
use crate::broken::{Broken, Rules};
use crate::client::{Client, ToSend};
use crate::crypto::Ciphers;
use crate::packet::{Body, Content, Packet};
use crate::reached::{Reached, ReachedSet};
use crate::server::{Server, Taken};
use crate::session::{FIRST_FREE, WINDOW, open_control};
use crate::violation::Violation;

/// One step.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Action {
    /// The client begins its next message.
    Begin,
    /// The client seals the next record of the message with this counter.
    GoOn(u64),
    /// The client repeats what of the message has left.
    Repeat(u64),
    Cancel(u64),
    /// The client moves to the next epoch.
    Update,
    /// The client says EPOCH_DONE.
    EpochDone,
    /// The packet at this place among all, in their order, arrives.
    Arrive(u16),
    /// The server loses its state, and a new session is established.
    Restart,
}

/// All that happens in one execution.
pub(crate) struct World<'a> {
    pub(crate) bounds: &'a Bounds,
    pub(crate) rules: Rules,
    reached: &'a ReachedSet,
    pub(crate) ciphers: Ciphers,
    pub(crate) session: u8,
    pub(crate) client: Client,
    pub(crate) server: Server,
    pub(crate) network: BTreeSet<Packet>,
    /// Messages that the application has begun.
    pub(crate) begun: u8,
    pub(crate) cancels: u32,
    /// How often each message was delivered.
    pub(crate) delivered: BTreeMap<u8, u32>,
    /// Control packets of this session that were taken.
    controls_taken: BTreeSet<Packet>,
    /// Messages that the client was told will not be delivered.
    pub(crate) voided: BTreeSet<u8>,
    pub(crate) violations: BTreeSet<Violation>,
    /// Nothing is lost any more, and nothing is bounded but the messages.
    is_fair: bool,
}

impl<'a> World<'a> {
    pub(crate) fn new(bounds: &'a Bounds, rules: Rules, reached: &'a ReachedSet) -> Self {
        let ciphers = Ciphers::default();
        let crypto = ciphers.provider();
        Self {
            bounds,
            rules,
            reached,
            session: 0,
            client: Client::new(rules, 0, 0, &crypto),
            server: Server::new(rules, 0, 0, &crypto),
            ciphers,
            network: BTreeSet::new(),
            begun: 0,
            cancels: 0,
            delivered: BTreeMap::new(),
            controls_taken: BTreeSet::new(),
            voided: BTreeSet::new(),
            violations: BTreeSet::new(),
            is_fair: false,
        }
    }

    /// The steps that are possible; some change nothing.
    pub(crate) fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        if usize::from(self.begun) < self.bounds.messages.len() {
            actions.push(Action::Begin);
        }
        for (counter, outgoing) in &self.client.messages {
            if outgoing.is_cancelled {
                continue;
            }
            actions.extend([Action::GoOn(*counter), Action::Repeat(*counter)]);
            if self.cancels < self.bounds.cancels {
                actions.push(Action::Cancel(*counter));
            }
        }
        let may_update = self.client.seal.epoch() < self.bounds.updates;
        actions.extend(may_update.then_some(Action::Update));
        actions.push(Action::EpochDone);
        actions.extend((0..self.network.len()).map(|place| Action::Arrive(place as u16)));
        let may_restart = u32::from(self.session) < self.bounds.restarts;
        actions.extend(may_restart.then_some(Action::Restart));
        actions
    }

    /// Takes one step.
    pub(crate) fn step(&mut self, action: Action) {
        match action {
            Action::Begin => self.begin(),
            Action::GoOn(counter) => {
                if let Some(packet) = self.client.go_on(counter) {
                    self.network.insert(packet);
                    self.look_at_epochs(counter);
                }
            }
            Action::Repeat(counter) => self.repeat(counter),
            Action::Cancel(counter) => {
                self.cancels += 1;
                let packet = self.client.cancel(counter);
                self.network.extend(packet);
            }
            Action::Update => {
                self.client.update();
            }
            Action::EpochDone => {
                let epoch = self.client.seal.previous().unwrap_or_default();
                if self.may_send(true, Body::EpochDone { epoch }) {
                    let packet = self.client.epoch_done();
                    self.network.extend(packet);
                }
            }
            Action::Arrive(place) => {
                if let Some(packet) = self.network.iter().nth(usize::from(place)).cloned() {
                    self.arrive(&packet);
                }
            }
            Action::Restart => self.restart(),
        }
        self.look();
    }

    fn begin(&mut self) {
        let number = self.begun;
        let Some(records) = self.bounds.messages.get(usize::from(number)) else {
            return;
        };
        let to_send = ToSend { number, records: *records };
        match self.client.begin(to_send) {
            Some(packet) => {
                self.begun += 1;
                if self.client.limit > WINDOW.into()
                    && self.client.messages.keys().any(|counter| *counter > FIRST_FREE)
                {
                    self.reached.insert(Reached::UsedAdvertisedLimit);
                }
                self.network.insert(packet);
            }
            None => self.reached.insert(Reached::Blocked),
        }
    }

    fn look_at_epochs(&self, counter: u64) {
        if let Some(outgoing) = self.client.messages.get(&counter) {
            let epochs: BTreeSet<_> = outgoing.epochs().map(|(_, epoch)| epoch).collect();
            if epochs.len() > 1 {
                self.reached.insert(Reached::SpannedEpochs);
            }
        }
    }

    fn repeat(&mut self, counter: u64) {
        match self.client.repeat(counter) {
            Some(packets) => self.network.extend(packets),
            None => {
                self.violations.insert(Violation::ClientKeyLost);
            }
        }
    }

    /// Whether a control packet may be sent, by the bound of its copies.
    fn may_send(&self, to_server: bool, body: Body) -> bool {
        let is_copy = |packet: &&Packet| {
            let Content::Control { body: other, .. } = packet.content else {
                return false;
            };
            packet.session == self.session
                && packet.to_server == to_server
                && other.is_copy_of(body)
        };
        let most = match body {
            Body::EpochDone { .. } | Body::EpochAck { .. } => self.bounds.epoch_copies,
            _ => 1,
        };
        self.is_fair || self.network.iter().filter(is_copy).count() < most
    }

    /// A packet arrives, of whatever session: a receiver may be led to take it for its own.
    fn arrive(&mut self, packet: &Packet) {
        match packet.to_server {
            true => self.arrive_at_server(packet),
            false => self.arrive_at_client(packet),
        }
    }

    fn arrive_at_server(&mut self, packet: &Packet) {
        let taken = match packet.content {
            Content::Record { .. } => self.server.take_record(packet),
            Content::Control { number, body } => {
                if !self.server.replay.check(number) && !self.lacks_control_window() {
                    self.refused_by_number(packet);
                    return;
                }
                let Server { open, replay, .. } = &mut self.server;
                let Some(epoch) = open_control(open, packet.epoch, number, &packet.sealed) else {
                    self.refused(packet);
                    return;
                };
                if !replay.accept(number) {
                    self.violations.insert(Violation::ControlTwice);
                }
                self.controls_taken.insert(packet.clone());
                self.server.take_control(epoch, body)
            }
        };
        self.took(packet, taken);
    }

    fn lacks_control_window(&self) -> bool {
        self.rules.lack(Broken::HasNoControlWindow)
    }

    fn refused_by_number(&mut self, packet: &Packet) {
        if self.controls_taken.contains(packet) {
            self.reached.insert(Reached::RefusedControlAgain);
        } else if packet.session == self.session {
            self.violations.insert(Violation::ControlRefused);
        }
    }

    fn refused(&self, packet: &Packet) {
        if packet.session != self.session {
            self.reached.insert(Reached::RefusedOldSession);
        }
    }

    /// The server has taken a packet.
    fn took(&mut self, packet: &Packet, taken: Taken) {
        for reached in taken.reached {
            self.reached.insert(reached);
        }
        if taken.is_of_a_dropped_epoch {
            self.violations.insert(Violation::DroppedEpochOpened);
        }
        if taken.is_out_of_range {
            self.violations.insert(Violation::OutOfRange);
        }
        if let Some(number) = taken.delivered {
            *self.delivered.entry(number).or_default() += 1;
            self.reached.insert(Reached::Delivered);
            if packet.session > 0 {
                self.reached.insert(Reached::DeliveredAfterRestart);
            }
            if self.delivered.len() == self.bounds.messages.len() {
                self.reached.insert(Reached::DeliveredAll);
            }
        }
        let Some(body) = taken.answer else {
            if matches!(packet.content, Content::Record { .. }) {
                self.refused(packet);
            }
            return;
        };
        self.answer(body);
    }

    fn answer(&mut self, body: Body) {
        let number = |world: &Self, counter| {
            let outgoing = world.client.messages.get(&counter);
            outgoing.map(|outgoing| outgoing.number)
        };
        match body {
            Body::Voided { counter } => {
                self.reached.insert(Reached::Voided);
                let number = number(self, counter);
                self.voided.extend(number);
            }
            Body::Seen { counter } => {
                self.reached.insert(Reached::CancelledTooLate);
                if number(self, counter).is_some_and(|n| !self.delivered.contains_key(&n)) {
                    self.violations.insert(Violation::FalseSeen);
                }
            }
            Body::SeenAndGone { .. } => self.reached.insert(Reached::CancelledLongAgo),
            _ => {}
        }
        if self.may_send(false, body) {
            let packet = self.server.control(body);
            self.network.insert(packet);
        }
    }

    fn arrive_at_client(&mut self, packet: &Packet) {
        let Content::Control { number, body } = packet.content else {
            return;
        };
        if !self.client.replay.check(number) && !self.lacks_control_window() {
            self.refused_by_number(packet);
            return;
        }
        let Client { open, replay, .. } = &mut self.client;
        let Some(epoch) = open_control(open, packet.epoch, number, &packet.sealed) else {
            self.refused(packet);
            return;
        };
        open.opened(epoch);
        if !replay.accept(number) {
            self.violations.insert(Violation::ControlTwice);
        }
        self.controls_taken.insert(packet.clone());
        let previous = self.client.seal.previous();
        self.client.take(body);
        if let Body::EpochAck { epoch } = body {
            let is_finished = previous.is_some() && self.client.seal.previous().is_none();
            match is_finished && previous == Some(epoch) {
                true => self.reached.insert(Reached::FinishedEpoch),
                false => self.reached.insert(Reached::RefusedOtherAck),
            }
        }
    }

    /// The server is started again. Its client gives up what is outstanding, since it may have run,
    /// and both begin a session with other keys.
    fn restart(&mut self) {
        if !self.client.messages.is_empty() {
            self.reached.insert(Reached::Restarted);
        }
        self.session += 1;
        self.controls_taken.clear();
        let keys = match self.rules.lack(Broken::KeepsKeysOverRestart) {
            true => 0,
            false => self.session,
        };
        let crypto = self.ciphers.provider();
        self.client = Client::new(self.rules, self.session, keys, &crypto);
        self.server = Server::new(self.rules, self.session, keys, &crypto);
    }

    /// Looks for what must never be.
    fn look(&mut self) {
        let mut found = Vec::new();
        if self.delivered.values().any(|times| *times > 1) {
            found.push(Violation::DeliveredTwice);
        }
        if self.voided.iter().any(|number| self.delivered.contains_key(number)) {
            found.push(Violation::VoidedAndDelivered);
        }
        if self.ciphers.has_reused_a_nonce() {
            found.push(Violation::NonceReused);
        }
        if self.client.limit > self.server.window.limit() {
            found.push(Violation::FalseLimit);
        }
        let seal = &self.client.seal;
        let live = self.client.messages.iter();
        for (counter, outgoing) in live.filter(|(_, outgoing)| !outgoing.is_cancelled) {
            for (index, epoch) in outgoing.epochs() {
                let has_key = |epoch| epoch == seal.epoch() || Some(epoch) == seal.previous();
                if !epoch.is_some_and(has_key) {
                    found.push(Violation::ClientKeyLost);
                }
                let is_open = self.server.has_opened(*counter, index);
                if !is_open && !epoch.is_some_and(|epoch| self.server.can_open(epoch)) {
                    found.push(Violation::ServerKeyLost);
                }
            }
        }
        self.violations.extend(found);
    }

    /// Whether everything ends if nothing is lost from now on, but what is under way now.
    pub(crate) fn ends(mut self) -> bool {
        self.is_fair = true;
        self.network.clear();
        for _ in 0..ROUNDS {
            if self.has_ended() {
                return true;
            }
            self.send_all_that_is_due();
            // Packets to the server, and then its answers.
            for _ in 0..2 {
                for packet in std::mem::take(&mut self.network) {
                    self.arrive(&packet);
                }
            }
        }
        self.has_ended()
    }

    fn has_ended(&self) -> bool {
        usize::from(self.begun) == self.bounds.messages.len()
            && self.client.messages.is_empty()
            && self.client.seal.previous().is_none()
    }

    /// All timers of the client are due.
    fn send_all_that_is_due(&mut self) {
        let counters: Vec<_> = self.client.messages.keys().copied().collect();
        for counter in counters {
            let is_cancelled = |client: &Client| {
                let outgoing = client.messages.get(&counter);
                outgoing.is_some_and(|outgoing| outgoing.is_cancelled)
            };
            if is_cancelled(&self.client) {
                let packet = self.client.cancel(counter);
                self.network.extend(packet);
                continue;
            }
            self.repeat(counter);
            let packet = self.client.go_on(counter);
            self.network.extend(packet);
        }
        let packet = self.client.epoch_done();
        self.network.extend(packet);
        if usize::from(self.begun) < self.bounds.messages.len() {
            self.begin();
            let packet = self.client.ask_for_window();
            self.network.insert(packet);
        }
    }
}

/// Rounds after which everything must have ended: each ends a message or an epoch, or moves the
/// window.
const ROUNDS: usize = 16;
