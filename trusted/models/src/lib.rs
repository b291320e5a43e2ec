// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Models of small sizes: three nodes, one of which lies, in all that can happen to them.
//!
//! The nodes are the shipped state machines, with real attestations of the shipped kernel. A liar
//! is a device alone: its host has it attest any statement of an alphabet, and the network shows
//! each to whom it likes. Each property has a twin, which says that the situation that tests it is
//! reached, and with a rule of the system broken (`mutants.toml` of each) the explorer finds a
//! violation.
//!
//! # The network
//! All that was ever said can be delivered at any time, to anybody, or never. Loss, repetition and
//! reordering are therefore in each model, and a message that is under way is a message that was
//! said.
//!
//! # Reductions
//! - A node takes statements of one stream in order. A statement that comes too early waits, and is
//!   seen by nobody before its turn. The network therefore delivers a row of statements that
//!   follows what the receiver has, the last of them first: all that follows from an early arrival
//!   follows from such a row.
//! - A liar's statement that nobody has heard changes nothing. A liar therefore attests one when it
//!   is first heard.
//! - Nodes in the same state (all of their memory, and what they have said) are one ([`Runs`]): how
//!   they came there plays no part.
#![forbid(unsafe_code)]

mod answers;
pub mod bft;
pub mod chain;
mod cluster;
mod device;
mod explore;
mod member;
mod messages;
pub mod peer_review;
mod runs;
mod system;
pub mod transform;

pub use cluster::{Action, Cluster, Key, NODES, State};
pub use device::LiarDevice;
pub use explore::{Report, explore, first_violation};
pub use member::{Input, Member};
pub use messages::{MessageId, Messages};
pub use runs::{Machine, RunId, Runs};
pub use system::{Progress, Said, Seen, System, View};
