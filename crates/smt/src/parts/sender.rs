// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The sender of the parts of a request, or of those of a reply.

use std::sync::Arc;
use std::task::{Poll, Waker, ready};

use smt_proto::{Body, Refused, RpcId, Time};

use crate::driver::{Driver, Guard};
use crate::endpoint_state::{CallSlot, EndpointState, OutgoingPart};
use crate::error::{Error, PeerPlace, Phase};

/// Sends the parts of a request, until [`Self::finish`], or those of a reply, which
/// [`Request::reply`](crate::Request::reply) ends.
///
/// Each part arrives as it was sent, in order, and is repeated until it has arrived. A sender of a
/// request's parts that is dropped before `finish` gives the call up, so that a request which was
/// cut short does not look whole.
#[derive(Debug)]
pub struct PartSender {
    guard: Arc<Guard>,
    rpc: RpcId,
    peer: PeerPlace,
    /// Bytes of the longest part that the peer takes.
    part_max: usize,
    /// The end of the call whose request's parts these are, until they are ended.
    call: Option<CallSlot>,
}

/// The peer that reads the parts which are sent.
pub(crate) struct PartReader {
    pub(crate) place: PeerPlace,
    /// Bytes of the longest part that it takes.
    pub(crate) part_max: usize,
}

impl PartSender {
    /// The sender of the parts of a request, with the end of its call.
    pub(crate) fn of_request(
        guard: Arc<Guard>,
        rpc: RpcId,
        peer: PartReader,
        call: CallSlot,
    ) -> Self {
        let PartReader { place: peer, part_max } = peer;
        Self { guard, rpc, peer, part_max, call: Some(call) }
    }

    /// The sender of the parts of a reply.
    pub(crate) fn of_reply(guard: Arc<Guard>, rpc: RpcId, peer: PartReader) -> Self {
        let PartReader { place: peer, part_max } = peer;
        Self { guard, rpc, peer, part_max, call: None }
    }

    pub(crate) fn driver(&self) -> &Arc<Driver> {
        self.guard.driver()
    }

    /// Bytes of the longest part that the peer takes.
    #[must_use]
    pub fn part_max(&self) -> usize {
        self.part_max
    }

    /// Sends a part with the endpoint's lock held, once there is room for it.
    pub(crate) fn poll_send_in(
        &mut self,
        state: &mut EndpointState,
        now: Time,
        body: &Body,
        waker: &Waker,
    ) -> Poll<Result<(), Error>> {
        let (body, more) = (body.clone(), true);
        self.poll_in(state, now, OutgoingPart { body, more }, waker)
    }

    /// Ends the parts of a request, with the endpoint's lock held. Those of a reply end with it.
    pub(crate) fn poll_finish_in(
        &mut self,
        state: &mut EndpointState,
        now: Time,
        waker: &Waker,
    ) -> Poll<Result<(), Error>> {
        if self.call.is_none() {
            return Poll::Ready(Ok(()));
        }
        let (body, more) = (Body::default(), false);
        let ended = ready!(self.poll_in(state, now, OutgoingPart { body, more }, waker));
        let ended = match ended {
            Err(_) if self.is_answered() => Ok(()),
            ended => ended,
        };
        if ended.is_ok() {
            self.call = None;
        }
        Poll::Ready(ended)
    }

    /// Whether the call has its reply, which does not wait for further parts.
    fn is_answered(&self) -> bool {
        let end = self.call.as_ref().and_then(|call| call.look(Result::is_ok));
        end == Some(true)
    }

    /// Why a part was not taken: the failure of the call, if it has one.
    fn error(&self, state: &EndpointState, refused: Refused) -> Error {
        let failure = self.call.as_ref().and_then(|call| call.look(|end| end.clone().err()));
        let peer = state.peer(self.rpc.session);
        let place = peer.map_or_else(|| self.peer.clone(), |peer| peer.address.into());
        match failure.flatten() {
            Some(failure) => Error::new(Phase::Call, place, failure),
            None => Error::new(Phase::Part, place, state.why_refused(refused)),
        }
    }

    fn poll_in(
        &mut self,
        state: &mut EndpointState,
        now: Time,
        part: OutgoingPart,
        waker: &Waker,
    ) -> Poll<Result<(), Error>> {
        let sent = ready!(state.poll_send_part(now, self.rpc, part, waker));
        Poll::Ready(sent.map_err(|refused| self.error(state, refused)))
    }

    /// Sends a part: waits in this thread until its reader has room for it. Returns when the part
    /// is queued.
    ///
    /// # Errors
    /// The part is longer than [`Self::part_max`], or the call is over. A call that has failed
    /// gives its own error. One that has its reply already, which a server may send before it has
    /// read all parts, gives [`ErrorKind::CallOver`](crate::ErrorKind::CallOver): read the reply.
    pub fn blocking_send(&mut self, part: impl Into<Body>) -> Result<(), Error> {
        let (driver, part) = (Arc::clone(self.driver()), part.into());
        driver.block_on(|state, now, waker| self.poll_send_in(state, now, &part, waker))
    }

    /// Ends the parts of a request; those of a reply end with it. The parts of a call that has its
    /// reply have ended.
    ///
    /// # Errors
    /// The call has failed: its own error, as of [`Self::blocking_send`].
    pub fn blocking_finish(mut self) -> Result<(), Error> {
        let driver = Arc::clone(self.driver());
        driver.block_on(|state, now, waker| self.poll_finish_in(state, now, waker))
    }
}

#[cfg(feature = "async")]
mod tasks {
    use super::*;
    use crate::asynchronous::polled;

    impl PartSender {
        /// Sends a part: waits until its reader has room for it. Ready when the part is queued. A
        /// future that is dropped before has sent nothing.
        ///
        /// # Errors
        /// The part is longer than [`Self::part_max`], or the call is over. A call that has failed
        /// gives its own error. One that has its reply already, which a server may send before it
        /// has read all parts, gives [`ErrorKind::CallOver`](crate::ErrorKind::CallOver): read
        /// the reply.
        pub async fn send(&mut self, part: impl Into<Body>) -> Result<(), Error> {
            let (driver, part) = (Arc::clone(self.driver()), part.into());
            polled(&driver, |state, now, waker| self.poll_send_in(state, now, &part, waker)).await
        }

        /// Ends the parts of a request; those of a reply end with it. The parts of a call that has
        /// its reply have ended.
        ///
        /// # Errors
        /// The call has failed: its own error, as of [`Self::send`].
        pub async fn finish(mut self) -> Result<(), Error> {
            let driver = Arc::clone(self.driver());
            polled(&driver, |state, now, waker| self.poll_finish_in(state, now, waker)).await
        }
    }
}

impl Drop for PartSender {
    fn drop(&mut self) {
        if self.call.is_some() {
            let rpc = self.rpc;
            self.driver().change(|state, now| state.cut_short(now, rpc));
        }
    }
}
