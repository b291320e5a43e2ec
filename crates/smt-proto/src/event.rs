// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The events that the core tells its owner.

use bytes::Bytes;
use smt_carrier::Path;
use smt_wire::{MessageId, SessionIndex};

use crate::error::{CallError, ConnectError, OneWayOutcome, SessionEnd};
use crate::key_exchange::PeerIdentity;
use crate::time::Time;

/// Names an attempt to connect.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ConnectId(pub u64);

/// Names a message within an endpoint: its session, by the index that this side chose, and its id.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RpcId {
    /// The session.
    pub session: SessionIndex,
    /// The id within the session.
    pub id: MessageId,
}

/// A message of a peer, for the application.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PeerMessage {
    /// The message's name.
    pub rpc: RpcId,
    /// The message's bytes.
    pub body: Bytes,
    /// When the caller of a request stops waiting, if it has a deadline.
    pub deadline: Option<Time>,
    /// Whether no answer is expected. Else answer with [`crate::Endpoint::reply`] or
    /// [`crate::Endpoint::abort`].
    pub is_one_way: bool,
}

impl PeerMessage {
    /// Bytes of memory that the message takes while it waits.
    #[must_use]
    pub fn cost(&self) -> usize {
        size_of::<Self>() + self.body.len()
    }
}

impl From<PeerMessage> for Event {
    fn from(message: PeerMessage) -> Self {
        let PeerMessage {
            rpc,
            body,
            deadline,
            is_one_way,
        } = message;
        match is_one_way {
            true => Self::OneWay { rpc, body },
            false => Self::Request {
                rpc,
                body,
                deadline,
            },
        }
    }
}

impl Event {
    /// The message of a peer that this event tells of, if it does.
    pub(crate) fn into_message(self) -> Option<PeerMessage> {
        match self {
            Self::Request {
                rpc,
                body,
                deadline,
            } => Some(PeerMessage {
                rpc,
                body,
                deadline,
                is_one_way: false,
            }),
            Self::OneWay { rpc, body } => Some(PeerMessage {
                rpc,
                body,
                deadline: None,
                is_one_way: true,
            }),
            _ => None,
        }
    }
}

/// An event for the endpoint's owner. Drain events with [`crate::Endpoint::poll_event`].
#[non_exhaustive]
#[derive(Debug)]
pub enum Event {
    /// A client's session is live in this endpoint.
    Accepted {
        /// Its index.
        session: SessionIndex,
        /// Where the client is.
        path: Path,
        /// The identity that the client has proved.
        peer: PeerIdentity,
    },
    /// The peer gave up this RPC, whose request is with the application, or waits to be accepted
    /// and will not be.
    Cancelled(RpcId),
    /// A call has ended without a reply.
    CallFailed {
        /// The call.
        rpc: RpcId,
        /// The cause, and whether the call may have run.
        error: CallError,
    },
    /// A session with a server is live.
    Connected {
        /// The attempt.
        connect: ConnectId,
        /// The session's index.
        session: SessionIndex,
        /// The identity that the server has proved.
        peer: PeerIdentity,
    },
    /// An attempt to connect has failed.
    ConnectFailed {
        /// The attempt.
        connect: ConnectId,
        /// Why.
        error: ConnectError,
    },
    /// A one-way message has arrived.
    OneWay {
        /// The message's name.
        rpc: RpcId,
        /// The message's bytes.
        body: Bytes,
    },
    /// A one-way message that was sent from here has ended.
    OneWayDone {
        /// The message's name.
        rpc: RpcId,
        /// How.
        outcome: OneWayOutcome,
    },
    /// A reply has arrived; the call is over.
    Reply {
        /// The call.
        rpc: RpcId,
        /// The reply's bytes.
        body: Bytes,
    },
    /// A request has arrived. Answer with [`crate::Endpoint::reply`] or [`crate::Endpoint::abort`].
    Request {
        /// The request's name.
        rpc: RpcId,
        /// The request's bytes.
        body: Bytes,
        /// When the caller stops waiting, if it has a deadline.
        deadline: Option<Time>,
    },
    /// A session has ended. All its calls have ended before this event.
    SessionEnded {
        /// The session.
        session: SessionIndex,
        /// Why.
        end: SessionEnd,
    },
    /// A call or message that was refused with [`crate::Refused::Blocked`] may be tried again.
    Unblocked(SessionIndex),
}
