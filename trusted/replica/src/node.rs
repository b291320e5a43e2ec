// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node of a system as a state machine: messages and ticks in, outputs out.

use std::error::Error;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use smt_attestor::{Attested, Attestor, AttestorError};

use crate::client_table::RefusalPlace;
use crate::digest::Digest;
use crate::encoding;
use crate::logged::LoggedError;

/// A node or a client that asks. One answer in each tick is enough for it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Asker {
    /// A node, by its number.
    Node(u32),
    /// A client, by its number, about its executed request with this number. Anybody may send such
    /// a request again, which takes no other one's answer.
    Executed(u32, u64),
    /// A client about requests that are refused. The highest number has the place
    /// ([`Node::precedence`]): its client waits for none below.
    Refused(RefusalPlace),
    /// A node, by its number, about one of its subjects, of which there are few.
    Subject(u32, u64),
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

/// The statements of a node: how many it has attested, and a digest of them in their order.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Statements {
    /// How many there are.
    pub count: u64,
    /// The digest.
    pub digest: Digest,
}

/// A node without input and output of its own. It is a function of its inputs, the attestations of
/// its device included.
pub trait Node: Sized {
    /// A message between nodes and clients, or another input beside time.
    type Message: Serialize + DeserializeOwned;
    /// Something that the node wants done.
    type Output;
    /// The random bytes with which a node starts. Its log begins with them.
    type Start: Copy + Serialize + DeserializeOwned;
    /// Why the node ends, beside the failures of its device.
    type Error: Error + 'static;

    /// The name of the system, with which its logs begin.
    const SYSTEM: &'static str;
    /// The word that follows it there.
    const LOG: &'static str = "log";
    /// The version of what a node makes of its inputs. A log of another version is refused.
    const VERSION: u32;

    /// Reads a message of the network.
    #[must_use]
    fn decode(bytes: &[u8]) -> Option<Self::Message> {
        encoding::decode(bytes)
    }
    /// The statement that a message is. Statements are verified many at a time, by the device.
    #[must_use]
    fn statement(_message: &Self::Message) -> Option<&Attested> {
        None
    }

    /// The device.
    fn device(&self) -> &Attestor;
    /// The device.
    fn device_mut(&mut self) -> &mut Attestor;
    /// Why the node ends, if it does.
    fn failure(&mut self) -> Option<LoggedError<Self::Error>> {
        self.device_mut().failure().map(LoggedError::from)
    }

    /// The first step, before any input. It may make statements.
    fn begin(&mut self) {}
    /// The effect of a message now. Whatever is taken before it does not turn the two lesser ones
    /// into a change that the group would miss: it is as if the network had lost the message. A
    /// node may count what it lets in, if no statement depends on the count.
    fn effect_of(&mut self, message: &Self::Message) -> Effect;
    /// Whether a statement, if it is authentic, changes anything now or later.
    fn may_take(&self, _statement: &Attested) -> bool {
        false
    }
    /// Takes a message that had [`Effect::Change`] when it came: its signature or MAC was verified
    /// then.
    fn take(&mut self, message: Self::Message);
    /// Time passes.
    fn tick(&mut self);
    /// Whether a tick changes nothing. The log has no such tick.
    fn is_idle(&self) -> bool {
        false
    }
    /// A tick of an idle node has passed: the question to all others. No statement depends on it.
    fn idle_tick(&mut self) -> Option<Self::Output> {
        None
    }
    /// Goes on after the log has what the device gave ([`Attestor::is_ahead_of_log`]).
    fn advance(&mut self) {}
    /// The part of a question that its answer needs: it waits for the next commit, or for the next
    /// tick.
    fn shortened(&self, question: Self::Message) -> Self::Message {
        question
    }
    /// How a question stands beside others that have its place: the last one of those with the
    /// highest number is answered.
    fn precedence(_question: &Self::Message) -> u64 {
        0
    }
    /// The answer to a message that had [`Effect::Answer`] when it came, or to what is left of it;
    /// without its long part, if that may not be. No statement depends on it, and a node that was
    /// killed has forgotten it.
    fn answer(&mut self, message: &Self::Message, may_be_long: bool) -> Vec<Self::Output>;
    /// Whether the answer has a long part, such as the state of a service: an asker has it in each
    /// eighth tick only.
    fn has_long_answer(&self, _message: &Self::Message) -> bool {
        false
    }
    /// All that is to be done, in order.
    fn outputs(&mut self) -> Vec<Self::Output>;
    /// The outputs of a log's inputs are dropped, since they had left before. From now on, with the
    /// last inputs of a log, they leave.
    fn go_live(&mut self) {}
    /// The statements that the node has made, if its log is to say which: a program that makes
    /// others of the same inputs is refused then. A log with what a device has given needs none.
    fn statements(&self) -> Statements {
        Statements::default()
    }

    /// The node as bytes, between two inputs. Nothing if it has no such form, or has failed: its
    /// log is not begun anew.
    fn snapshot(&self) -> Option<Vec<u8>> {
        None
    }
    /// Takes over all that a snapshot has. False if it is none of this node.
    ///
    /// # Errors
    /// The device has not given as much as the snapshot says, or fails.
    fn restore(&mut self, _snapshot: &[u8]) -> Result<bool, AttestorError> {
        Ok(false)
    }
}
