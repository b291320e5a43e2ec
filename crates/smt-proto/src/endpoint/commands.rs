// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The application's commands to an endpoint.

use alloc::vec::Vec;
use core::time::Duration;

use smt_carrier::Path;
use smt_record::Body;
use smt_wire::{AbortCode, PartMarks, SessionIndex};

use super::{Endpoint, Schedule};
use crate::error::{CallFailure, CloseCode, ConnectError, Refused, SessionEnd};
use crate::establish::client::{ClientHandshake, HandshakeRequest};
use crate::establish::early::EarlyCall;
use crate::establish::session_factory::SessionFactory;
use crate::event::{ConnectId, Event, RpcId};
use crate::failure::Failure;
use crate::message::part_reader::TakenPart;
use crate::outgoing_message::OutgoingMessage;
use crate::session::{CallKind, OutgoingPart};
use crate::time::Time;

/// The options of a call in parts.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallOptions {
    /// The time after which the caller gives up, if it does.
    pub deadline: Option<Duration>,
    /// Whether parts of the request follow, and whether the reply may come in parts.
    pub parts: PartMarks,
}

/// A session that is wanted, and the calls that begin with it.
#[derive(Clone, Debug)]
pub struct ConnectRequest<'a> {
    /// Where the server is.
    pub path: Path,
    /// The name that the server must prove: a DNS name, an IP address or a SPIFFE ID.
    pub server_name: &'a str,
    /// How long the connect may take.
    pub deadline: Duration,
    /// The calls. The requests of the first may run twice.
    pub calls: Vec<EarlyCall>,
}

impl Endpoint {
    /// Begins to establish a session with the server at `path`, which must prove that it is
    /// `server_name`. [`crate::Event::Connected`] or [`crate::Event::ConnectFailed`] follows, at
    /// the latest after `deadline`.
    ///
    /// # Errors
    /// `server_name` is not a DNS name or IP address, this endpoint cannot be a client, or it has
    /// or had as many sessions as it may.
    pub fn connect(
        &mut self,
        now: Time,
        path: Path,
        server_name: &str,
        deadline: Duration,
    ) -> Result<ConnectId, ConnectError> {
        self.connect_with_calls(
            now,
            ConnectRequest { path, server_name, deadline, calls: Vec::new() },
        )
    }

    /// The same with calls that begin with the session. Behind [`crate::Event::Connected`] comes
    /// [`crate::Event::EarlyCalls`], which has their names.
    ///
    /// The first ones leave as early data (SPEC §6.8) if the key exchange carries any: then a
    /// request may run before the server has heard that its client is there, and without forward
    /// secrecy. A request that was early may have run if the connect fails, and may run twice.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn connect_with_calls(
        &mut self,
        now: Time,
        wanted: ConnectRequest<'_>,
    ) -> Result<ConnectId, ConnectError> {
        let path = wanted.path;
        if self.is_copy {
            return Err(ConnectError::Copied);
        }
        let most = self.shared.config.sessions_max;
        if self.sessions.len() + self.connects.len() >= most {
            return Err(ConnectError::TooManySessions(most));
        }
        let own = self.issue_index(path).ok_or(ConnectError::IndicesUsedUp)?;
        let id = ConnectId(self.next_connect);
        let request = HandshakeRequest {
            id,
            path,
            server_name: wanted.server_name,
            deadline: wanted.deadline,
            early: wanted.calls,
        };
        let factory = SessionFactory { config: &self.shared.config, crypto: &self.crypto };
        let connect = ClientHandshake::new(now, request, own, &factory)?;
        self.next_connect += 1;
        self.connect_of.insert(connect.index(), id);
        self.foreign.add_connect(path.remote);
        self.connects.insert(id.0, connect);
        self.reschedule_connect(id);
        Ok(id)
    }

    /// Sends a request. [`crate::Event::Reply`] or [`crate::Event::CallFailed`] follows.
    ///
    /// # Errors
    /// See [`Refused`]; nothing was sent.
    pub fn call(
        &mut self,
        now: Time,
        session: SessionIndex,
        message: impl Into<OutgoingMessage>,
        deadline: Option<Duration>,
    ) -> Result<RpcId, Refused> {
        self.start_message(
            now,
            session,
            message.into(),
            CallKind { deadline, ..CallKind::default() },
        )
    }

    /// Sends a request of which parts follow ([`Self::send_part`]) if `options.parts.more`, and
    /// whose reply may come in parts ([`Self::take_part`]) if `options.parts.reply_in_parts`.
    /// [`crate::Event::Reply`] follows once all parts of the reply were taken, or
    /// [`crate::Event::CallFailed`], which drops those that were not.
    ///
    /// # Errors
    /// See [`Refused`]; nothing was sent.
    pub fn call_in_parts(
        &mut self,
        now: Time,
        session: SessionIndex,
        message: impl Into<OutgoingMessage>,
        options: CallOptions,
    ) -> Result<RpcId, Refused> {
        let kind =
            CallKind { deadline: options.deadline, parts: options.parts, ..CallKind::default() };
        self.start_message(now, session, message.into(), kind)
    }

    /// Sends a part: of a request, to its server, or of a reply, to its caller. `more` says whether
    /// parts of the request follow; those of a reply end with the reply. No event follows.
    ///
    /// # Errors
    /// See [`Refused`]. After [`Refused::PartWindowFull`] the reader has to take some parts first,
    /// or to acknowledge what it was sent, and after [`Refused::Blocked`] earlier messages have to
    /// be seen; events tell of both. [`Refused::NoRpc`] for a part of a request may mean that the
    /// reply has come, of which parts may be left to take.
    pub fn send_part(
        &mut self,
        now: Time,
        rpc: RpcId,
        body: impl Into<Body>,
        more: bool,
    ) -> Result<(), Refused> {
        let body = body.into();
        let session = self.sessions.get_mut(rpc.session.0).ok_or(Refused::NoSession)?;
        let part = OutgoingPart { body, more };
        let outcome = session.send_part(now, rpc.id, part, &mut self.shared);
        self.reschedule(rpc.session);
        outcome
    }

    /// Gives up a call of whose request not all parts were sent, as [`Self::cancel`] does: a
    /// request that was cut short must not look whole. Does nothing once its reply has come.
    pub fn cut_short(&mut self, now: Time, rpc: RpcId) {
        if let Some(session) = self.sessions.get_mut(rpc.session.0) {
            session.cut_short(now, rpc.id, &mut self.shared);
            self.reschedule(rpc.session);
        }
    }

    /// Takes the next part of a call, if it has come: of a request of a peer, or of the reply to a
    /// call of this side. The peer may then send more. The first look at a request opens its
    /// window.
    ///
    /// # Errors
    /// No such call is in progress, or it has no parts for this side.
    pub fn take_part(&mut self, rpc: RpcId) -> Result<Option<TakenPart>, Refused> {
        let session = self.sessions.get_mut(rpc.session.0).ok_or(Refused::NoSession)?;
        let outcome = session.take_part(rpc.id, &mut self.shared);
        self.reschedule(rpc.session);
        outcome
    }

    /// Sends a one-way message. [`crate::Event::OneWayDone`] follows.
    ///
    /// # Errors
    /// See [`Refused`]; nothing was sent.
    pub fn send_one_way(
        &mut self,
        now: Time,
        session: SessionIndex,
        message: impl Into<OutgoingMessage>,
        deadline: Option<Duration>,
    ) -> Result<RpcId, Refused> {
        self.start_message(
            now,
            session,
            message.into(),
            CallKind { is_one_way: true, deadline, ..CallKind::default() },
        )
    }

    /// Whether a call or a one-way message would begin now, and not be refused as
    /// [`Refused::Blocked`]: for back-pressure before a message is made. If it would be,
    /// [`Event::Unblocked`] follows when it is worth asking again.
    ///
    /// # Errors
    /// [`Refused::NoSession`].
    pub fn may_begin(&mut self, now: Time, session: SessionIndex) -> Result<bool, Refused> {
        let live = self.sessions.get_mut(session.0).ok_or(Refused::NoSession)?;
        let outcome = live.has_room(now);
        self.reschedule(session);
        outcome
    }

    /// Replies to a request.
    ///
    /// # Errors
    /// See [`Refused`]. After [`Refused::TooLarge`] the request is over: its caller learns that the
    /// reply is too large for it ([`AbortCode::ReplyTooLarge`]).
    pub fn reply(
        &mut self,
        now: Time,
        rpc: RpcId,
        message: impl Into<OutgoingMessage>,
    ) -> Result<(), Refused> {
        let session = self.sessions.get_mut(rpc.session.0).ok_or(Refused::NoSession)?;
        let outcome = session.reply(now, rpc.id, message.into(), &mut self.shared);
        self.reschedule(rpc.session);
        outcome
    }

    /// Answers that a request has failed, by the application's code and text. The caller learns
    /// both, and whether the request has run ([`CallFailure::Refused`], [`CallFailure::Failed`]).
    ///
    /// # Errors
    /// The request was answered, or its caller has given up.
    pub fn fail(&mut self, now: Time, rpc: RpcId, failure: Failure) -> Result<(), Refused> {
        let session = self.sessions.get_mut(rpc.session.0).ok_or(Refused::NoSession)?;
        let outcome = session.fail(now, rpc.id, failure, &mut self.shared);
        self.reschedule(rpc.session);
        outcome
    }

    /// Ends a request without a reply.
    ///
    /// # Errors
    /// The request was answered, or its caller has given up.
    pub fn abort(&mut self, now: Time, rpc: RpcId, code: AbortCode) -> Result<(), Refused> {
        let session = self.sessions.get_mut(rpc.session.0).ok_or(Refused::NoSession)?;
        let outcome = session.abort(now, rpc.id, code, &mut self.shared);
        self.reschedule(rpc.session);
        outcome
    }

    /// Gives up a call or a one-way message. Its end is reported at once; the peer is told until it
    /// answers. Returns whether it was in progress.
    pub fn cancel(&mut self, now: Time, rpc: RpcId) -> bool {
        let Some(session) = self.sessions.get_mut(rpc.session.0) else {
            return false;
        };
        let was_live = session.cancel(now, rpc.id, CallFailure::Cancelled, &mut self.shared);
        self.reschedule(rpc.session);
        was_live
    }

    /// Gives up an attempt to connect. No event follows.
    pub fn cancel_connect(&mut self, id: ConnectId) {
        self.remove_connect(id);
    }

    /// Fills `out` with a secret of a live session, by SPEC §7.4: both ends get the same bytes for
    /// a label of 1 to 249 bytes, a context and a length of 1 to 8,160 bytes. No other label,
    /// context, length or session gives them, and they tell nothing of the session's keys.
    ///
    /// # Errors
    /// [`Refused::NoSession`], or [`Refused::Export`] for what cannot be exported; `out` is as it
    /// was.
    pub fn export(
        &self,
        session: SessionIndex,
        label: &str,
        context: &[u8],
        out: &mut [u8],
    ) -> Result<(), Refused> {
        let session = self.sessions.get(session.0);
        let live = session.filter(|session| !session.has_ended());
        let exporter = &live.ok_or(Refused::NoSession)?.exporter;
        exporter.export(self.crypto.library.hash(), label, context, out)?;
        Ok(())
    }

    /// Closes a session: calls in progress end, and the peer is told.
    pub fn close(&mut self, session: SessionIndex, code: CloseCode) {
        let Some(live) = self.sessions.get_mut(session.0) else {
            return;
        };
        live.close(code, &mut self.shared);
        self.reschedule(session);
    }

    /// Takes what the peer of a session has proved its identity by as ended (SPEC §10), since it is
    /// accepted no more: nothing begins in the session, requests that come are refused, and it
    /// closes once nothing is in progress.
    pub fn expire(&mut self, now: Time, session: SessionIndex) {
        let Some(live) = self.sessions.get_mut(session.0) else {
            return;
        };
        live.expire_peer(now);
        self.reschedule(session);
    }

    /// Closes all sessions.
    pub fn close_all(&mut self, code: CloseCode) {
        let all: Vec<SessionIndex> =
            self.sessions.iter().map(|(number, _)| SessionIndex(number)).collect();
        for session in all {
            self.close(session, code);
        }
    }

    /// Leaves everything to the process that this one is a copy of (SPEC §16: a fork, a snapshot):
    /// sessions and connects end here with [`SessionEnd::Copied`] and [`ConnectError::Copied`],
    /// nothing is sent or received any more, and peers are not told. Two processes that seal under
    /// the same keys would disclose what they seal.
    pub fn leave_to_original(&mut self) {
        self.is_copy = true;
        let sessions: Vec<u64> = self.sessions.iter().map(|(number, _)| number).collect();
        for number in sessions {
            if let Some(session) = self.sessions.get_mut(number) {
                session.end(SessionEnd::Copied, &mut self.shared);
            }
            self.remove_session(SessionIndex(number));
        }
        let connects: Vec<u64> = self.connects.iter().map(|(number, _)| number).collect();
        for connect in connects.into_iter().map(ConnectId) {
            self.remove_connect(connect);
            let error = ConnectError::Copied;
            self.shared.events.push_back(Event::ConnectFailed { connect, error });
        }
        let accepts: Vec<u64> = self.accepts.iter().map(|(number, _)| number).collect();
        for number in accepts {
            self.remove_accept(SessionIndex(number));
        }
        self.schedule = Schedule::new();
        while self.stateless.pop().is_some() {}
        self.flight_rest = None;
    }

    /// From now on new requests are refused, and so are those of which the application has not been
    /// told: their callers learn that they did not run. New clients are told so (handshakes in
    /// progress are finished). Requests that the application has are finished as usual; peers are
    /// asked soon whether replies have arrived.
    pub fn drain(&mut self, now: Time) {
        self.shared.is_draining = true;
        self.refuse_undelivered_requests(now);
        let all: Vec<_> = self.sessions.iter().map(|(number, _)| number).collect();
        for number in all {
            if let Some(session) = self.sessions.get_mut(number) {
                session.ask_for_acks();
                self.reschedule(SessionIndex(number));
            }
        }
    }

    /// Requests of peers in progress, replies not yet acknowledged included.
    #[must_use]
    pub fn served_len(&self) -> usize {
        self.sessions.iter().map(|(_, session)| session.served_len()).sum()
    }

    fn start_message(
        &mut self,
        now: Time,
        session: SessionIndex,
        message: OutgoingMessage,
        kind: CallKind,
    ) -> Result<RpcId, Refused> {
        let live = self.sessions.get_mut(session.0).ok_or(Refused::NoSession)?;
        let outcome = live.call(now, message, kind, &mut self.shared);
        self.reschedule(session);
        outcome.map(|id| RpcId { session, id })
    }
}
