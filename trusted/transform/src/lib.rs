// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Crash-tolerant protocols made Byzantine-tolerant, without a change to them (paper §6.2; Clement
//! et al., 2012).
//!
//! A [`Protocol`] has handlers: for messages, timeouts and requests of clients. Each node has its
//! device attest every step of its own: the input, and the effects that followed. A step goes to
//! all members. A receiver takes each sender's steps without a gap, runs the protocol on the same
//! inputs, and follows a sender no further whose step the protocol does not make. A liar is left
//! with what a crash-tolerant protocol tolerates: to stop, to be slow, and to have timeouts early.
//!
//! 1. A client signs a request, and sends it to all ([`Client`]).
//! 2. Nodes make steps ([`Node`]); the messages of the protocol are effects of steps.
//! 3. Each node that finds a step with a reply valid says so to the client, who takes the reply on
//!    f + 1 such endorsements: one of them is of a correct node.
//!
//! The crate's README says where each rule comes from.
#![forbid(unsafe_code)]

mod caller;
mod calls;
mod client;
pub mod counter;
mod effect;
mod error;
mod follow;
mod group;
mod history;
pub mod local;
mod logged;
mod message;
mod node;
mod protocol;
#[cfg(feature = "sim")]
pub mod sim;
mod steps;

pub use caller::Caller;
pub use client::Client;
pub use error::NodeError;
pub use group::{Group, Options};
pub use message::{Input, Message, Status, Step};
pub use node::{Identity, Node, Output};
pub use protocol::{Effect, Protocol};
pub use smt_replica::{Attested, Completion, Reply, Request};
