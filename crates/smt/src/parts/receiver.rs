// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parts of a reply at its caller, and those of a request at its server.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Poll, Waker, ready};

use bytes::Bytes;
use smt_proto::{RpcId, Time};

use crate::driver::{Driver, Guard};
use crate::endpoint_state::EndpointState;
use crate::error::{Error, ErrorKind, Phase};
use crate::operation::Operation;
use crate::reply::Reply;
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// The parts of a reply, in order, and then the reply. Dropping it cancels the call.
///
/// ```no_run
/// # async fn list(client: smt::Client) -> Result<(), smt::Error> {
/// let mut rows = client.call("every row").reply_in_parts().await?;
/// while let Some(row) = rows.next_part().await? {
///     println!("{} B", row.len());
/// }
/// let last = rows.reply().await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it cancels the call"]
pub struct ReplyParts {
    operation: Operation,
    rpc: RpcId,
    /// Parts that were taken together.
    parts: VecDeque<Bytes>,
    /// How the call has ended, once it has.
    end: Option<Result<Reply, Error>>,
}

impl ReplyParts {
    /// The parts of a call that has begun.
    pub(crate) fn new(operation: Operation, rpc: RpcId) -> Self {
        Self { operation, rpc, parts: VecDeque::new(), end: None }
    }

    pub(crate) fn driver(&self) -> &Arc<Driver> {
        self.operation.driver()
    }

    /// The next part with the endpoint's lock held; `None` once all were taken and the reply has
    /// come.
    pub(crate) fn poll_part_in(
        &mut self,
        state: &mut EndpointState,
        now: Time,
        waker: &Waker,
    ) -> Poll<Result<Option<Bytes>, Error>> {
        if let Some(part) = self.parts.pop_front() {
            return Poll::Ready(Ok(Some(part)));
        }
        if let Some(end) = &self.end {
            return Poll::Ready(end.as_ref().map(|_| None).map_err(Error::clone));
        }
        match ready!(state.poll_take_parts(self.rpc, &mut self.parts, waker)) {
            Ok(_) => Poll::Ready(Ok(self.parts.pop_front())),
            // The call is over: its outcome is there.
            Err(_) => {
                let end = ready!(self.operation.poll_in(state, now, waker));
                let told = end.as_ref().map(|_| None).map_err(Error::clone);
                self.end = Some(end);
                Poll::Ready(told)
            }
        }
    }

    /// The reply with the endpoint's lock held; parts before it are dropped.
    pub(crate) fn poll_reply_in(
        &mut self,
        state: &mut EndpointState,
        now: Time,
        waker: &Waker,
    ) -> Poll<Result<Reply, Error>> {
        while ready!(self.poll_part_in(state, now, waker))?.is_some() {}
        // All parts are taken, so the call has ended, and well.
        self.end.take().map_or(Poll::Pending, Poll::Ready)
    }

    /// Whether the call has failed, as an error has told.
    pub(crate) fn has_failed(&self) -> bool {
        matches!(self.end, Some(Err(_)))
    }

    /// Waits in this thread for the next part: `None` once all were taken, and the reply has come.
    ///
    /// # Errors
    /// The call has failed; [`Error::execution`] tells whether the request may have run.
    pub fn blocking_next_part(&mut self) -> Result<Option<Bytes>, Error> {
        let driver = Arc::clone(self.driver());
        driver.block_on(|state, now, waker| self.poll_part_in(state, now, waker))
    }

    /// Waits in this thread for the reply. Parts that were not taken are dropped.
    ///
    /// # Errors
    /// As of [`Self::blocking_next_part`].
    pub fn blocking_reply(mut self) -> Result<Reply, Error> {
        let driver = Arc::clone(self.driver());
        driver.block_on(|state, now, waker| self.poll_reply_in(state, now, waker))
    }
}

impl fmt::Debug for ReplyParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("ReplyParts");
        debug.field("rpc", &self.rpc).finish_non_exhaustive()
    }
}

/// The parts of a request, in order, for one reader at a time. They end with the request: answer
/// that when they are read, or before.
#[derive(Debug)]
pub struct RequestParts {
    guard: Arc<Guard>,
    rpc: RpcId,
    peer: SocketAddr,
    /// The place of a request's parts, if it has some: they go back there on drop.
    place: Option<Arc<PartsPlace>>,
    /// Parts that were taken together; `None` while another reader has them.
    taken: Option<Taken>,
    /// Whether an error has told that there are no more.
    has_failed: bool,
}

/// The parts of a request that were taken, and are to be read by one reader at a time.
#[derive(Debug)]
pub(crate) struct PartsPlace(Mutex<Option<Taken>>);

/// Parts that were taken together.
#[derive(Debug)]
struct Taken {
    parts: VecDeque<Bytes>,
    /// Whether no more follow.
    has_ended: bool,
}

impl PartsPlace {
    /// The place of a request that has parts.
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Some(Taken::none(false))))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Taken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    const fn none(has_ended: bool) -> Self {
        Self { parts: VecDeque::new(), has_ended }
    }
}

impl RequestParts {
    /// The reader of a request's parts, which are none without a place.
    pub(crate) fn new(
        guard: Arc<Guard>,
        rpc: RpcId,
        peer: SocketAddr,
        place: Option<Arc<PartsPlace>>,
    ) -> Self {
        let taken = match &place {
            Some(place) => place.lock().take(),
            None => Some(Taken::none(true)),
        };
        Self { guard, rpc, peer, place, taken, has_failed: false }
    }

    /// A part that was taken before.
    fn next_taken(&mut self) -> Option<Bytes> {
        self.taken.as_mut()?.parts.pop_front()
    }

    pub(crate) fn driver(&self) -> &Arc<Driver> {
        self.guard.driver()
    }

    /// The next part with the endpoint's lock held; `None` once all were taken.
    pub(crate) fn poll_part_in(
        &mut self,
        state: &mut EndpointState,
        waker: &Waker,
    ) -> Poll<Result<Option<Bytes>, Error>> {
        if self.taken.is_none() {
            self.taken = self.place.as_ref().and_then(|place| place.lock().take());
        }
        let Some(taken) = &mut self.taken else {
            self.has_failed = true;
            return Poll::Ready(Err(Error::new(Phase::Part, self.peer, ErrorKind::PartsAreRead)));
        };
        if let Some(part) = taken.parts.pop_front() {
            return Poll::Ready(Ok(Some(part)));
        }
        if taken.has_ended {
            return Poll::Ready(Ok(None));
        }
        let ended = ready!(state.poll_take_parts(self.rpc, &mut taken.parts, waker));
        self.has_failed = ended.is_err();
        taken.has_ended = ended
            .map_err(|refused| Error::new(Phase::Part, self.peer, state.why_refused(refused)))?;
        Poll::Ready(Ok(taken.parts.pop_front()))
    }

    /// Whether reading has failed, as an error has told.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Waits in this thread for the next part: `None` once all were taken.
    ///
    /// # Errors
    /// The request was answered, its caller has given up, or another reader of the request's parts
    /// is there ([`ErrorKind::PartsAreRead`]).
    pub fn blocking_next_part(&mut self) -> Result<Option<Bytes>, Error> {
        let driver = Arc::clone(self.driver());
        driver.block_on(|state, _, waker| self.poll_part_in(state, waker))
    }
}

/// Parts that were taken and not read are for the next reader.
impl Drop for RequestParts {
    fn drop(&mut self) {
        if let (Some(place), Some(taken)) = (&self.place, self.taken.take()) {
            *place.lock() = Some(taken);
        }
    }
}

#[cfg(feature = "async")]
mod tasks {
    use super::*;
    use crate::asynchronous::polled;

    impl ReplyParts {
        /// Waits for the next part: `None` once all were taken, and the reply has come. Dropping
        /// the future loses nothing.
        ///
        /// # Errors
        /// The call has failed; [`Error::execution`] tells whether the request may have run.
        pub async fn next_part(&mut self) -> Result<Option<Bytes>, Error> {
            if let Some(part) = self.parts.pop_front() {
                return Ok(Some(part));
            }
            let driver = Arc::clone(self.driver());
            polled(&driver, |state, now, waker| self.poll_part_in(state, now, waker)).await
        }

        /// Waits for the reply. Parts that were not taken are dropped.
        ///
        /// # Errors
        /// As of [`Self::next_part`].
        pub async fn reply(mut self) -> Result<Reply, Error> {
            let driver = Arc::clone(self.driver());
            polled(&driver, |state, now, waker| self.poll_reply_in(state, now, waker)).await
        }
    }

    impl RequestParts {
        /// Waits for the next part: `None` once all were taken. Dropping the future loses nothing.
        ///
        /// # Errors
        /// The request was answered, its caller has given up, or another reader of the request's
        /// parts is there ([`ErrorKind::PartsAreRead`]).
        pub async fn next_part(&mut self) -> Result<Option<Bytes>, Error> {
            if let Some(part) = self.next_taken() {
                return Ok(Some(part));
            }
            let driver = Arc::clone(self.driver());
            polled(&driver, |state, _, waker| self.poll_part_in(state, waker)).await
        }
    }
}
