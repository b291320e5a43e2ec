// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The state of a node as its log gives it: the reference that node, witness and third party run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use smt_replica::Digest;

use crate::application::{Application, Effect};
use crate::authenticator::{Sent, body_digest};
use crate::digest::digest;
use crate::entry::Input;
use crate::group::Group;
use crate::message::{decode, encode};

/// A defect that no correct node's log has.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A message that its sender has not sent to this node.
    #[error("it took a message that was not sent to it")]
    NotSent,
    /// A message out of its sender's order, or a second time.
    #[error("it took a message out of order, or twice")]
    Order,
    /// A local input that is too long.
    #[error("it took an input that is too long")]
    TooLong,
    /// An audit by a node that is no witness.
    #[error("it was audited by a node that is not its witness")]
    NotWitness,
    /// No checkpoint where one must be, or one elsewhere.
    #[error("a checkpoint is missing or at a wrong place")]
    Schedule,
    /// A checkpoint of another state.
    #[error("a checkpoint has a state that does not follow from the log")]
    Checkpoint,
    /// Messages that the application does not send, or not all that it sends.
    #[error("it did not send what the application sends")]
    Outputs,
    /// A state that is too long, a message to the node itself or to none of the group, too many or
    /// too long messages at once. An application that does so is not fit for the group.
    #[error("its application is not fit for the group: its state is too long, or what it sends is")]
    Unfit,
}

/// The messages and deliveries that follow from an input.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Made {
    pub(crate) sent: Vec<Sent>,
    /// The bytes of these messages.
    pub(crate) bodies: Vec<Vec<u8>>,
    /// Bytes for the host.
    pub(crate) delivered: Vec<Vec<u8>>,
}

/// Where an input stands.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) node: u32,
    pub(crate) index: u64,
    pub(crate) group: &'a Group,
}

/// The state of a node.
#[derive(Clone)]
pub(crate) struct State<A> {
    pub(crate) application: A,
    /// The number of the last message to each node.
    sent: BTreeMap<u32, u64>,
    /// The number of the last message of each node.
    received: BTreeMap<u32, u64>,
}

/// The state as bytes: application, messages sent, messages received.
#[derive(Deserialize, Serialize)]
struct Snapshot(Vec<u8>, BTreeMap<u32, u64>, BTreeMap<u32, u64>);

impl<A: Application> State<A> {
    pub(crate) fn new(application: A) -> Self {
        Self { application, sent: BTreeMap::new(), received: BTreeMap::new() }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let (sent, received) = (self.sent.clone(), self.received.clone());
        encode(&Snapshot(self.application.snapshot(), sent, received))
    }

    /// The state of a node of so many.
    pub(crate) fn decode(reference: &A, bytes: &[u8], nodes: u32) -> Option<Self> {
        let Snapshot(application, sent, received) = decode(bytes)?;
        if sent.keys().chain(received.keys()).any(|it| *it >= nodes) {
            return None;
        }
        Some(Self { application: reference.restore(&application)?, sent, received })
    }

    /// The number of the last message of a node that was taken.
    pub(crate) fn received(&self, from: u32) -> u64 {
        self.received.get(&from).copied().unwrap_or(0)
    }

    /// Takes an input. After a fault the state is as before, but for [`Fault::Unfit`].
    pub(crate) fn apply(&mut self, at: At<'_>, input: &Input) -> Result<Made, Fault> {
        let At { node, index, group } = at;
        let is_due = index.is_multiple_of(group.options.interval);
        let is_checkpoint = matches!(input, Input::Checkpoint { .. });
        if is_due != is_checkpoint {
            return Err(Fault::Schedule);
        }
        let effects = match input {
            Input::Checkpoint { state } => {
                let own = self.encode();
                if own.len() > group.options.state {
                    return Err(Fault::Unfit);
                }
                if *state != state_digest(&own) {
                    return Err(Fault::Checkpoint);
                }
                Vec::new()
            }
            Input::Audit { witness, .. } => {
                if !group.is_witness(*witness, node) {
                    return Err(Fault::NotWitness);
                }
                Vec::new()
            }
            Input::Local(input) => {
                if input.len() > group.options.body {
                    return Err(Fault::TooLong);
                }
                self.application.local(input)
            }
            Input::Received(message) => {
                if message.to != node || !message.is_genuine(group) {
                    return Err(Fault::NotSent);
                }
                let last = self.received(message.from());
                if Some(message.number) != last.checked_add(1) {
                    return Err(Fault::Order);
                }
                self.received.insert(message.from(), message.number.max(last));
                self.application.message(message.from(), &message.body)
            }
        };
        self.number(effects, node, group).ok_or(Fault::Unfit)
    }

    /// Gives messages their numbers. Nothing if the group has no such messages.
    fn number(&mut self, effects: Vec<Effect>, node: u32, group: &Group) -> Option<Made> {
        let mut made = Made::default();
        for effect in effects {
            match effect {
                Effect::Deliver(bytes) => made.delivered.push(bytes),
                Effect::Send { to, body } => {
                    let is_full = made.sent.len() >= group.options.sends;
                    if to == node || to >= group.nodes() || is_full {
                        return None;
                    }
                    let number = self.sent.entry(to).or_default();
                    *number = number.checked_add(1)?;
                    made.sent.push(Sent { to, number: *number, body: body_digest(&body) });
                    made.bodies.push(body);
                }
            }
        }
        { made.bodies.iter() }.all(|it| it.len() <= group.options.body).then_some(made)
    }
}

/// The hash of a state as a checkpoint has it.
pub(crate) fn state_digest(state: &[u8]) -> Digest {
    digest("state", &[state])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::Options;

    /// Sends its input to a node.
    #[derive(Clone)]
    struct SendsTo(u32);

    impl Application for SendsTo {
        fn start(&self, _: u32) -> Self {
            self.clone()
        }

        fn message(&mut self, _: u32, _: &[u8]) -> Vec<Effect> {
            Vec::new()
        }

        fn local(&mut self, input: &[u8]) -> Vec<Effect> {
            let (to, bytes) = (self.0, input.len());
            (0..bytes).map(|_| Effect::Send { to, body: vec![0; bytes] }).collect()
        }

        fn snapshot(&self) -> Vec<u8> {
            vec![0; self.0 as usize]
        }

        fn restore(&self, _: &[u8]) -> Option<Self> {
            Some(self.clone())
        }
    }

    fn group() -> Group {
        let options = Options { sends: 4, body: 3, state: 30, ..Options::default() };
        Group { stream: 1, keys: vec![[0; 32]; 4], epochs: vec![1; 4], faults: 1, options }
    }

    fn apply(state: &mut State<SendsTo>, index: u64, input: &Input) -> Result<Made, Fault> {
        let group = group();
        state.apply(At { node: 1, index, group: &group }, input)
    }

    fn local(to: u32, bytes: usize) -> Result<Made, Fault> {
        let options = Options { body: 9, ..group().options };
        let group = Group { options, ..group() };
        let at = At { node: 1, index: 1, group: &group };
        State::new(SendsTo(to)).apply(at, &Input::Local(vec![0; bytes]))
    }

    #[test]
    fn an_application_sends_to_other_nodes_of_the_group_and_not_too_much() {
        assert!(local(2, 4).is_ok());
        for (to, bytes) in [(1, 1), (4, 1), (u32::MAX, 1), (2, 5)] {
            assert_eq!(local(to, bytes), Err(Fault::Unfit), "{bytes} to {to}");
        }
    }

    #[test]
    fn a_number_behind_the_greatest_is_a_fault() {
        let mut state = State::new(SendsTo(2));
        state.sent.insert(2, u64::MAX - 1);
        assert!(apply(&mut state, 1, &Input::Local(vec![1])).is_ok());
        assert_eq!(apply(&mut state, 2, &Input::Local(vec![1])), Err(Fault::Unfit));
    }

    #[test]
    fn a_checkpoint_has_no_state_that_is_too_long() {
        for (length, is_ok) in [(20, true), (31, false)] {
            let mut state = State::new(SendsTo(length));
            let checkpoint = Input::Checkpoint { state: state_digest(&state.encode()) };
            assert_eq!(apply(&mut state, 64, &checkpoint).is_ok(), is_ok, "{length}");
        }
    }

    #[test]
    fn a_state_numbers_messages_of_nodes_of_the_group_alone() {
        for (place, is_one) in [(3, true), (4, false), (u32::MAX, false)] {
            let mut state = State::new(SendsTo(2));
            state.sent.insert(place, 1);
            let read = |it: &State<_>| State::decode(&SendsTo(2), &it.encode(), 4).is_some();
            assert_eq!(read(&state), is_one);
            state = State::new(SendsTo(2));
            state.received.insert(place, 1);
            assert_eq!(read(&state), is_one);
        }
    }
}
