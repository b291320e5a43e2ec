// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A message that a peer has sent: a request, which wants a reply, or a one-way message.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use smt_proto::{PeerMessage, RpcId, Time};
use smt_wire::AbortCode;

use crate::driver::Guard;
use crate::error::{Error, ErrorKind, Phase};
use crate::session::Session;

/// A request or one-way message of a peer. Dropping a request without a reply tells the caller that
/// there is none.
#[must_use = "dropping a request without replying fails the peer's call"]
#[derive(Debug)]
pub struct Request {
    guard: Arc<Guard>,
    rpc: RpcId,
    body: Bytes,
    deadline: Option<Time>,
    peer: Arc<Peer>,
    is_one_way: bool,
    is_answered: bool,
}

/// The sender of a message: its address, and how it has proved its identity.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Peer {
    /// Address and port.
    pub address: SocketAddr,
    /// Certificates in DER, leaf first; empty if the peer showed none.
    pub certificates: Vec<Vec<u8>>,
    /// Name of the registered key, if the session has one.
    pub key_name: Option<Vec<u8>>,
    /// Identity that the registered key gives the sender, if the session has one.
    pub key_identity: Option<String>,
    /// Application bytes of the largest message that it accepts.
    pub(crate) message_max: u32,
}

/// A message that has come, before a handle is made of it.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) message: PeerMessage,
    pub(crate) peer: Arc<Peer>,
}

impl Incoming {
    /// Bytes of memory that the message takes while it waits.
    pub(crate) fn cost(&self) -> usize {
        size_of::<Self>() + self.message.body.len()
    }
}

impl Request {
    pub(crate) fn new(guard: Arc<Guard>, incoming: Incoming) -> Self {
        let Incoming { message, peer } = incoming;
        let PeerMessage {
            rpc,
            body,
            deadline,
            is_one_way,
        } = message;
        Self {
            guard,
            rpc,
            body,
            deadline,
            peer,
            is_one_way,
            is_answered: is_one_way,
        }
    }

    /// Replies. Returns when the reply is queued: it is kept and repeated until the caller has it.
    /// The endpoint may not know yet of a caller that has just given up. The body's memory must not
    /// change until the message has ended.
    ///
    /// # Errors
    /// The reply is too large for the caller (the caller then learns that), the caller has given
    /// up, the session has ended, or this is a one-way message.
    pub fn reply(mut self, body: impl Into<Bytes>) -> Result<(), Error> {
        if self.is_one_way {
            return Err(Error::new(
                Phase::Reply,
                self.peer.address,
                ErrorKind::OneWay,
            ));
        }
        self.is_answered = true;
        let limit = self.peer.message_max;
        let outcome = self.guard.driver().reply(self.rpc, body.into(), limit);
        outcome.map_err(|why| Error::new(Phase::Reply, self.peer.address, why))
    }

    /// Refuses the request: its caller learns that it did not run. Does nothing to a one-way
    /// message.
    pub fn refuse(mut self) {
        if !self.is_answered {
            self.is_answered = true;
            self.guard.driver().abort(self.rpc, AbortCode::Refused);
        }
    }

    /// Returns the message's body.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// The time that the caller will still wait; `None` if it did not say.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        self.deadline
            .map(|deadline| deadline.since(self.guard.driver().now()))
    }

    /// Whether the caller has given up: a reply would not be read any more. This takes the
    /// endpoint's lock: ask between steps of work, not in a tight loop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        !self.is_one_way && !self.guard.driver().is_wanted(self.rpc)
    }

    /// Whether this is a one-way message, which takes no reply.
    #[must_use]
    pub fn is_one_way(&self) -> bool {
        self.is_one_way
    }

    /// Returns the sender of the message.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Returns the session by which the message came: the way to call the peer back.
    #[must_use]
    pub fn session(&self) -> Session {
        Session::new(
            Arc::clone(&self.guard),
            self.rpc.session,
            Arc::clone(&self.peer),
        )
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if !self.is_answered {
            self.guard.driver().abort(self.rpc, AbortCode::Dropped);
        }
    }
}
