// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The operations of the paper's Table 1 for a member of a group, over SMT.
//!
//! | the paper's name | here |
//! |---|---|
//! | `ibv_qp_conn()` | [`Node::connect`] for a whole group; [`Member::listen`], [`Member::link`] for its sessions |
//! | `alloc_mem()`, `init_lqueue()` | [`Node::register`] |
//! | `ibv_sync()` | [`Node::announce`] |
//! | `local_send()`, `local_verify()` | [`Node::attest`], [`Node::verify`] |
//! | `auth_send()`, multicast | [`Node::send`], [`Node::multicast`] |
//! | `poll()` | [`Member::poll`], [`Node::poll`] |
//! | `rem_read()`, `rem_write()` | [`Node::read`], [`Node::write`] |
//!
//! A [`Node`] is a state machine: frames of other members in, frames for all members and
//! completions out. A [`Member`] takes its frames over SMT. A device has one gapless stream in a
//! group, so each frame goes to all members, also one that is addressed to a single one: members
//! that saw different frames would wait for what they lack. A group of two members is a connection
//! of two ends. A completion is seen only after the device has taken the frame that brings it.
//!
//! **Sessions are bound to devices.** SMT's own credentials say which hosts talk; they may be
//! certificates or registered keys. Then both devices sign the session: its exporter (SPEC §7.4),
//! the group, which end they are, and both devices' numbers ([`Identity`]). A proof is of one
//! session, so a host between two members has none to show, whatever its credentials are.
#![forbid(unsafe_code)]

mod completion;
mod identity;
mod link;
mod listening;
mod member;
mod memory;
mod node;
mod operation;
mod wire;

pub use completion::{Completion, Outcome, Ticket};
pub use identity::{End, IDENTITY_STREAM, Identity, Peer};
pub use link::LinkError;
pub use member::Member;
pub use memory::{Access, Denied, Region, RegionKey};
pub use node::{InterfaceError, Node};
pub use operation::Attested;
