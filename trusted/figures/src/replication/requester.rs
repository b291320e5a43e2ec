// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients as state machines: what the network in memory and the one over SMT have in common.

use smt_bft::Output;

/// A client with as many requests in progress as its system permits ([`in_progress`]).
///
/// [`in_progress`]: super::system::Place::in_progress
pub(crate) trait Requester {
    /// Begins a request, and returns its number.
    fn submit(&mut self) -> u64;
    /// The number of the request that has its answer with these bytes.
    fn receive(&mut self, from: u32, bytes: &[u8]) -> Option<u64>;
    /// Time passes. A request whose answer takes long is repeated: a replica that has not met the
    /// client yet drops what it would answer.
    fn tick(&mut self);
    fn outputs(&mut self) -> Vec<Output>;
}

/// Ticks after which a request without an answer is repeated.
pub(crate) const REPEATED_AFTER: u32 = 10;
