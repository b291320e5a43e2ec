// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The way to sessions with servers: what `servers` asks for is done here.

use std::net::SocketAddr;
use std::sync::Weak;
use std::task::{Poll, Waker, ready};

use smt_proto::{CloseCode, ConnectError, ConnectId, Refused, RpcId, Time};
use smt_wire::SessionIndex;

use super::EndpointState;
use crate::driver::Driver;
use crate::early_call::BegunCall;
use crate::error::ErrorKind;
use crate::resolver::resolve;
use crate::servers::{Caller, Failure, ServerId, ToResolve};

impl EndpointState {
    /// The driver that shares this state.
    pub(crate) fn set_driver(&mut self, driver: Weak<Driver>) {
        self.driver = driver;
    }

    /// The live session with a server; connects if there is none.
    pub(crate) fn poll_session(
        &mut self,
        now: Time,
        caller: Caller<'_>,
    ) -> Poll<Result<SessionIndex, Failure>> {
        let draining = self.is_draining.then_some(ConnectError::ShutDown);
        if let Some(why) = self.why_left().or(draining) {
            return Poll::Ready(Err(Failure::of(why)));
        }
        let polled = self.servers.poll_session(now, &mut self.endpoint, caller);
        // Nothing but the session was looked up for most calls.
        if !matches!(polled, Poll::Ready(Ok(_))) {
            self.after_servers(now);
        }
        polled
    }

    /// Ready when a message to a server would begin at once. Other hindrances are told to the
    /// sender of the message.
    pub(crate) fn poll_ready(
        &mut self,
        now: Time,
        caller: Caller<'_>,
    ) -> Poll<Result<(), Failure>> {
        let waker = caller.waker;
        let session = match ready!(self.poll_session(now, caller)) {
            Ok(session) => session,
            Err(failure) => return Poll::Ready(Err(failure)),
        };
        if self.endpoint.may_begin(now, session) == Ok(false) {
            self.wait_for_ids(waker);
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    /// A name was resolved, or not.
    pub(crate) fn resolved(
        &mut self,
        now: Time,
        of: &ToResolve,
        found: Result<Vec<SocketAddr>, ErrorKind>,
    ) {
        if self.is_left.is_none() {
            self.servers.resolved(now, &mut self.endpoint, of, found);
            self.after_servers(now);
        }
    }

    /// Ready when nothing is in progress with a server.
    pub(crate) fn poll_server_finished(&mut self, server: ServerId, waker: &Waker) -> Poll<()> {
        let sessions = self.servers.sessions(server, &self.endpoint);
        let mut facts = sessions.iter().filter_map(|session| self.endpoint.session(*session));
        if facts.all(|facts| facts.calls == 0 && facts.served == 0) {
            return Poll::Ready(());
        }
        self.finishers_of_servers.push(waker.clone());
        Poll::Pending
    }

    /// Closes the session with a server, and gives an attempt at one up.
    pub(crate) fn close_server(&mut self, server: ServerId) {
        self.servers.cancel(server, &mut self.endpoint);
        for session in self.servers.sessions(server, &self.endpoint) {
            self.endpoint.close(session, CloseCode::Done);
        }
        self.woken.append(&mut self.servers.take_woken());
    }

    /// The last user of this server has gone. Its session closes, unless something of it has yet to
    /// leave: then it ends by idling.
    pub(crate) fn forget_server(&mut self, now: Time, server: ServerId) {
        let sessions = self.servers.remove(server, &mut self.endpoint);
        if !self.has_output(now) {
            for session in sessions {
                self.endpoint.close(session, CloseCode::Done);
            }
        }
    }

    /// Does what is due for servers.
    pub(super) fn handle_servers_timeout(&mut self, now: Time) {
        if self.servers.due().is_some_and(|due| due <= now) {
            self.servers.handle_timeout(now, &mut self.endpoint);
            self.after_servers(now);
        }
    }

    /// Does what the servers have asked for.
    fn after_servers(&mut self, now: Time) {
        self.woken.append(&mut self.servers.take_woken());
        for of in self.servers.take_to_resolve() {
            if let Err(reason) = resolve(Weak::clone(&self.driver), of.clone()) {
                let found = Err(ErrorKind::Unresolved(reason.to_string()));
                self.servers.resolved(now, &mut self.endpoint, &of, found);
                self.woken.append(&mut self.servers.take_woken());
            }
        }
    }

    /// A client's session has no more ids: the next one is used from now on.
    pub(crate) fn retire_session(&mut self, session: SessionIndex) {
        self.servers.retire(session);
    }

    /// Calls that a connect has taken along have their names, and the server has taken as many as
    /// early data; callers that are gone do not wait.
    pub(super) fn begin_early_calls(
        &mut self,
        connect: ConnectId,
        calls: Vec<Result<RpcId, Refused>>,
        taken: usize,
    ) {
        let now = self.changed;
        let waiting = self.servers.take_early(connect);
        for (number, (early, call)) in waiting.into_iter().zip(calls).enumerate() {
            match call {
                // Dropped while it is refused: its caller calls as ever, and is told why.
                Err(_) => {}
                Ok(rpc) if early.is_alone() => _ = self.endpoint.cancel(now, rpc),
                Ok(rpc) => early.begin(BegunCall {
                    rpc,
                    slot: self.calls.expect(rpc),
                    was_early: number < taken,
                }),
            }
        }
    }

    /// A connect has ended.
    pub(super) fn finish_connect(
        &mut self,
        connect: ConnectId,
        result: Result<SessionIndex, ConnectError>,
    ) {
        let now = self.changed;
        let servers = &mut self.servers;
        let unwanted = servers.finish(now, &mut self.endpoint, connect, result);
        if let Some(session) = unwanted {
            self.endpoint.close(session, CloseCode::Done);
        }
        self.after_servers(now);
    }
}
