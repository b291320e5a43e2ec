// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients as state machines: what the network in memory and the one over SMT have in common.

use smt_bft::Output;

/// A client with one request at a time.
pub(crate) trait Requester {
    /// Begins a request.
    fn submit(&mut self);
    /// Whether the request has its answer with these bytes.
    fn receive(&mut self, from: u32, bytes: &[u8]) -> bool;
    fn outputs(&mut self) -> Vec<Output>;
}
