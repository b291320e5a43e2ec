// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A message that a peer has sent: a request, which wants a reply, or a one-way message.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use smt_proto::{Failure, IntoMessage, Metadata, PeerMessage, RpcId, Time};
use smt_wire::AbortCode;

use crate::driver::Guard;
use crate::error::{Error, Phase};
use crate::parts::{PartReader, PartSender, PartsPlace, RequestParts};
use crate::peer::Peer;
use crate::session::Session;

/// A message of a peer.
#[non_exhaustive]
#[derive(Debug)]
pub enum Incoming {
    /// The peer waits for a reply.
    Request(Request),
    /// The peer wants no reply.
    Message(Message),
}

impl Incoming {
    pub(crate) fn new(guard: Arc<Guard>, delivered: Delivered) -> Self {
        if !delivered.message.is_one_way {
            return Self::Request(Request::new(guard, delivered));
        }
        let Delivered { message, peer } = delivered;
        Self::Message(Message {
            session: Session::new(guard, message.rpc.session, peer),
            body: message.body,
            metadata: message.metadata,
        })
    }

    /// Returns the request, if it is one. A one-way message is dropped.
    #[must_use]
    pub fn into_request(self) -> Option<Request> {
        match self {
            Self::Request(request) => Some(request),
            Self::Message(_) => None,
        }
    }

    /// Returns the one-way message, if it is one. A request is dropped without a reply, which tells
    /// its caller that there is none.
    #[must_use]
    pub fn into_message(self) -> Option<Message> {
        match self {
            Self::Request(_) => None,
            Self::Message(message) => Some(message),
        }
    }

    /// Returns the message's body.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        match self {
            Self::Request(request) => request.body(),
            Self::Message(message) => message.body(),
        }
    }

    /// Returns the sender of the message.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        match self {
            Self::Request(request) => request.peer(),
            Self::Message(message) => message.peer(),
        }
    }
}

/// A one-way message of a peer: there is nobody to reply to. The sender knows it to be accepted for
/// delivery.
#[derive(Clone, Debug)]
pub struct Message {
    session: Session,
    body: Bytes,
    metadata: Metadata,
}

impl Message {
    /// Returns the named values beside the body.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Returns the message's body.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Takes the message's body out.
    #[must_use]
    pub fn into_body(self) -> Bytes {
        self.body
    }

    /// Returns the sender of the message.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        self.session.peer()
    }

    /// Returns the session by which the message came: the way to call the peer back.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }
}

/// A request of a peer. Dropping it without a reply tells the caller that there is none.
#[must_use = "dropping a request without replying fails the peer's call"]
#[derive(Debug)]
pub struct Request {
    pub(crate) guard: Arc<Guard>,
    pub(crate) rpc: RpcId,
    body: Bytes,
    metadata: Metadata,
    deadline: Option<Time>,
    takes_parts: bool,
    /// Its parts, if it has some, for one reader at a time.
    parts_place: Option<Arc<PartsPlace>>,
    is_early: bool,
    peer: Arc<Peer>,
    is_answered: bool,
}

/// A message that was accepted, before a handle is made of it.
#[derive(Debug)]
pub(crate) struct Delivered {
    pub(crate) message: PeerMessage,
    pub(crate) peer: Arc<Peer>,
}

impl Delivered {
    /// Bytes of memory that the message takes while it waits.
    pub(crate) fn cost(&self) -> usize {
        size_of::<Self>() + self.message.body.len() + self.message.metadata.encoded_len()
    }
}

impl Request {
    fn new(guard: Arc<Guard>, delivered: Delivered) -> Self {
        let Delivered { message, peer } = delivered;
        Self {
            guard,
            rpc: message.rpc,
            body: message.body,
            metadata: message.metadata,
            deadline: message.deadline,
            takes_parts: message.parts.reply_in_parts,
            parts_place: message.parts.more.then(|| Arc::new(PartsPlace::new())),
            is_early: message.is_early,
            peer,
            is_answered: false,
        }
    }

    /// Replies. Returns when the reply is queued: it is kept and repeated until the caller has it.
    /// The endpoint may not know yet of a caller that has just given up. The memory of the body
    /// must not change until the message has ended.
    ///
    /// # Errors
    /// The reply is too large for the caller (the caller then learns that), the caller has given
    /// up, or the session has ended.
    pub fn reply(mut self, message: impl IntoMessage) -> Result<(), Error> {
        self.is_answered = true;
        let limit = self.peer.message_max;
        let outcome = self.guard.driver().reply(self.rpc, message.into_message(), limit);
        outcome.map_err(|why| Error::new(Phase::Reply, self.peer.address, why))
    }

    /// Refuses the request, which did not run: its caller learns the code, whose meaning is the
    /// application's, and the text, of at most 1,024 bytes
    /// ([`CallFailure::Refused`](crate::CallFailure::Refused)). A text that is longer is cut.
    pub fn refuse(self, code: u32, text: impl Into<String>) {
        self.answer_failure(Failure::refusal(code, text));
    }

    /// Answers that the request has failed, wholly or in part: it may have had an effect. Its
    /// caller learns code and text, as after [`Self::refuse`]
    /// ([`CallFailure::Failed`](crate::CallFailure::Failed)).
    pub fn fail(self, code: u32, text: impl Into<String>) {
        self.answer_failure(Failure::failed(code, text));
    }

    fn answer_failure(mut self, failure: Failure) {
        self.is_answered = true;
        self.guard.driver().fail(self.rpc, failure);
    }

    /// Returns the parts of the request that follow its body: none, unless the caller has said so.
    /// Parts that come while nobody reads them wait, up to
    /// [`TransportConfig::part_window`](crate::TransportConfig). One reader has them at a time: the
    /// next goes on where it was dropped, and one beside it gets
    /// [`ErrorKind::PartsAreRead`](crate::ErrorKind::PartsAreRead).
    pub fn parts(&self) -> RequestParts {
        let (guard, place) = (Arc::clone(&self.guard), self.parts_place.clone());
        RequestParts::new(guard, self.rpc, self.peer.address, place)
    }

    /// Whether the caller takes a reply in parts.
    #[must_use]
    pub fn takes_parts(&self) -> bool {
        self.takes_parts
    }

    /// Returns the sender of the reply's parts, which [`Self::reply`] ends:
    ///
    /// ```no_run
    /// # async fn list(request: smt::Request, rows: Vec<smt::Bytes>) -> Result<(), smt::Error> {
    /// let mut parts = request.part_sender();
    /// for row in rows {
    ///     parts.send(row).await?;
    /// }
    /// request.reply("that is all")
    /// # }
    /// ```
    ///
    /// Sending fails with [`Refused::NoParts`](crate::Refused::NoParts) if the caller does not take
    /// parts ([`Self::takes_parts`]): reply whole.
    #[must_use]
    pub fn part_sender(&self) -> PartSender {
        let guard = Arc::clone(&self.guard);
        let session = self.rpc.session;
        let peer = PartReader {
            place: self.peer.address.into(),
            part_max: guard.driver().look(|state| state.part_max(session)),
        };
        PartSender::of_reply(guard, self.rpc, peer)
    }

    /// Returns the message's body.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Returns the named values beside the body.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Whether the request came as early data, before the client had proved that it is there
    /// (SPEC §6.8). Its caller has said that it may run twice.
    #[must_use]
    pub fn is_early(&self) -> bool {
        self.is_early
    }

    /// The time that the caller will still wait; `None` if it did not say.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.since(self.guard.driver().now()))
    }

    /// The time until which the caller waits, for calls that this one makes in turn; `None` if it
    /// did not say.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.time_left().map(|left| Instant::now() + left)
    }

    /// Whether the caller has given up: a reply would not be read any more. This takes the
    /// endpoint's lock: ask between steps of work, not in a tight loop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        !self.guard.driver().is_wanted(self.rpc)
    }

    /// Whether no more requests of this session are taken, since the server closes, or the client
    /// is accepted no more ([`Distrusted::Finish`](crate::Distrusted::Finish)): this one is to be
    /// answered. A handler without an end of its own looks at it between steps, and answers.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.guard.driver().look(|state| state.is_closing(self.rpc.session))
    }

    /// Returns the sender of the message.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Returns the session by which the message came: the way to call the peer back.
    #[must_use]
    pub fn session(&self) -> Session {
        Session::new(Arc::clone(&self.guard), self.rpc.session, Arc::clone(&self.peer))
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if !self.is_answered {
            self.guard.driver().abort(self.rpc, AbortCode::Dropped);
        }
    }
}
