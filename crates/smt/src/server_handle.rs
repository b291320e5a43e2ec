// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server of an endpoint, as long as somebody uses it.

use std::sync::Arc;
use std::task::{Poll, Waker, ready};

use smt_proto::{Refused, Time};

use crate::driver::Guard;
use crate::endpoint_state::EndpointState;
use crate::error::{Error, PeerPlace, Phase};
use crate::servers::{Caller, Failure, ServerChoice, ServerId};
use crate::session::Session;

/// A server that an endpoint connects to. The endpoint forgets the server when nobody uses it any
/// more.
pub(crate) struct ServerHandle {
    guard: Arc<Guard>,
    id: ServerId,
    name: Arc<str>,
    /// Whether the endpoint is for this server alone, and ends with it.
    is_only: bool,
}

impl ServerHandle {
    /// A server of an endpoint that may have others. Nothing is sent yet.
    pub(crate) fn new(guard: Arc<Guard>, choice: ServerChoice) -> Arc<Self> {
        Self::add(guard, choice, false)
    }

    /// The only server of an endpoint.
    pub(crate) fn only(guard: Arc<Guard>, choice: ServerChoice) -> Arc<Self> {
        Self::add(guard, choice, true)
    }

    /// Several servers that serve alike, of an endpoint that may have others.
    pub(crate) fn pool(guard: Arc<Guard>, choices: Vec<ServerChoice>) -> Arc<Self> {
        let names: Vec<_> = choices.iter().map(|choice| choice.address.to_string()).collect();
        let id = guard.driver().look(|state| state.servers.add_pool(choices));
        Arc::new(Self { guard, id, name: names.join(" or ").into(), is_only: false })
    }

    fn add(guard: Arc<Guard>, choice: ServerChoice, is_only: bool) -> Arc<Self> {
        let name = choice.address.to_string().into();
        let id = guard.driver().look(|state| state.servers.add(choice));
        Arc::new(Self { guard, id, name, is_only })
    }

    pub(crate) fn is_only(&self) -> bool {
        self.is_only
    }

    pub(crate) fn guard(&self) -> &Arc<Guard> {
        &self.guard
    }

    pub(crate) fn id(&self) -> ServerId {
        self.id
    }

    /// The server as it was named.
    pub(crate) fn name(&self) -> PeerPlace {
        PeerPlace::Named(Arc::clone(&self.name))
    }

    /// The error of a connect that has failed so.
    pub(crate) fn error(&self, failure: Failure) -> Error {
        let place = failure.address.map_or_else(|| self.name(), Into::into);
        Error::new(Phase::Connect, place, failure.kind)
    }

    /// Connects, for `block_on` and its like: an attempt begins at once, though the last one has
    /// failed just now.
    pub(crate) fn poll_connect(
        self: &Arc<Self>,
        attempt: &mut Option<u64>,
    ) -> impl FnMut(&mut EndpointState, Time, &Waker) -> Poll<Result<Session, Error>> {
        move |state, now, waker| {
            let caller = Caller { server: self.id, attempt, is_urgent: true, early: None, waker };
            let index = match ready!(state.poll_session(now, caller)) {
                Ok(index) => index,
                Err(failure) => return Poll::Ready(Err(self.error(failure))),
            };
            Poll::Ready(match state.peer(index) {
                Some(peer) => Ok(Session::with(self, index, peer)),
                None => Err(Error::new(Phase::Connect, self.name(), Refused::NoSession)),
            })
        }
    }
}

impl ServerHandle {
    /// Ready when a message would begin at once.
    pub(crate) fn poll_ready(
        &self,
        attempt: &mut Option<u64>,
    ) -> impl FnMut(&mut EndpointState, Time, &Waker) -> Poll<Result<(), Error>> {
        move |state, now, waker| {
            let caller = Caller { server: self.id, attempt, is_urgent: false, early: None, waker };
            let polled = state.poll_ready(now, caller);
            polled.map_err(|failure| self.error(failure))
        }
    }
}

impl Drop for ServerHandle {
    fn drop(&mut self) {
        if !self.is_only {
            let driver = self.guard.driver();
            driver.change(|state, now| state.forget_server(now, self.id));
        }
    }
}

impl std::fmt::Debug for ServerHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("name", &self.name).field("endpoint", &self.guard).finish()
    }
}
