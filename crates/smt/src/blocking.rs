// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Client and server for threads, without a runtime.
//!
//! The protocol runs in the thread that waits: an unloaded call is one send and one receive.
//! Handles are cheap to clone and may be used from many threads at once.
//!
//! ```
//! use smt::Builder;
//! use smt::pki::EphemeralCa;
//!
//! let authority = EphemeralCa::new()?;
//! let server = Builder::new()
//!     .identity(authority.server(&["localhost"])?)
//!     .bind_blocking("127.0.0.1:0")?;
//! let address = server.local_address();
//! std::thread::spawn(move || {
//!     while let Some(request) = server.accept() {
//!         let body = request.body().clone();
//!         // A caller that has given up is no reason to stop.
//!         if let Err(error) = request.reply(body) {
//!             eprintln!("{error}");
//!         }
//!     }
//! });
//!
//! let client = Builder::new()
//!     .trust(authority.trust()?)
//!     .server_name("localhost")
//!     .connect_blocking(address)?;
//! assert_eq!(client.call("hello").wait()?, "hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use smt_proto::CloseCode;

use crate::driver::Guard;
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
    pub fn connect(&self) -> Result<Session, Error> {
        let mut attempt = None;
        let connected = self.guard.driver().block_on(|state, now, waker| {
            state
                .poll_session(now, &mut attempt, waker)
                .map_ok(|session| (session, state.peer(session)))
        });
        match connected {
            Ok((session, Some(peer))) => Ok(Session::new(Arc::clone(&self.guard), session, peer)),
            Ok((_, None)) => Err(Error::new(
                Phase::Connect,
                self.server,
                smt_proto::Refused::NoSession,
            )),
            Err(error) => Err(Error::new(Phase::Connect, self.server, error)),
        }
    }

    /// Calls the server.
    /// The body's memory must not change until the message has ended.
    pub fn call(&self, body: impl Into<Bytes>) -> Call {
        Call::new(self.operation(body.into(), false))
    }

    /// Sends a one-way message.
    /// The body's memory must not change until the message has ended.
    pub fn send(&self, body: impl Into<Bytes>) -> Send {
        Send::new(self.operation(body.into(), true))
    }

    /// The next message that the server has started; `None` once the client is closed. Until the
    /// first call of `accept`, 64 KiB of such messages wait here, and the server sends those beyond
    /// again until then.
    #[must_use]
    pub fn accept(&self) -> Option<Request> {
        accept(&self.guard)
    }

    /// Closes the client at once, for all of its handles: its session and its socket are closed,
    /// calls in progress fail, further ones fail with [`crate::ConnectError::ShutDown`], and
    /// `accept` returns `None`. A full socket is given 100 ms to take what is left to be sent.
    pub fn close(&self) {
        self.guard.driver().shut_down(CloseCode::Done);
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
    #[must_use]
    pub fn accept(&self) -> Option<Request> {
        accept(&self.guard)
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
    pub fn shutdown(&self, limit: Duration) {
        shut_down(std::slice::from_ref(self), limit);
    }

    /// Waits until no request is in progress, at most for this time.
    fn wait_until_finished(&self, limit: Duration) {
        let driver = self.guard.driver();
        let end = driver.now() + limit;
        let mut alarm = None;
        driver.block_on(|state, now, waker| {
            let polled = state.poll_finished(waker);
            if polled.is_ready() || now >= end {
                state.clear_alarm(end, &mut alarm);
                return Poll::Ready(());
            }
            state.set_alarm(end, &mut alarm, waker);
            polled
        });
    }
}

impl Shards<Server> {
    /// Shuts all shards down together, see [`Server::shutdown`]: each tells new clients that it
    /// takes none until the last of them has finished.
    pub fn shutdown(&self, limit: Duration) {
        shut_down(self, limit);
    }
}

fn shut_down(shards: &[Server], limit: Duration) {
    let began = Instant::now();
    let drivers = || shards.iter().map(|shard| shard.guard.driver());
    drivers().for_each(|driver| driver.change(|state, now| state.drain(now)));
    for shard in shards {
        // Those that nobody waits for yet are looked after nevertheless
        // (`driver::background_thread`).
        shard.wait_until_finished(limit.saturating_sub(began.elapsed()));
    }
    drivers().for_each(|driver| driver.shut_down(CloseCode::ShuttingDown));
}

/// A call that has not been made yet: [`Call::wait`] makes it.
#[must_use = "a call is made by `wait`"]
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

    /// Calls, and waits for the reply.
    ///
    /// # Errors
    /// There is no reply; [`Error::execution`] tells whether the request may have run.
    pub fn wait(mut self) -> Result<Bytes, Error> {
        let driver = Arc::clone(self.0.driver());
        driver.block_on(|state, now, waker| self.0.poll_in(state, now, waker))
    }
}

/// A one-way message that has not been sent yet: [`Send::wait`] sends it.
#[must_use = "a message is sent by `wait`"]
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

    /// Sends, and waits until the peer has accepted the message for delivery.
    ///
    /// # Errors
    /// It was not delivered, or that is not known.
    pub fn wait(mut self) -> Result<(), Error> {
        let driver = Arc::clone(self.0.driver());
        driver
            .block_on(|state, now, waker| self.0.poll_in(state, now, waker))
            .map(|_| ())
    }
}

fn accept(guard: &Arc<Guard>) -> Option<Request> {
    let mut ticket = None;
    let incoming = guard
        .driver()
        .block_on(|state, _, waker| state.poll_accept(&mut ticket, waker))?;
    Some(Request::new(Arc::clone(guard), incoming))
}
