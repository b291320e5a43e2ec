// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The callers that a protocol knows, each with one request at a time.

use serde::{Deserialize, Serialize};
use smt_replica::{IN_PROGRESS_MAX, Request};

/// A place for a request in progress of a process of a client.
///
/// A process has random bytes of its own, so that no two of a client are one, and begins a request
/// only when the one 32 numbers before has ended: a caller has one request at a time, and its
/// numbers grow.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Caller {
    /// The client's number in the group.
    pub client: u32,
    /// The random bytes of its process: the nonces of all its requests.
    pub process: [u8; 16],
    /// The place among [`IN_PROGRESS_MAX`].
    pub place: u8,
}

impl Caller {
    /// The caller whose request this is.
    #[must_use]
    pub fn of(request: &Request) -> Self {
        let place = (request.number % IN_PROGRESS_MAX) as u8;
        Self { client: request.client, process: request.nonce, place }
    }
}
