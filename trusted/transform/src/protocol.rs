// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The interface of a crash-tolerant protocol.

use serde::{Deserialize, Serialize};

use crate::caller::Caller;

/// An action that a handler wants.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Effect {
    /// A message to another node. Messages of one node to another arrive in order, without loss,
    /// unless one of the two stops.
    Send {
        /// The receiver.
        to: u32,
        /// The message.
        message: Vec<u8>,
    },
    /// A timeout after so many ticks; one that is armed already begins anew.
    Arm {
        /// The timer's number.
        timer: u32,
        /// After how many ticks.
        ticks: u32,
    },
    /// No timeout.
    Disarm {
        /// The timer's number.
        timer: u32,
    },
    /// A reply to a caller.
    Reply {
        /// The caller.
        caller: Caller,
        /// The number of its request.
        number: u64,
        /// The answer.
        answer: Vec<u8>,
    },
}

/// A crash-tolerant protocol: one node of it, as a deterministic state machine. The same inputs in
/// the same order have the same effects, on every machine.
///
/// A step is an input with all its effects, a message to two nodes twice. It has at most
/// [`Options::step`](crate::Options) bytes, or its node stops before it attests: a protocol that
/// sends a log which grows for ever comes to its end so.
pub trait Protocol {
    /// A message of another node.
    fn message(&mut self, from: u32, message: &[u8]) -> Vec<Effect>;
    /// A timer that was armed.
    fn timeout(&mut self, timer: u32) -> Vec<Effect>;
    /// A request. The number grows with each request of a caller, which has one at a time; one may
    /// come again.
    fn request(&mut self, caller: Caller, number: u64, operation: &[u8]) -> Vec<Effect>;
}
