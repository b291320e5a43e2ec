// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A reply as its caller gets it.

use bytes::Bytes;
use smt_proto::{Metadata, OutgoingMessage};

/// The reply to a call: its body, and the named values beside it.
///
/// A call that is awaited gives the body alone; `client.call(request).reply().await` gives this,
/// and so does `wait_reply` for threads.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Reply {
    /// The reply's bytes.
    pub body: Bytes,
    /// Named values beside the body, as the peer's application has sent them.
    pub metadata: Metadata,
    /// Whether the server took the request as early data (SPEC §6.8): it may have run twice.
    pub was_early: bool,
}

/// A reply that is passed on, by a proxy for example.
impl From<Reply> for OutgoingMessage {
    fn from(reply: Reply) -> Self {
        Self::new(reply.body).with_metadata(reply.metadata)
    }
}
