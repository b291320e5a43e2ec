// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node of a system as a state machine: messages and ticks in, outputs out.

use smt_attestor::{Attested, Attestor, AttestorError};

/// A node or a client that asks. One answer in each tick is enough for it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Asker {
    /// A node, by its number.
    Node(u32),
    /// A client, by its number, about its executed request with this number. Anybody may send such
    /// a request again, which takes no other one's answer.
    Executed(u32, u64),
    /// A client, by its number, about requests that are refused: one of
    /// [`crate::IN_PROGRESS_MAX`] places for their numbers.
    Refused(u32, u64),
}

/// The most that comes of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Effect {
    /// Nothing, now or later.
    Nothing,
    /// An answer to somebody ([`Node::answer`]), and no change.
    Answer(Asker),
    /// A change. The message is authentic.
    Change,
}

/// A node without input and output of its own. It is a function of its inputs, the attestations of
/// its device included.
pub trait Node: Sized {
    /// A message between nodes and clients.
    type Message;
    /// Something that the node wants done.
    type Output;

    /// The name of the system, with which its logs begin.
    const SYSTEM: &'static str;
    /// The version of what a node makes of its inputs. A log of another version is refused.
    const VERSION: u32;

    /// Reads a message.
    fn decode(bytes: &[u8]) -> Option<Self::Message>;
    /// The message as bytes.
    fn encode(message: &Self::Message) -> Vec<u8>;
    /// The statement that a message is. Statements are verified many at a time, by the device.
    fn statement(message: Self::Message) -> Result<Attested, Self::Message>;
    /// The message that a statement is.
    fn message(statement: Attested) -> Self::Message;

    /// The device.
    fn device(&self) -> &Attestor;
    /// The device.
    fn device_mut(&mut self) -> &mut Attestor;

    /// The first step, before any input. It may make statements.
    fn begin(&mut self);
    /// The effect of a message now. Whatever is taken before it does not turn the two lesser ones
    /// into a change that the group would miss: it is as if the network had lost the message.
    fn effect_of(&self, message: &Self::Message) -> Effect;
    /// Whether a statement, if it is authentic, changes anything now or later.
    fn may_take(&self, statement: &Attested) -> bool;
    /// Takes a message that had [`Effect::Change`] when it came: its signature or MAC was verified
    /// then.
    fn take(&mut self, message: Self::Message);
    /// Time passes.
    fn tick(&mut self);
    /// Whether a tick changes nothing. The log has no such tick.
    fn is_idle(&self) -> bool;
    /// The question to all others that an idle node sends in a tick.
    fn question(&self) -> Self::Output;
    /// Goes on after the log has what the device gave ([`Attestor::is_ahead_of_log`]).
    fn advance(&mut self);
    /// The answer to a message with [`Effect::Answer`]; without its long part, if that may not be.
    fn answer(&self, message: &Self::Message, may_be_long: bool) -> Vec<Self::Output>;
    /// Whether the answer has a long part, such as the state of a service: an asker has it in each
    /// eighth tick only.
    fn has_long_answer(&self, _message: &Self::Message) -> bool {
        false
    }
    /// All that is to be done, in order.
    fn outputs(&mut self) -> Vec<Self::Output>;

    /// The node as bytes, between two inputs.
    fn snapshot(&self) -> Vec<u8>;
    /// Takes over all that a snapshot has. False if it is none of this node.
    ///
    /// # Errors
    /// The device has not given as much as the snapshot says, or fails.
    fn restore(&mut self, snapshot: &[u8]) -> Result<bool, AttestorError>;
}
