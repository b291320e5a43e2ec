// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Members of a replicated system as state machines: what the in-memory network and the one over
//! SMT have in common.

use crate::Failure;

/// Whom bytes are for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum To {
    Replica(u32),
    /// All replicas but the sender.
    Replicas,
    Client(u32),
}

/// The sender of bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum From {
    Replica(u32),
    Client,
}

/// Bytes on their way.
pub(crate) struct Sent {
    pub(crate) to: To,
    pub(crate) bytes: Vec<u8>,
}

/// A replica, with its device below it. It may have to stay in the thread that made it.
pub(crate) trait Machine {
    fn receive(&mut self, from: From, bytes: &[u8]);
    fn tick(&mut self);
    /// Works on what has come, and takes what is to be sent.
    fn outputs(&mut self) -> Result<Vec<Sent>, Failure>;
}

/// A client with one request at a time.
pub(crate) trait Requester {
    /// Begins a request.
    fn submit(&mut self);
    /// Whether the request has its answer with these bytes.
    fn receive(&mut self, from: u32, bytes: &[u8]) -> bool;
    fn outputs(&mut self) -> Vec<Sent>;
}
