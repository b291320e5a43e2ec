// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parts as streams of bytes, by the traits of tokio: where one part ends and the next begins is
//! then forgotten.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use futures_core::Stream;
use smt_proto::Body;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{PartSender, ReplyParts, RequestParts};
use crate::error::Error;

/// Bytes of parts for [`AsyncRead`], of which some are left.
///
/// [`ByteReader::into_inner`] gives the parts back once all were read.
#[derive(Debug)]
pub struct ByteReader<P> {
    parts: P,
    rest: Bytes,
}

impl ReplyParts {
    /// The parts as one stream of bytes.
    pub fn into_reader(self) -> ByteReader<Self> {
        ByteReader { parts: self, rest: Bytes::new() }
    }
}

impl RequestParts {
    /// The parts as one stream of bytes.
    #[must_use]
    pub fn into_reader(self) -> ByteReader<Self> {
        ByteReader { parts: self, rest: Bytes::new() }
    }
}

impl<P> ByteReader<P> {
    /// The parts, without those bytes that were taken from a part and not read.
    pub fn into_inner(self) -> P {
        self.parts
    }
}

impl<P: Stream<Item = Result<Bytes, Error>> + Unpin> AsyncRead for ByteReader<P> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.rest.is_empty() {
            match ready!(Pin::new(&mut self.parts).poll_next(context)) {
                Some(part) => self.rest = part.map_err(io::Error::other)?,
                None => return Poll::Ready(Ok(())),
            }
        }
        let length = self.rest.len().min(buffer.remaining());
        buffer.put_slice(&self.rest[..length]);
        self.rest.advance(length);
        Poll::Ready(Ok(()))
    }
}

/// Each write is one part, or begins one if it is longer than a part may be.
impl AsyncWrite for PartSender {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let length = bytes.len().min(self.part_max()).min(WRITTEN_MAX);
        if length == 0 {
            return Poll::Ready(Ok(0));
        }
        let part = Body::from(Bytes::copy_from_slice(&bytes[..length]));
        let driver = Arc::clone(self.driver());
        let sent =
            driver.change(|state, now| self.poll_send_in(state, now, &part, context.waker()));
        sent.map_ok(|()| length).map_err(io::Error::other)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Ends the parts of a request; those of a reply end with it.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let driver = Arc::clone(self.driver());
        let finished = driver.change(|state, now| self.poll_finish_in(state, now, context.waker()));
        finished.map_err(io::Error::other)
    }
}

/// Bytes of the longest part that a write makes: it needs no grant, and its copy stays in the
/// second-level cache.
const WRITTEN_MAX: usize = 48 * 1_024;
