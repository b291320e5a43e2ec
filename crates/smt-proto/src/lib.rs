// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The SMT protocol core: sessions, messages, RPCs, grants, questions, timers (docs/draft-smt-00.md
//! §4-§12).
//!
//! The core has no I/O, no clock and no randomness: it takes bytes and times, and yields bytes and
//! events. The same code runs on sockets and in a simulator.
//!
//! # Contract
//! Tell the carrier's abilities once ([`Endpoint::set_capabilities`]).
//!
//! Change an [`Endpoint`] by exactly one of [`Endpoint::handle_arrival`] (or
//! [`Endpoint::handle_unreachable`]), [`Endpoint::handle_timeout`] or a command
//! ([`Endpoint::call`], [`Endpoint::reply`] …). Then drain [`Endpoint::poll_transmit`] and
//! [`Endpoint::poll_event`], in either order. Then wait for a datagram, or until
//! [`Endpoint::poll_timeout`]. Output goes into a buffer that the caller owns, as datagrams of
//! equal size, ready for segmentation offload.
//!
//! # A message's way
//! 1. `endpoint` finds the session; `establish` makes one.
//! 2. `session` holds the calls of this side and the requests of the peer (`message`).
//! 3. `message::transmitting` seals records as they leave; `message::incoming` opens them into
//!    place.
//! 4. `send` has the queues of what leaves next; `grant` decides what peers may send.
//! 5. `recovery` times what is asked for again; `memory` bounds and reuses what all of it takes.

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
mod failure;
mod grant;
pub mod key_exchange;
mod limits;
mod memory;
mod message;
mod metadata;
mod outgoing_message;
mod recovery;
mod send;
mod session;
mod shared;
mod statistics;
mod time;

pub use config::{Config, TransportConfig};
pub use endpoint::{CallOptions, ConnectRequest, Endpoint, SessionFacts, TimerReason};
pub use error::{
    CallError, CallFailure, CloseCode, ConnectError, Execution, OneWayOutcome, PartViolation,
    Refused, SessionEnd, Unavailability,
};
pub use establish::early::EarlyCall;
pub use event::{ConnectId, Event, PeerMessage, RpcId};
pub use failure::Failure;
pub use grant::ndp::pull::{Pull, PullOrder};
pub use grant::policy::{GrantBudget, GrantPolicy, Grantable, Granted, PullPolicy, Pulling};
pub use grant::srpt::ShortestRemainingFirst;
pub use message::part_reader::TakenPart;
pub use metadata::{Metadata, MetadataError};
pub use outgoing_message::{IntoMessage, OutgoingMessage};
pub use send::buffer::TransmitBuffer;
pub use smt_record::Body;
pub use smt_wire::PartMarks;
pub use statistics::Statistics;
pub use time::{Time, WallTime};
