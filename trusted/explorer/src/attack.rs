// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The hostile host and network as a model.

use std::collections::BTreeSet;
use std::marker::PhantomData;

use stateright::{Model, Property};

use crate::device::{Device, QUORUM, Start};
use crate::properties::{self, names, twins};
use crate::state::{Entry, Packet, State, View};

const SENDER: u32 = 1;
const RECEIVER: u32 = 2;
const VOTER: u32 = 3;

/// One step of the attacker. Packets are chosen by their place in [`View::issued`]. Dropping needs
/// no action: a packet that is never delivered is dropped.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A running sender attests one more message.
    Attest(usize),
    /// The sender's files are copied, or its process restarted: one more sender runs. The old one
    /// goes on.
    StartSender,
    /// The receiver restarts, and forgets what it held.
    StartReceiver,
    /// A running sender votes for the receiver's second start; with the true nonce or a guess.
    SenderVotes(usize, u8),
    /// The voter states the sender's epoch to the receiver's second start.
    VoterStates,
    /// The receiver or the voter votes for the sender's second start.
    VoteForSender(u32),
    /// The network delivers a packet.
    Deliver(usize),
    /// The network delivers a packet with another message.
    Alter(usize),
    /// The network delivers a message with a counter of its choice and no valid MAC.
    Forge(u64),
    /// The receiver or the voter is asked to admit the sender's second start, by these votes.
    Admit(u32, Vec<usize>),
    /// The receiver is asked to synchronize with the sender, by these votes.
    Synchronize(Vec<usize>),
}

/// The counter from which a device has its epoch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Counter {
    /// It only grows.
    Grows,
    /// The attacker restores it with the device, or resumes a copy of the running process. The
    /// documents say that this succeeds.
    Restored,
}

/// The attacker, against kernels of the kind `D`: two starts of the sender and of the receiver.
pub struct Attack<D> {
    /// Whether the attacker restores the counter of epochs.
    pub counter: Counter,
    /// The most messages of each running sender.
    pub messages_max: u64,
    /// Whether the receiver restarts.
    pub receiver_restarts: bool,
    /// The kind of kernel.
    pub kernel: PhantomData<D>,
}

/// The kernels, played from the beginning.
struct World<D> {
    senders: Vec<D>,
    receiver: D,
    voter: D,
    view: View,
}

impl<D: Device> World<D> {
    fn new() -> Self {
        let start = |device| D::start(Start { device, epoch: 1, nonce: 1 });
        let view = View { receiver_starts: 1, ..View::default() };
        Self { senders: vec![start(SENDER)], receiver: start(RECEIVER), voter: start(VOTER), view }
    }

    fn apply(&mut self, action: &Action, counter: Counter) {
        match action {
            Action::Attest(sender) => {
                let body = [*sender as u8, self.senders[*sender].sent() as u8 + self.attested()];
                let packet = self.senders[*sender].attest(&body);
                self.view.issued.extend(packet);
            }
            Action::StartSender => {
                let epoch = if counter == Counter::Grows { 2 } else { 1 };
                self.senders.push(D::start(Start { device: SENDER, epoch, nonce: 2 }));
            }
            Action::StartReceiver => {
                self.receiver = D::start(receiver_again(2));
                self.view.receiver_starts = 2;
            }
            Action::SenderVotes(sender, nonce) => {
                let ballot = self.senders[*sender].vote(receiver_again(*nonce), SENDER);
                self.view.issued.extend(ballot);
            }
            Action::VoterStates => {
                self.view.issued.extend(self.voter.vote(receiver_again(2), SENDER));
            }
            Action::VoteForSender(voter) => {
                let ballot = self.member(*voter).vote(sender_again(), *voter);
                self.view.issued.extend(ballot);
            }
            Action::Deliver(packet) => self.deliver(self.packet(*packet)),
            Action::Alter(packet) => {
                let mut packet = self.packet(*packet);
                packet.body[0] ^= 0x80;
                self.deliver(packet);
            }
            Action::Forge(counter) => self.deliver(forged(*counter)),
            Action::Admit(member, ballots) => self.admit(*member, ballots),
            Action::Synchronize(ballots) => self.synchronize(ballots),
        }
    }

    /// Distinct messages have distinct bodies, whatever the counters say.
    fn attested(&self) -> u8 {
        self.view.issued.len() as u8
    }

    fn member(&mut self, device: u32) -> &mut D {
        if device == RECEIVER { &mut self.receiver } else { &mut self.voter }
    }

    fn packet(&self, place: usize) -> Packet {
        self.view.issued.iter().nth(place).expect("the action was offered").clone()
    }

    fn deliver(&mut self, packet: Packet) {
        if self.receiver.accept(&packet) && packet.place().0 == SENDER {
            self.view.log.push(Entry::Taken(packet));
        }
    }

    fn admit(&mut self, member: u32, ballots: &[usize]) {
        let packets: Vec<_> = ballots.iter().map(|it| self.packet(*it)).collect();
        let packets: Vec<_> = packets.iter().collect();
        if self.member(member).admit(sender_again(), &packets) && member == RECEIVER {
            let voters: BTreeSet<_> = packets.iter().map(|packet| packet.place().0).collect();
            let by_quorum = voters.len() as u32 >= QUORUM;
            self.view.log.push(Entry::Begun { epoch: 2, counter: 0, by_quorum });
        }
    }

    fn synchronize(&mut self, ballots: &[usize]) {
        let packets: Vec<_> = ballots.iter().map(|it| self.packet(*it)).collect();
        let packets: Vec<_> = packets.iter().collect();
        if self.receiver.synchronize(SENDER, &packets) {
            let (epoch, counter) = self.receiver.position(SENDER);
            let counter = counter.unwrap_or_default();
            self.view.log.push(Entry::Begun { epoch, counter, by_quorum: packets.len() > 1 });
        }
    }

    fn into_view(self) -> View {
        let seen = |device: &D| (device.sent(), device.position(SENDER));
        let senders = self.senders.iter().map(Device::sent).collect();
        let (receiver, voter) = (seen(&self.receiver), seen(&self.voter));
        View { senders, receiver, voter, ..self.view }
    }
}

impl<D: Device> Attack<D> {
    fn play(&self, trace: Vec<Action>) -> State {
        let mut world = World::<D>::new();
        for action in &trace {
            world.apply(action, self.counter);
        }
        State { view: world.into_view(), trace }
    }
}

impl<D: Device> Model for Attack<D> {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![self.play(Vec::new())]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let view = &state.view;
        let done = |action: &Action| state.trace.contains(action);
        let restarted = view.receiver_starts == 2;
        for sender in 0..view.senders.len() {
            let attested = state.trace.iter().filter(|it| **it == Action::Attest(sender)).count();
            if (attested as u64) < self.messages_max {
                actions.push(Action::Attest(sender));
            }
            if self.receiver_restarts {
                actions.push(Action::SenderVotes(sender, if restarted { 2 } else { 0 }));
            }
        }
        actions.push(Action::StartSender);
        if self.receiver_restarts {
            actions.push(Action::StartReceiver);
        }
        if restarted {
            actions.push(Action::VoterStates);
        }
        if view.senders.len() > 1 && self.counter == Counter::Grows {
            actions.extend([RECEIVER, VOTER].map(Action::VoteForSender));
        }
        // Each of these once; deliveries as often as they do something.
        actions.retain(|action| matches!(action, Action::Attest(_)) || !done(action));
        actions.extend([1, 2].map(Action::Forge));
        for (place, packet) in view.issued.iter().enumerate() {
            if packet.place().0 == SENDER {
                actions.extend([Action::Deliver(place), Action::Alter(place)]);
            }
        }
        for choice in choices(&ballots(view, SENDER)) {
            actions.extend([RECEIVER, VOTER].map(|it| Action::Admit(it, choice.clone())));
        }
        if restarted {
            let choices = choices(&ballots(view, RECEIVER));
            actions.extend(choices.into_iter().map(Action::Synchronize));
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut trace = last.trace.clone();
        trace.push(action);
        let next = self.play(trace);
        (next != *last).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(names::NO_DOUBLE_MESSAGES, |_, state: &State| {
                properties::nothing_twice(&state.view)
            }),
            Property::always(names::NO_LOST_MESSAGES, |_, state: &State| {
                properties::nothing_lost(&state.view)
            }),
            Property::always(names::NO_MESSAGE_REORDERING, |_, state: &State| {
                properties::nothing_reordered(&state.view)
            }),
            Property::always(names::VERIFIED_MSG_IS_AUTH, |_, state: &State| {
                properties::authentic(&state.view)
            }),
            Property::always(names::NON_EQUIVOCATION, |_, state: &State| {
                properties::one_story(&state.view)
            }),
            Property::always(names::ADMITTED_BY_QUORUM, |_, state: &State| {
                properties::by_quorum(&state.view)
            }),
            Property::sometimes(twins::RESTARTED, |_, state: &State| {
                properties::restarted_receiver_takes(&state.view)
            }),
            Property::sometimes(twins::SECOND, |_, state: &State| {
                properties::second_message_taken(&state.view)
            }),
            Property::sometimes(twins::NEWER, |_, state: &State| {
                properties::newer_epoch_taken(&state.view)
            }),
            Property::sometimes(twins::TAKEN, |_, state: &State| {
                properties::message_taken(&state.view)
            }),
            Property::sometimes(twins::COPIES, |_, state: &State| {
                properties::two_copies_attest(&state.view)
            }),
            Property::sometimes(twins::ADMITTED, |_, state: &State| {
                properties::epoch_admitted(&state.view)
            }),
        ]
    }
}

fn receiver_again(nonce: u8) -> Start {
    Start { device: RECEIVER, epoch: 2, nonce }
}

fn sender_again() -> Start {
    Start { device: SENDER, epoch: 2, nonce: 2 }
}

/// A message that no device has attested, in the form of the sender's.
fn forged(counter: u64) -> Packet {
    let mut attestation = [0; 64];
    attestation[..3].copy_from_slice(&[1, 1, 0]);
    attestation[7] = 1;
    attestation[11] = SENDER as u8;
    attestation[15] = 2;
    attestation[23] = 1;
    attestation[31] = counter as u8;
    Packet { attestation, body: vec![0xff, 0xff] }
}

/// The places of all votes for a newcomer.
fn ballots(view: &View, newcomer: u32) -> Vec<usize> {
    let is_for = |packet: &Packet| packet.body.len() > 2 && u32::from(packet.body[3]) == newcomer;
    let places = view.issued.iter().enumerate();
    places.filter(|(_, packet)| is_for(packet)).map(|(place, _)| place).collect()
}

/// One ballot, or two in the order of their voters. [`View::issued`] is in that order.
fn choices(ballots: &[usize]) -> Vec<Vec<usize>> {
    let mut choices: Vec<_> = ballots.iter().map(|it| vec![*it]).collect();
    for (place, first) in ballots.iter().enumerate() {
        choices.extend(ballots[place + 1..].iter().map(|second| vec![*first, *second]));
    }
    choices
}
