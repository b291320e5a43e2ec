// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Models of small sizes: three nodes, one of which lies, in all that can happen to them; and runs
//! of three and five nodes that begin with a script, and are explored as far as bounds allow.
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
//! # Long runs
//! Checkpoints, states that are given, and restarts need more steps than all states can be explored
//! of. A script plays the first ones ([`bft::Beginning`]), and all that can happen after them is
//! explored, the nearest states first, up to so many ways to states ([`explore_some`]). A fair
//! closing of a state plays it on over a perfect network, without the liars and without as many
//! others as may crash: the rest must come to the same, and answer a client. [`Counts`] says how
//! often each kind of action was tried, and how often it changed a correct node.
//!
//! # Reductions
//! - A node takes statements of one stream in order. A statement that comes too early waits, and is
//!   seen by nobody before its turn. The network therefore delivers a row of statements that
//!   follows what the receiver has, the last of them first: all that follows from an early arrival
//!   follows from such a row.
//! - A liar's statement that nobody has heard changes nothing. A liar therefore attests one when it
//!   is first heard.
//! - In some long runs a stream comes to a node as far as it was said, and no less of it.
//! - A node gives one state at a time. The last one of each earlier checkpoint and view may come
//!   late, as far as the bounds say.
//! - Nodes in the same state (all of their memory, and what they have said) are one ([`Runs`]): how
//!   they came there plays no part.
#![forbid(unsafe_code)]

mod action;
mod answers;
pub mod bft;
pub mod chain;
mod closing;
mod cluster;
mod counts;
mod device;
mod explore;
mod member;
mod messages;
pub mod peer_review;
mod runs;
mod system;
pub mod transform;

pub use action::Action;
pub use cluster::{Cluster, Key, NODES, State};
pub use counts::{Count, Counts};
pub use device::LiarDevice;
pub use explore::{Limited, Report, explore, explore_some, first_violation};
pub use member::{Input, Member};
pub use messages::{MessageId, Messages};
pub use runs::{Machine, RunId, Runs};
pub use system::{Progress, Said, Seen, System, View};
