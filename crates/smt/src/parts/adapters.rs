// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parts as streams and sinks of buffers.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use futures_sink::Sink;
use smt_proto::Body;

use super::{PartSender, ReplyParts, RequestParts};
use crate::error::Error;

/// The parts of a reply: [`ReplyParts::reply`] is left when the stream has ended. An error is the
/// last item.
impl Stream for ReplyParts {
    type Item = Result<Bytes, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.has_failed() {
            return Poll::Ready(None);
        }
        let driver = Arc::clone(self.driver());
        let part = driver.change(|state, now| self.poll_part_in(state, now, context.waker()));
        part.map(Result::transpose)
    }
}

/// The parts of a request. An error is the last item.
impl Stream for RequestParts {
    type Item = Result<Bytes, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.has_failed() {
            return Poll::Ready(None);
        }
        let driver = Arc::clone(self.driver());
        let part = driver.change(|state, _| self.poll_part_in(state, context.waker()));
        part.map(Result::transpose)
    }
}

/// A sink of parts, which keeps one that its reader has no room for.
#[derive(Debug)]
pub struct PartSink {
    sender: PartSender,
    part: Option<Body>,
}

impl PartSender {
    /// The sender as a sink.
    #[must_use]
    pub fn into_sink(self) -> PartSink {
        PartSink { sender: self, part: None }
    }
}

impl<B: Into<Body>> Sink<B> for PartSink {
    type Error = Error;

    fn poll_ready(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Sink::<B>::poll_flush(self, context)
    }

    fn start_send(mut self: Pin<&mut Self>, part: B) -> Result<(), Error> {
        self.part = Some(part.into());
        Ok(())
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let Self { sender, part } = &mut *self;
        if let Some(waiting) = part {
            let driver = Arc::clone(sender.driver());
            let sent = driver
                .change(|state, now| sender.poll_send_in(state, now, waiting, context.waker()));
            ready!(sent)?;
            *part = None;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_close(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        ready!(Sink::<B>::poll_flush(self.as_mut(), context))?;
        let sender = &mut self.sender;
        let driver = Arc::clone(sender.driver());
        driver.change(|state, now| sender.poll_finish_in(state, now, context.waker()))
    }
}
