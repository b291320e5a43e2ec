// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The application of a node, which its witnesses run again.

/// A deterministic state machine: the same inputs have the same effects, on each machine.
///
/// It reads no clock and draws no random numbers. Its host gives it such things as local
/// inputs, which stand in the log.
pub trait Application: Clone {
    /// The application of a node as it begins. Any node's application can tell.
    #[must_use]
    fn start(&self, node: u32) -> Self;

    /// A message of another node has come.
    fn message(&mut self, from: u32, body: &[u8]) -> Vec<Effect>;

    /// The host has an input. A witness cannot tell whether it is true, only what follows from it.
    fn local(&mut self, input: &[u8]) -> Vec<Effect>;

    /// The whole state as bytes. One state has one snapshot.
    fn snapshot(&self) -> Vec<u8>;

    /// The state of a snapshot. Nothing if it is none.
    fn restore(&self, snapshot: &[u8]) -> Option<Self>;
}

/// Something that an application does.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Effect {
    /// Sends bytes to another node.
    Send {
        /// The receiver.
        to: u32,
        /// The bytes.
        body: Vec<u8>,
    },
    /// Gives its host bytes. Other nodes do not see it, so it is in no log.
    Deliver(Vec<u8>),
}
