// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls and one-way messages, for threads.

use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use smt_proto::{Metadata, PartMarks};

use crate::error::Error;
use crate::operation::{Operation, begun};
use crate::operation_options::operation_options;
use crate::parts::{PartSender, ReplyParts};
use crate::reply::Reply;
use crate::retry::Retry;

/// A call that has not been made yet: [`CallBuilder::wait`] makes it.
#[must_use = "a call is made by `wait`"]
#[derive(Debug)]
pub struct CallBuilder(Operation);

operation_options!(CallBuilder, deadline: "Gives up after this time. The server sees what is left of it.");

impl CallBuilder {
    /// Lets the request leave with the first flight of a new session, if this call is what connects
    /// and the server's ticket permits early data ([`Builder::tickets`](crate::Builder::tickets)):
    /// its reply then comes after one round trip.
    ///
    /// The request may run twice: if its connection comes to nothing, the request is sent again
    /// though it may have run. It has no forward secrecy. Where there is a session, no ticket, or
    /// no early data, it changes nothing. A call in parts, or in a pool, is never early.
    pub fn early_data(mut self) -> Self {
        self.0.may_be_early = true;
        self
    }

    /// Calls, and waits for the reply's body.
    ///
    /// # Errors
    /// There is no reply; [`Error::execution`] tells whether the request may have run.
    pub fn wait(self) -> Result<Bytes, Error> {
        self.wait_reply().map(|reply| reply.body)
    }

    /// The same for the whole reply: its metadata too.
    ///
    /// # Errors
    /// As of [`Self::wait`].
    pub fn wait_reply(mut self) -> Result<Reply, Error> {
        let driver = Arc::clone(self.0.driver());
        driver.block_on(|state, now, waker| self.0.poll_in(state, now, waker))
    }
}

/// Calls in parts (SPEC §5.9): see [`parts`](crate::parts).
impl CallBuilder {
    /// Makes the call for a reply that may come in parts: waits until the call has begun.
    ///
    /// # Errors
    /// The call did not begin: it did not run.
    pub fn reply_in_parts(self) -> Result<ReplyParts, Error> {
        let marks = PartMarks { reply_in_parts: true, ..PartMarks::default() };
        self.begin(marks).map(|(_, reply)| reply)
    }

    /// Makes the call with a request of which parts follow, and for a reply that may come in parts:
    /// waits until the call has begun. The server asks for the first part.
    ///
    /// # Errors
    /// The call did not begin: it did not run.
    pub fn in_parts(self) -> Result<(PartSender, ReplyParts), Error> {
        let marks = PartMarks { reply_in_parts: true, more: true, ..PartMarks::default() };
        let (sender, reply) = self.begin(marks)?;
        Ok((begun(sender), reply))
    }

    fn begin(self, parts: PartMarks) -> Result<(Option<PartSender>, ReplyParts), Error> {
        let mut operation = self.0;
        operation.parts = parts;
        let driver = Arc::clone(operation.driver());
        let sender = driver.block_on(|state, now, waker| {
            let started = ready!(operation.poll_start_in(state, now, waker));
            let sender = parts.more.then(|| operation.part_sender(state));
            Poll::Ready(started.map(|()| sender.flatten()))
        })?;
        Ok((sender, begun(operation.into_reply_parts())))
    }
}

/// A one-way message that has not been sent yet: [`SendBuilder::wait`] sends it.
#[must_use = "a message is sent by `wait`"]
#[derive(Debug)]
pub struct SendBuilder(Operation);

operation_options!(SendBuilder, deadline: "Gives up after this time, and keeps the peer from handing the message to its application later than that: a message that is not worth anything when it is late.");

impl SendBuilder {
    /// Sends, and waits until the peer has accepted the message for delivery.
    ///
    /// # Errors
    /// It was not delivered, or that is not known.
    pub fn wait(mut self) -> Result<(), Error> {
        let driver = Arc::clone(self.0.driver());
        driver.block_on(|state, now, waker| self.0.poll_in(state, now, waker)).map(|_| ())
    }
}
