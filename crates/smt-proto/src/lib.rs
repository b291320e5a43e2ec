// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The SMT protocol core: sessions, messages, RPCs, grants, questions, timers (docs/draft-smt-00.md
//! §4-§12).
//!
//! The core has no I/O, no clock and no randomness: it takes bytes and times, and yields bytes and
//! events. The same code runs on sockets, in a simulator and against a NIC model.
//!
//! # Contract
//! Change an [`Endpoint`] by exactly one of [`Endpoint::handle_datagram`] (or
//! [`Endpoint::handle_trimmed`]), [`Endpoint::handle_timeout`] or a command ([`Endpoint::call`],
//! [`Endpoint::reply`] …). Then drain [`Endpoint::poll_transmit`] and [`Endpoint::poll_event`].
//! Then wait for a datagram, or until [`Endpoint::poll_timeout`]. Output goes into a buffer that
//! the caller owns, as datagrams of equal size, ready for segmentation offload.
//!
//! # A message's way
//! `endpoint` finds the session; `session` holds calls and served requests; `outgoing` seals
//! records as they leave; `incoming` opens them into place; `control_queue` and `grants` carry the
//! transport's answers; `trimmed_queue` holds the ranges that the network has trimmed on the way.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
#[macro_use]
extern crate std;

mod collections;
mod config;
mod control_packet;
mod endpoint;
mod error;
mod establish;
mod event;
mod grant;
pub mod key_exchange;
mod limits;
mod memory;
mod message;
mod recovery;
mod send;
mod session;
mod shared;
mod statistics;
mod time;

pub use config::Config;
pub use endpoint::{Endpoint, SessionFacts, TimerReason};
pub use error::{
    CallError, CallFailure, CloseCode, ConnectError, Execution, OneWayOutcome, Refused, SessionEnd,
    Unavailability,
};
pub use event::{ConnectId, Event, RpcId};
pub use grant::ndp::pull::{Pull, PullOrder};
pub use grant::policy::{GrantBudget, GrantPolicy, Grantable, Granted, Pulling};
pub use grant::srpt::ShortestRemainingFirst;
pub use send::buffer::TransmitBuffer;
pub use statistics::Statistics;
pub use time::{Time, WallTime};
