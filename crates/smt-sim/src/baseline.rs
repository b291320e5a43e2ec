// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The baseline with which SMT is compared: messages over byte streams, as TLS over TCP carries
//! them.
//!
//! 1. [`StreamHost::send`] frames a message and appends it to a connection: [`Pooling`] says to
//!    which.
//! 2. Connections that may send take turns at the cable, one segment each, as fair queueing at a
//!    NIC has it.
//! 3. Every data segment is acknowledged at once, by a packet of its own that goes ahead of data:
//!    the next byte in order, up to three SACK blocks (RFC 2018), and whether that segment was
//!    marked. No delayed acknowledgements, no piggybacking, no timestamps.
//! 4. Segments that three later ones overtook are sent again (RFC 6675), or else after a timeout
//!    (RFC 6298, at least 1 ms). A connection that sees reordering becomes more patient, up to 300
//!    segments, as Linux does. A packet that a switch has trimmed is lost.
//! 5. The window follows DCTCP (RFC 8257): slow start from 10 segments, then one segment per round
//!    trip; marks cut it by half of their moving average, losses by half, both at most once per
//!    window.
//! 6. A message is [`Delivered`] when all bytes of its connection up to its last one have arrived:
//!    the receiver knows messages only by the frames that the stream carries.
//!
//! Connections exist from the start with a window of 10 segments; one that was idle for longer than
//! its timeout falls back to that (RFC 5681 §4.1, RFC 2861). All packets have one priority. Not
//! here: handshakes, flow control (the receiver reads at once), D-SACK, undoing a needless cut,
//! tail loss probes, checksums (a rule that changes bytes changes what is delivered), limits on
//! what an application may queue.

mod congestion;
mod framing;
mod host;
mod limits;
mod receiver;
mod round_trip;
mod scoreboard;
mod segment;
mod sender;
#[cfg(test)]
mod tests;

pub use host::{Delivered, Pooling, StreamCounts, StreamHost, StreamOptions};
