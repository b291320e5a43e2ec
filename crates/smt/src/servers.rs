// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The servers that an endpoint connects to: the live session with each, or the way to the next
//! one.
//!
//! A session that has ended is followed by another when somebody needs it. All callers that wait
//! share one attempt, and all of them learn how it ended. An attempt resolves the server's name
//! anew, and races the addresses that are found ([`race`]). After a failure attempts keep a
//! distance ([`backoff`]).

mod backoff;
mod pool;
mod race;
mod reconnect;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::task::{Poll, Waker};

use smt_proto::{ConnectError, ConnectId, Endpoint, Time};
use smt_wire::SessionIndex;

pub(crate) use reconnect::{Failure, ServerChoice};
use reconnect::{Reconnect, Step};

use pool::Pool;

use crate::builder::Address;
use crate::early_call::EarlyCall;
use crate::error::ErrorKind;

/// A server of an endpoint, or several that serve alike.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct ServerId(u64);

/// All servers of an endpoint.
#[derive(Default)]
pub(crate) struct Servers {
    of: BTreeMap<ServerId, Reconnect>,
    /// Servers that serve alike, and have an id together.
    pools: BTreeMap<ServerId, Pool>,
    next: u64,
    /// When servers are to be looked after although nothing comes.
    due: BTreeSet<(Time, ServerId)>,
    /// Names that are to be resolved.
    to_resolve: Vec<ToResolve>,
    /// Callers that are to look again.
    woken: Vec<Waker>,
}

/// A name that is to be resolved for an attempt.
#[derive(Clone)]
pub(crate) struct ToResolve {
    pub(crate) server: ServerId,
    pub(crate) attempt: u64,
    pub(crate) address: Address,
}

/// A caller that needs the session with a server.
pub(crate) struct Caller<'a> {
    pub(crate) server: ServerId,
    /// The attempt that the caller waits for.
    pub(crate) attempt: &'a mut Option<u64>,
    /// Tries at once, though an attempt has failed just now.
    pub(crate) is_urgent: bool,
    /// Its call, which an attempt that begins now may take along.
    pub(crate) early: Option<&'a EarlyCall>,
    pub(crate) waker: &'a Waker,
}

impl Servers {
    pub(crate) fn add(&mut self, choice: ServerChoice) -> ServerId {
        let id = self.next_id();
        self.of.insert(id, Reconnect::new(choice));
        id
    }

    fn next_id(&mut self) -> ServerId {
        self.next += 1;
        ServerId(self.next)
    }

    /// The last user of a server has gone. Returns its live sessions.
    pub(crate) fn remove(
        &mut self,
        server: ServerId,
        endpoint: &mut Endpoint,
    ) -> Vec<SessionIndex> {
        let sessions = self.sessions(server, endpoint);
        for member in self.members(server) {
            if let Some(mut removed) = self.of.remove(&member) {
                removed.cancel(endpoint);
            }
            self.due.retain(|(_, of)| *of != member);
        }
        self.pools.remove(&server);
        sessions
    }

    /// The live sessions with a server: one at most, unless it is a pool.
    pub(crate) fn sessions(&self, server: ServerId, endpoint: &Endpoint) -> Vec<SessionIndex> {
        let members = self.members(server).into_iter();
        let members = members.filter_map(|member| self.of.get(&member));
        members.filter_map(|server| server.live(endpoint)).collect()
    }

    /// The server is not called any more.
    pub(crate) fn retire_server(&mut self, server: ServerId) {
        for member in self.members(server) {
            if let Some(server) = self.of.get_mut(&member) {
                server.close();
            }
        }
    }

    /// Attempts at a server are given up.
    pub(crate) fn cancel(&mut self, server: ServerId, endpoint: &mut Endpoint) {
        for member in self.members(server) {
            if let Some(server) = self.of.get_mut(&member) {
                server.cancel(endpoint);
                self.woken.append(&mut server.take_waiting());
            }
        }
    }

    /// The live session with a server; an attempt begins if there is none.
    pub(crate) fn poll_session(
        &mut self,
        now: Time,
        endpoint: &mut Endpoint,
        caller: Caller<'_>,
    ) -> Poll<Result<SessionIndex, Failure>> {
        let id = caller.server;
        if !self.pools.is_empty() && self.pools.contains_key(&id) {
            return self.poll_pool(now, endpoint, caller);
        }
        let open = self.of.get_mut(&id).filter(|server| !server.is_closed());
        let Some(server) = open else {
            return Poll::Ready(Err(Failure::of(ConnectError::ShutDown)));
        };
        if let Some(session) = server.live(endpoint) {
            return Poll::Ready(Ok(session));
        }
        if let Some(failure) = server.failure(now, &caller) {
            return Poll::Ready(Err(failure));
        }
        server.take_along(caller.early);
        let step = server.attempt(now, endpoint);
        *caller.attempt = server.wait(caller.waker);
        self.after(id, step);
        // An attempt that has failed at once.
        match self.of.get(&id).and_then(|server| server.failed(*caller.attempt)) {
            Some(failure) => Poll::Ready(Err(failure)),
            None => Poll::Pending,
        }
    }

    /// A name was resolved for an attempt, or not.
    pub(crate) fn resolved(
        &mut self,
        now: Time,
        endpoint: &mut Endpoint,
        of: &ToResolve,
        found: Result<Vec<SocketAddr>, ErrorKind>,
    ) {
        let Some(server) = self.of.get_mut(&of.server) else {
            return;
        };
        let step = server.resolved(now, endpoint, of.attempt, found);
        self.after(of.server, step);
    }

    /// A connect has ended. A session that no server waits for is returned: it is of no use.
    pub(crate) fn finish(
        &mut self,
        now: Time,
        endpoint: &mut Endpoint,
        connect: ConnectId,
        result: Result<SessionIndex, ConnectError>,
    ) -> Option<SessionIndex> {
        let of = self.of.iter_mut().find(|(_, server)| server.waits_for(connect));
        let Some((id, server)) = of else {
            return result.ok();
        };
        let id = *id;
        let step = server.finish(now, endpoint, connect, result);
        self.after(id, step);
        None
    }

    /// The calls that a connect has taken along; it has just ended in a session.
    pub(crate) fn take_early(&mut self, connect: ConnectId) -> Vec<EarlyCall> {
        let mut servers = self.of.values_mut();
        servers.find_map(|server| server.take_early(connect)).unwrap_or_default()
    }

    /// Does what is due.
    pub(crate) fn handle_timeout(&mut self, now: Time, endpoint: &mut Endpoint) {
        while let Some((due, id)) = self.due.first().copied()
            && due <= now
        {
            self.due.pop_first();
            if let Some(server) = self.of.get_mut(&id) {
                let step = server.attempt(now, endpoint);
                self.after(id, step);
            }
        }
    }

    /// When something is due next.
    pub(crate) fn due(&self) -> Option<Time> {
        self.due.first().map(|(due, _)| *due)
    }

    /// This session has no more ids: calls in progress end in it, new ones need another.
    pub(crate) fn retire(&mut self, session: SessionIndex) {
        for server in self.of.values_mut() {
            server.retire(session);
        }
    }

    /// Takes the names that are to be resolved.
    pub(crate) fn take_to_resolve(&mut self) -> Vec<ToResolve> {
        std::mem::take(&mut self.to_resolve)
    }

    /// Takes the wakers of callers that are to look again.
    pub(crate) fn take_woken(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.woken)
    }

    /// All callers are to look again: the endpoint ends.
    pub(crate) fn wake_all(&mut self) {
        for server in self.of.values_mut() {
            self.woken.append(&mut server.take_waiting());
        }
    }

    /// Takes in what a step of a server asks for.
    fn after(&mut self, id: ServerId, step: Step) {
        self.due.retain(|(_, of)| *of != id);
        match step {
            Step::Wait(due) => _ = self.due.insert((due, id)),
            Step::Resolve { attempt, address, due } => {
                self.due.insert((due, id));
                self.to_resolve.push(ToResolve { server: id, attempt, address });
            }
            Step::Ended => {
                if let Some(server) = self.of.get_mut(&id) {
                    self.woken.append(&mut server.take_waiting());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
