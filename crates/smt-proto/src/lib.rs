// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The SMT protocol core: sessions, messages, RPCs, grants, questions, timers (docs/SPEC.md §4-§12).
//!
//! No I/O, no clock, no randomness: bytes and times in, state, bytes out. The same code runs on sockets, in
//! a simulator and against a NIC model.
//!
//! # Contract
//! Change an [`Endpoint`] by exactly one of [`Endpoint::handle_datagram`] (or [`Endpoint::handle_trimmed`]),
//! [`Endpoint::handle_timeout`] or a
//! command ([`Endpoint::call`], [`Endpoint::reply`] …). Then drain [`Endpoint::poll_transmit`] and
//! [`Endpoint::poll_event`]. Then wait for a datagram, or until [`Endpoint::poll_timeout`]. Output goes into
//! a buffer that the caller owns, as datagrams of equal size, ready for segmentation offload.
//!
//! # A message's way
//! `endpoint` finds the session; `session` holds calls and served requests; `outgoing` seals records as they
//! leave; `incoming` opens them into place; `control_queue` and `grants` carry the transport's answers; `cuts` is
//! what the network has cut on the way.

#![forbid(unsafe_code)]

mod accept;
mod acks;
mod agreement;
mod assemblies;
mod assembly;
mod batch;
mod bodies;
mod body;
mod books;
mod call;
mod config;
mod connect;
mod control_queue;
mod cuts;
mod discovery;
mod early;
mod endpoint;
mod error;
mod event;
mod flight;
mod foreign;
mod grant_policy;
mod grants;
pub mod handshake;
mod incoming;
mod jitter;
mod leaving;
mod limits;
mod outgoing;
mod pace;
mod patience;
mod pool;
mod pull;
mod question;
mod ranges;
mod rate;
mod rates;
mod ready;
mod record_set;
mod resend_credit;
mod send_queue;
mod served;
mod session;
mod setup;
mod shares;
mod shortest_remaining;
mod spares;
mod stateless;
mod statistics;
mod table;
mod time;
mod transmit_buffer;
mod warm;
mod work;

pub use config::Config;
pub use endpoint::{Endpoint, SessionFacts, TimerReason};
pub use error::{
    CallError, CallFailure, CloseCode, ConnectError, Execution, OneWayOutcome, Refused, SessionEnd,
    Unavailability,
};
pub use event::{ConnectId, Event, RpcId};
pub use grant_policy::{GrantBudget, GrantPolicy, Grantable, Granted, Pulling};
pub use pull::{Pull, PullOrder};
pub use shortest_remaining::ShortestRemainingFirst;
pub use statistics::Statistics;
pub use time::Time;
pub use transmit_buffer::TransmitBuffer;
