// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls and one-way messages, for tasks.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use smt_proto::{Metadata, PartMarks};

use super::leading::Leading;
use super::polled;
use crate::error::Error;
use crate::operation::{Operation, begun};
use crate::operation_options::operation_options;
use crate::parts::{PartSender, ReplyParts};
use crate::reply::Reply;
use crate::retry::Retry;

/// A call that has not been made yet: `.await` makes it, and gives the reply's body.
///
/// It is no future, but an [`IntoFuture`]. A function that takes a future, such as `tokio::spawn`,
/// `timeout` or `join_all`, gets `call.into_future()`, or [`CallBuilder::reply`] of it:
///
/// ```no_run
/// # async fn call(client: smt::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use std::future::IntoFuture;
///
/// let first = tokio::spawn(client.call("first").into_future());
/// let second = client.call("second").await?;
/// let first = first.await??;
/// # Ok(())
/// # }
/// ```
#[must_use = "a call is made by `.await`"]
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

    /// Makes the call for its whole reply, the metadata too:
    ///
    /// ```no_run
    /// # async fn call(client: smt::Client) -> Result<(), smt::Error> {
    /// let reply = client.call("request").reply().await?;
    /// println!("{} B, and {:?}", reply.body.len(), reply.metadata.get("trace"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn reply(self) -> ReplyFuture {
        ReplyFuture(InProgress::new(self.0))
    }
}

/// Calls in parts (SPEC §5.9): see [`parts`](crate::parts).
impl CallBuilder {
    /// Makes the call for a reply that may come in parts. Ready when the call has begun: when there
    /// is a session, and ids are left.
    ///
    /// # Errors
    /// The call did not begin: it did not run.
    pub async fn reply_in_parts(self) -> Result<ReplyParts, Error> {
        let marks = PartMarks { reply_in_parts: true, ..PartMarks::default() };
        let operation = self.begin(marks).await?;
        Ok(begun(operation.into_reply_parts()))
    }

    /// Makes the call with a request of which parts follow, and for a reply that may come in parts.
    /// Ready when the call has begun, as of [`Self::reply_in_parts`]. The server asks for the first
    /// part.
    ///
    /// ```no_run
    /// # async fn store(client: smt::Client, rows: Vec<smt::Bytes>) -> Result<(), smt::Error> {
    /// let (mut parts, reply) = client.call("store").in_parts().await?;
    /// for row in rows {
    ///     parts.send(row).await?;
    /// }
    /// parts.finish().await?;
    /// let stored = reply.reply().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The call did not begin: it did not run.
    pub async fn in_parts(self) -> Result<(PartSender, ReplyParts), Error> {
        let marks = PartMarks { reply_in_parts: true, more: true, ..PartMarks::default() };
        let operation = self.begin(marks).await?;
        let driver = Arc::clone(operation.driver());
        let sender = driver.look(|state| operation.part_sender(state));
        Ok((begun(sender), begun(operation.into_reply_parts())))
    }

    async fn begin(self, parts: PartMarks) -> Result<Operation, Error> {
        let mut operation = self.0;
        operation.parts = parts;
        let driver = Arc::clone(operation.driver());
        polled(&driver, |state, now, waker| operation.poll_start_in(state, now, waker)).await?;
        Ok(operation)
    }
}

impl IntoFuture for CallBuilder {
    type Output = Result<Bytes, Error>;
    type IntoFuture = CallFuture;

    fn into_future(self) -> CallFuture {
        CallFuture(InProgress::new(self.0))
    }
}

/// A call in progress, for its reply's body. Dropping it cancels the call.
#[must_use = "futures do nothing unless polled"]
#[derive(Debug)]
pub struct CallFuture(InProgress);

impl Future for CallFuture {
    type Output = Result<Bytes, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(context).map_ok(|reply| reply.body)
    }
}

/// A call in progress, for its whole reply. Dropping it cancels the call.
#[must_use = "futures do nothing unless polled"]
#[derive(Debug)]
pub struct ReplyFuture(InProgress);

impl Future for ReplyFuture {
    type Output = Result<Reply, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(context)
    }
}

/// A one-way message that has not been sent yet: `.await` sends it.
#[must_use = "a message is sent by `.await`"]
#[derive(Debug)]
pub struct SendBuilder(Operation);

operation_options!(SendBuilder, deadline: "Gives up after this time, and keeps the peer from handing the message to its application later than that: a message that is not worth anything when it is late.");

impl IntoFuture for SendBuilder {
    type Output = Result<(), Error>;
    type IntoFuture = SendFuture;

    fn into_future(self) -> SendFuture {
        SendFuture(InProgress::new(self.0))
    }
}

/// A one-way message in progress. Dropping it gives the message up.
#[must_use = "futures do nothing unless polled"]
#[derive(Debug)]
pub struct SendFuture(InProgress);

impl Future for SendFuture {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(context).map_ok(|_| ())
    }
}

/// A message in progress, whose future may lead.
#[derive(Debug)]
struct InProgress {
    operation: Operation,
    leading: Leading,
}

impl InProgress {
    fn new(operation: Operation) -> Self {
        Self { operation, leading: Leading::default() }
    }

    /// The reply; empty for a one-way message.
    fn poll(&mut self, context: &Context<'_>) -> Poll<Result<Reply, Error>> {
        let Self { operation, leading } = self;
        let driver = Arc::clone(operation.driver());
        leading.poll(&driver, context, |waker| operation.poll(waker))
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.leading.end(self.operation.driver());
    }
}
