// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Client and server for tokio.
//!
//! A future that `block_on` polls drives its endpoint (`leading`), else one task does
//! (`driver::background`); handles are cheap to clone. Every future here may be dropped at any
//! time: a call that is dropped is cancelled, an accept that is dropped loses nothing.

mod leading;
mod spinners;
mod tokio_runtime;

use std::future::{Future, IntoFuture};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use smt_proto::{CloseCode, Time};

use leading::Leading;
pub(crate) use spinners::workers;
pub(crate) use tokio_runtime::spawn_driver;

use crate::driver::{Driver, Guard};
use crate::endpoint_state::{EndpointState, SEND_AGAIN};
use crate::error::{Error, Phase};
use crate::message::Request;
use crate::operation::Operation;
use crate::session::Session;
use crate::shards::Shards;
use crate::statistics::Statistics;

/// A client of one server. It connects anew when its session has ended.
#[derive(Clone, Debug)]
pub struct Client {
    guard: Arc<Guard>,
    server: SocketAddr,
}

impl Client {
    pub(crate) fn new(guard: Arc<Guard>, server: SocketAddr) -> Self {
        Self { guard, server }
    }

    /// Waits until a session with the server is live.
    ///
    /// # Errors
    /// No session came about; the error says why.
    pub async fn connect(&self) -> Result<Session, Error> {
        let mut attempt = None;
        let connected = polled(&self.guard, |state, now, waker| {
            state
                .poll_session(now, &mut attempt, waker)
                .map_ok(|session| (session, state.peer(session)))
        });
        match connected.await {
            Ok((session, Some(peer))) => Ok(Session::new(Arc::clone(&self.guard), session, peer)),
            Ok((_, None)) => Err(Error::new(
                Phase::Connect,
                self.server,
                smt_proto::Refused::NoSession,
            )),
            Err(error) => Err(Error::new(Phase::Connect, self.server, error)),
        }
    }

    /// Calls the server: `client.call(request).deadline(limit).await`.
    /// The body's memory must not change until the message has ended.
    pub fn call(&self, body: impl Into<Bytes>) -> Call {
        Call::new(self.operation(body.into(), false))
    }

    /// Sends a one-way message: `client.send(message).await`.
    /// The body's memory must not change until the message has ended.
    pub fn send(&self, body: impl Into<Bytes>) -> Send {
        Send::new(self.operation(body.into(), true))
    }

    /// The next message that the server has started; `None` once the client is closed. Until the
    /// first call of `accept`, 64 KiB of such messages wait here, and the server sends those beyond
    /// again until then.
    pub async fn accept(&self) -> Option<Request> {
        accept(&self.guard).await
    }

    /// Closes the client at once, for all of its handles: its session and its socket are closed,
    /// calls in progress fail, further ones fail with [`crate::ConnectError::ShutDown`], and
    /// `accept` returns `None`. A full socket is given 100 ms to take what is left to be sent.
    pub async fn close(&self) {
        shut_down(&self.guard, CloseCode::Done).await;
    }

    /// This side's address.
    #[must_use]
    pub fn local_address(&self) -> SocketAddr {
        self.guard.driver().local_address()
    }

    /// Returns the counts since the endpoint was opened.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.guard.driver().statistics()
    }

    fn operation(&self, body: Bytes, is_one_way: bool) -> Operation {
        Operation::new(Arc::clone(&self.guard), self.server, None, body, is_one_way)
    }
}

/// A server.
#[derive(Clone, Debug)]
pub struct Server {
    guard: Arc<Guard>,
}

impl Server {
    pub(crate) fn new(guard: Arc<Guard>) -> Self {
        Self { guard }
    }

    /// The next request or one-way message; `None` once the server is shut down. Requests of a
    /// client wait while its unacknowledged replies take more than a quarter of
    /// [`crate::Config::memory_max`], or more than the unacknowledged replies of all clients leave
    /// of that memory, if this is less. A client with at most 60,000 bytes of unacknowledged
    /// replies waits only while those of all clients together take five quarters of the memory, and
    /// a client without any while they take six quarters.
    pub async fn accept(&self) -> Option<Request> {
        accept(&self.guard).await
    }

    /// The address that clients call.
    #[must_use]
    pub fn local_address(&self) -> SocketAddr {
        self.guard.driver().local_address()
    }

    /// Returns the counts since the endpoint was opened.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.guard.driver().statistics()
    }

    /// Refuses new requests, waits until those in progress are answered and their replies
    /// acknowledged, but at most for `limit`, and closes all sessions and the socket, for all
    /// handles of this server. When it returns, the address may be bound again (the address of
    /// several shards when the last of them has been shut down). From then on `accept` returns
    /// `None`, and replies and calls of sessions fail with [`crate::ConnectError::ShutDown`]. A
    /// full socket is given 100 ms more to take what is left to be sent.
    pub async fn shutdown(&self, limit: Duration) {
        shut_down_all(std::slice::from_ref(self), limit).await;
    }
}

impl Shards<Server> {
    /// Shuts all shards down together, see [`Server::shutdown`]: each tells new clients that it
    /// takes none until the last of them has finished.
    pub async fn shutdown(&self, limit: Duration) {
        shut_down_all(self, limit).await;
    }
}

async fn shut_down_all(shards: &[Server], limit: Duration) {
    for shard in shards {
        let driver = shard.guard.driver();
        driver.change(|state, now| state.drain(now));
    }
    let are_finished = async {
        for shard in shards {
            polled(&shard.guard, |state, _, waker| state.poll_finished(waker)).await;
        }
    };
    // Past the limit what is left is cut off.
    let _ = tokio::time::timeout(limit, are_finished).await;
    for shard in shards {
        shut_down(&shard.guard, CloseCode::ShuttingDown).await;
    }
}

/// A call that has not been made yet: `.await` makes it.
#[must_use = "a call is made by `.await`"]
#[derive(Debug)]
pub struct Call(Operation);

impl Call {
    pub(crate) fn new(operation: Operation) -> Self {
        Self(operation)
    }

    /// Gives up after this time. The server sees what is left of it.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.0.deadline = Some(deadline);
        self
    }
}

impl IntoFuture for Call {
    type Output = Result<Bytes, Error>;
    type IntoFuture = Calling;

    fn into_future(self) -> Calling {
        Calling {
            operation: self.0,
            leading: Leading::default(),
        }
    }
}

/// A call in progress. Dropping it cancels the call.
#[must_use = "futures do nothing unless polled"]
#[derive(Debug)]
pub struct Calling {
    operation: Operation,
    leading: Leading,
}

impl Future for Calling {
    type Output = Result<Bytes, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { operation, leading } = &mut *self;
        poll_operation(operation, leading, context)
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        self.leading.end(self.operation.driver());
    }
}

/// A one-way message that has not been sent yet: `.await` sends it.
#[must_use = "a message is sent by `.await`"]
#[derive(Debug)]
pub struct Send(Operation);

impl Send {
    pub(crate) fn new(operation: Operation) -> Self {
        Self(operation)
    }

    /// Gives up after this time.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.0.deadline = Some(deadline);
        self
    }
}

impl IntoFuture for Send {
    type Output = Result<(), Error>;
    type IntoFuture = Sending;

    fn into_future(self) -> Sending {
        Sending {
            operation: self.0,
            leading: Leading::default(),
        }
    }
}

/// A one-way message in progress. Dropping it gives the message up.
#[must_use = "futures do nothing unless polled"]
#[derive(Debug)]
pub struct Sending {
    operation: Operation,
    leading: Leading,
}

impl Future for Sending {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { operation, leading } = &mut *self;
        poll_operation(operation, leading, context).map_ok(|_| ())
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.leading.end(self.operation.driver());
    }
}

/// Ends the endpoint, and waits until its driver has let go of the socket.
async fn shut_down(guard: &Guard, code: CloseCode) {
    let driver = guard.driver();
    driver.begin_shutdown(code);
    // The driver sends, too; but its runtime may run no tasks at the moment.
    while !driver.has_sent_the_rest() {
        tokio::time::sleep(SEND_AGAIN).await;
    }
    driver.release();
    let is_released = polled(guard, |state, _, waker| state.poll_released(waker));
    // A runtime that runs no tasks at the moment holds nobody up: it lets go when it runs again.
    let _ = tokio::time::timeout(RELEASED_WITHIN, is_released).await;
}

fn poll_operation(
    operation: &mut Operation,
    leading: &mut Leading,
    context: &Context<'_>,
) -> Poll<Result<Bytes, Error>> {
    let driver = Arc::clone(operation.driver());
    leading.poll(&driver, context, |waker| operation.poll(waker))
}

async fn accept(guard: &Arc<Guard>) -> Option<Request> {
    if let Some(incoming) = guard.driver().accept_queued() {
        return Some(Request::new(Arc::clone(guard), incoming));
    }
    let mut place = AcceptPlace {
        guard,
        ticket: None,
    };
    let ticket = &mut place.ticket;
    let incoming = polled(guard, |state, _, waker| {
        state.poll_accept_several(ticket, waker)
    })
    .await?;
    Some(Request::new(Arc::clone(guard), incoming))
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

/// A future of anything that waits in the endpoint's state.
async fn polled<T>(
    guard: &Guard,
    mut poll: impl FnMut(&mut EndpointState, Time, &Waker) -> Poll<T>,
) -> T {
    let driver = guard.driver();
    let mut led = Led {
        driver,
        leading: Leading::default(),
    };
    std::future::poll_fn(|context| {
        led.leading.poll(driver, context, |waker| {
            driver.change(|state, now| poll(state, now, waker))
        })
    })
    .await
}

/// A lead that ends with the future that has it.
struct Led<'a> {
    driver: &'a Driver,
    leading: Leading,
}

impl Drop for Led<'_> {
    fn drop(&mut self) {
        self.leading.end(self.driver);
    }
}

/// A driver lets go of the socket when its task runs next; this is long for it.
const RELEASED_WITHIN: Duration = Duration::from_secs(1);
