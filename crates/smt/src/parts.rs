// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls in parts: requests and replies of any length, in bounded memory, that are read while they
//! come (SPEC §5.9).
//!
//! A part is a message: it arrives as it was sent, and in order. Its reader sets the pace: a sender
//! waits while as much waits for the reader as
//! [`TransportConfig::part_window`](crate::TransportConfig) says. The same types serve tasks and
//! threads; the methods for threads begin with `blocking_`.

#[cfg(feature = "async")]
mod adapters;
#[cfg(feature = "tokio")]
mod byte_streams;
mod receiver;
mod sender;

#[cfg(feature = "async")]
pub use adapters::PartSink;
#[cfg(feature = "tokio")]
pub use byte_streams::ByteReader;
pub(crate) use receiver::PartsPlace;
pub use receiver::{ReplyParts, RequestParts};
pub(crate) use sender::PartReader;
pub use sender::PartSender;
