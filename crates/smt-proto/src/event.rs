// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The events that the core tells its owner.

use alloc::boxed::Box;
use alloc::vec::Vec;

use bytes::Bytes;
use smt_carrier::Path;
use smt_wire::{MessageId, PartMarks, SessionIndex};

use crate::error::Refused;
use crate::error::{CallError, ConnectError, OneWayOutcome, SessionEnd};
use crate::key_exchange::PeerIdentity;
use crate::metadata::Metadata;
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
    /// Named values beside the body.
    pub metadata: Metadata,
    /// When the caller of a request stops waiting, or a one-way message is of no use any more, if
    /// it has a deadline.
    pub deadline: Option<Time>,
    /// Whether no answer is expected. Else answer with [`crate::Endpoint::reply`],
    /// [`crate::Endpoint::fail`] or [`crate::Endpoint::abort`].
    pub is_one_way: bool,
    /// Whether parts of the request follow, and whether the reply may come in parts. A one-way
    /// message has none.
    pub parts: PartMarks,
    /// Whether the request came as early data (SPEC §6.8): it may run twice.
    pub is_early: bool,
}

impl PeerMessage {
    /// Bytes of memory that the message takes while it waits.
    #[must_use]
    pub fn cost(&self) -> usize {
        size_of::<Self>() + self.body.len() + self.metadata.encoded_len()
    }

    /// Whether this is a one-way message whose time has passed: it is not to be delivered any more
    /// (SPEC §9.5). A request is to be delivered as long as its caller waits.
    #[must_use]
    pub fn is_late(&self, now: Time) -> bool {
        self.is_one_way && self.deadline.is_some_and(|deadline| deadline < now)
    }
}

impl From<PeerMessage> for Event {
    fn from(message: PeerMessage) -> Self {
        let PeerMessage { rpc, body, metadata, deadline, is_one_way, parts, is_early } = message;
        match is_one_way {
            true => Self::OneWay { rpc, body, metadata, deadline },
            false => Self::Request { rpc, body, metadata, deadline, parts, is_early },
        }
    }
}

impl Event {
    /// The message of a peer that this event tells of, if it does.
    pub(crate) fn into_message(self) -> Option<PeerMessage> {
        match self {
            Self::Request { rpc, body, metadata, deadline, parts, is_early } => Some(PeerMessage {
                rpc,
                body,
                metadata,
                deadline,
                parts,
                is_early,
                is_one_way: false,
            }),
            Self::OneWay { rpc, body, metadata, deadline } => Some(PeerMessage {
                rpc,
                body,
                metadata,
                deadline,
                parts: PartMarks::default(),
                is_early: false,
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
    /// A client was not taken: its handshake has failed, or the endpoint takes no client now. A
    /// client that tries several times is told of each time. Anybody can send from a forged
    /// address: owners that log this should bound how often.
    ClientRefused {
        /// Where the client is.
        path: Path,
        /// Why: whose fault it was, and what to do.
        reason: Box<str>,
    },
    /// The peer gave up this RPC, whose request is with the application.
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
    /// The calls that began with a session ([`crate::Endpoint::connect_with_calls`]). It follows
    /// [`Self::Connected`].
    EarlyCalls {
        /// The attempt.
        connect: ConnectId,
        /// The calls, in the order in which they were given. Their events follow, as of other
        /// calls; one that was refused has none.
        calls: Vec<Result<RpcId, Refused>>,
        /// How many of them, from the first, the server took as early data.
        taken: usize,
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
        /// Named values beside the body.
        metadata: Metadata,
        /// When it is of no use any more, if it has a deadline.
        deadline: Option<Time>,
    },
    /// A one-way message that was sent from here has ended.
    OneWayDone {
        /// The message's name.
        rpc: RpcId,
        /// How.
        outcome: OneWayOutcome,
    },
    /// The parts of a reply that had come in order and were not taken when their call ended. The
    /// call's end follows: [`Self::CallFailed`], or [`Self::Reply`] if nothing was missing. There
    /// are none of a call that this side has cancelled.
    PartsLeft {
        /// The call.
        rpc: RpcId,
        /// The parts' bytes, in order.
        parts: Vec<Bytes>,
    },
    /// The next part of a call has come, or the end of its parts: [`crate::Endpoint::take_part`]
    /// gives it. Told again only after the parts that had come were taken.
    PartReady(RpcId),
    /// A part that was refused with [`crate::Refused::PartWindowFull`] may be sent now.
    PartWindowRaised(RpcId),
    /// A reply has arrived; the call is over.
    Reply {
        /// The call.
        rpc: RpcId,
        /// The reply's bytes.
        body: Bytes,
        /// Named values beside the body.
        metadata: Metadata,
    },
    /// A request has arrived. Answer with [`crate::Endpoint::reply`],
    /// [`crate::Endpoint::fail`] or [`crate::Endpoint::abort`].
    Request {
        /// The request's name.
        rpc: RpcId,
        /// The request's bytes.
        body: Bytes,
        /// Named values beside the body.
        metadata: Metadata,
        /// When the caller stops waiting, if it has a deadline.
        deadline: Option<Time>,
        /// Whether parts of the request follow ([`crate::Endpoint::take_part`]), and whether the
        /// reply may come in parts ([`crate::Endpoint::send_part`]).
        parts: PartMarks,
        /// Whether the request came as early data (SPEC §6.8): it may run twice.
        is_early: bool,
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
