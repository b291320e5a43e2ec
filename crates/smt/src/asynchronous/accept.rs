// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages of peers, for tasks.

use std::future::Future;
use std::sync::Arc;

use super::polled;
use crate::driver::Guard;
use crate::endpoint_state::EndpointState;
use crate::message::{Incoming, Request};

/// The next message of a peer.
pub(super) async fn accept(guard: &Arc<Guard>) -> Option<Incoming> {
    if let Some(delivered) = guard.driver().accept_queued() {
        return Some(Incoming::new(Arc::clone(guard), delivered));
    }
    let mut place = AcceptPlace { guard, ticket: None };
    let ticket = &mut place.ticket;
    let delivered =
        polled(guard.driver(), |state, now, waker| state.poll_accept_several(now, ticket, waker))
            .await?;
    Some(Incoming::new(Arc::clone(guard), delivered))
}

/// The next request of a peer; one-way messages before it are dropped.
pub(super) async fn accept_request(guard: &Arc<Guard>) -> Option<Request> {
    loop {
        match accept(guard).await? {
            Incoming::Request(request) => return Some(request),
            Incoming::Message(message) => guard.driver().drop_message(message.peer().address),
        }
    }
}

/// An acceptor's place in the queue. An accept that is dropped leaves it, and passes on what it was
/// woken for.
struct AcceptPlace<'a> {
    guard: &'a Guard,
    ticket: Option<u64>,
}

impl Drop for AcceptPlace<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            let driver = self.guard.driver();
            driver.change(|state, _| state.stop_accepting(ticket));
        }
    }
}

/// A task's place among those that wait for an event of an endpoint, which it leaves on drop.
struct WaitingPlace<'a, L: Fn(&mut EndpointState, u64)> {
    guard: &'a Guard,
    ticket: Option<u64>,
    leave: L,
}

impl<L: Fn(&mut EndpointState, u64)> Drop for WaitingPlace<'_, L> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.guard.driver().look(|state| (self.leave)(state, ticket));
        }
    }
}

impl Request {
    /// Waits until the server begins to close ([`Server::close`](crate::Server::close)), or the
    /// session of this request, whose client is accepted no more
    /// ([`Distrusted::Finish`](crate::Distrusted::Finish)). It then waits for this request to be
    /// answered, the server within its limit: a handler without an end of its own, a watch for
    /// example, selects on it, and answers.
    ///
    /// The sending of a part must be within the select, and not in the arm of another future: it
    /// waits as long as the reader takes nothing, and `closing` would not be looked at meanwhile.
    ///
    /// ```no_run
    /// # async fn next_event() -> smt::Bytes { smt::Bytes::new() }
    /// # async fn watch(request: smt::Request) -> Result<(), smt::Error> {
    /// let mut events = request.part_sender();
    /// let send_all = async {
    ///     loop {
    ///         events.send(next_event().await).await?;
    ///     }
    /// };
    /// tokio::select! {
    ///     failed = send_all => failed,
    ///     () = request.closing() => request.reply("the server closes"),
    /// }
    /// # }
    /// ```
    ///
    /// A handler that reads the parts of a request selects on it as well: the caller may take any
    /// time for the next one.
    pub fn closing(&self) -> impl Future<Output = ()> + Send + use<> {
        let (guard, session) = (Arc::clone(&self.guard), self.rpc.session);
        async move {
            let leave = EndpointState::stop_waiting_for_closing;
            let mut place = WaitingPlace { guard: &guard, ticket: None, leave };
            let ticket = &mut place.ticket;
            polled(guard.driver(), |state, _, waker| state.poll_closing(session, ticket, waker))
                .await;
        }
    }

    /// Waits until the caller has given up, or its session has ended: a reply would not be read any
    /// more. To be selected against the work:
    ///
    /// ```no_run
    /// # async fn work() {}
    /// # async fn serve(request: smt::Request) -> Result<(), smt::Error> {
    /// tokio::select! {
    ///     () = work() => request.reply("done"),
    ///     () = request.cancelled() => Ok(()),
    /// }
    /// # }
    /// ```
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + use<> {
        let (guard, rpc) = (Arc::clone(&self.guard), self.rpc);
        async move {
            let leave =
                |state: &mut EndpointState, ticket| state.stop_waiting_for_cancel(rpc, ticket);
            let mut place = WaitingPlace { guard: &guard, ticket: None, leave };
            let ticket = &mut place.ticket;
            polled(guard.driver(), |state, _, waker| state.poll_cancelled(rpc, ticket, waker))
                .await;
        }
    }
}
