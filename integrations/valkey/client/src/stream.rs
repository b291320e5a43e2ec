// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A connection as bytes.
//!
//! Flow: 1. bytes that are written wait for a flush  2. a flush makes them a request  3. replies
//! and one-way messages of the server are put into order  4. reads take them  5. a shutdown tells
//! the server where the bytes end, and reads go on until the server has ended too.
//!
//! A request is never cancelled while the stream lives: its bytes are a part of the server's input.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use smt::{CallFuture, Session};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connector::Socket;
use crate::frame::{Frame, HEADER, Malformed, end_header};
use crate::pushes::Pushes;
use crate::reassembly::Reassembly;

/// A connection to a Valkey server as bytes. Dropping it closes the session.
#[derive(Debug)]
pub struct Stream {
    socket: Arc<Socket>,
    session: Session,
    /// Bytes that wait for a flush, behind room for a header.
    unsent: Vec<u8>,
    /// Position of the first of them.
    position: u64,
    /// Whether the server was told that no further bytes follow.
    has_ended: bool,
    calls: VecDeque<CallFuture>,
    pushes: Pushes,
    arrived: Reassembly,
    failed: Option<(io::ErrorKind, String)>,
    /// The task that waits for bytes.
    reader: Option<Waker>,
    /// The task that waits for a call to end, so that there may be another one.
    writer: Option<Waker>,
}

impl Stream {
    pub(crate) fn new(socket: Arc<Socket>, session: Session) -> Self {
        let pushes = socket.routes().claim(&session);
        Self {
            socket,
            session,
            unsent: vec![0; HEADER],
            position: 0,
            has_ended: false,
            calls: VecDeque::new(),
            pushes,
            arrived: Reassembly::default(),
            failed: None,
            reader: None,
            writer: None,
        }
    }

    /// Takes what has come.
    fn poll_arrivals(&mut self, context: &mut Context<'_>) {
        let mut index = 0;
        while let Some(call) = self.calls.get_mut(index) {
            match Pin::new(call).poll(context) {
                Poll::Pending => index += 1,
                Poll::Ready(outcome) => {
                    self.calls.remove(index);
                    // Also if it is the same task, which may have asked for room before.
                    if let Some(writer) = self.writer.take() {
                        writer.wake();
                    }
                    match outcome {
                        Ok(reply) => self.take(reply),
                        Err(error) => {
                            // A session that was closed here fails its calls first.
                            let why = self.pushes.why().map(str::to_owned);
                            let text = why.unwrap_or_else(|| error.to_string());
                            self.fail(io::ErrorKind::ConnectionReset, text);
                        }
                    }
                }
            }
        }
        // A reader that is slow holds the server back, not this memory.
        while self.arrived.held() < HELD_MAX
            && let Poll::Ready(push) = self.pushes.poll_next(context)
        {
            match push {
                Ok(push) => self.take(push),
                Err(why) => return self.fail(io::ErrorKind::ConnectionReset, why),
            }
        }
    }

    fn take(&mut self, message: Bytes) {
        let taken = match Frame::read(message) {
            Ok(Some(frame)) => self.arrived.add(frame),
            Ok(None) => Ok(()),
            Err(malformed) => Err(malformed),
        };
        if taken == Err(Malformed) {
            let text = "peer: a message of the server has no place in the stream".to_owned();
            self.fail(io::ErrorKind::InvalidData, text);
        }
    }

    /// Remembers the first failure. Bytes that came before it are still read.
    fn fail(&mut self, kind: io::ErrorKind, text: String) {
        if self.failed.is_none() {
            self.failed = Some((kind, text));
        }
        // A call that waits for room among the others would wait for ever.
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
    }

    fn failure(&self) -> Option<io::Error> {
        let failed = self.failed.as_ref();
        failed.map(|(kind, text)| io::Error::new(*kind, text.clone()))
    }

    /// Makes requests of all that waits, as far as there may be further ones.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.unsent.len() == HEADER {
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_room(context))?;
        let mut message = std::mem::replace(&mut self.unsent, vec![0; HEADER]);
        message[..HEADER].copy_from_slice(&self.position.to_be_bytes());
        self.position += (message.len() - HEADER) as u64;
        self.call(message, context);
        Poll::Ready(Ok(()))
    }

    /// Waits until there may be a further request.
    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.calls.len() >= CALLS_MAX && self.arrived.held() < HELD_MAX {
            self.poll_arrivals(context);
            self.wake_reader(context);
        }
        if let Some(error) = self.failure() {
            return Poll::Ready(Err(error));
        }
        if self.calls.len() >= CALLS_MAX {
            self.writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, message: Vec<u8>, context: &mut Context<'_>) {
        let mut call = self.session.call(Bytes::from(message)).into_future();
        // The first poll sends it.
        match Pin::new(&mut call).poll(context) {
            Poll::Pending => self.calls.push_back(call),
            Poll::Ready(Ok(reply)) => self.take(reply),
            Poll::Ready(Err(error)) => {
                self.fail(io::ErrorKind::ConnectionReset, error.to_string());
            }
        }
        self.wake_reader(context);
    }

    /// Lets the reader look at what has come, and another task than this at the calls: their
    /// outcome wakes the last task alone that did so.
    fn wake_reader(&mut self, context: &Context<'_>) {
        let has_news =
            self.arrived.front().is_some() || self.arrived.is_at_end() || self.failed.is_some();
        let reader = self.reader.take_if(|reader| has_news || !reader.will_wake(context.waker()));
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        if stream.arrived.front().is_none() {
            stream.poll_arrivals(context);
        }
        let Some(front) = stream.arrived.front() else {
            if stream.arrived.is_at_end() {
                stream.session.close();
                return Poll::Ready(Ok(()));
            }
            if let Some(error) = stream.failure() {
                return Poll::Ready(Err(error));
            }
            stream.reader = Some(context.waker().clone());
            return Poll::Pending;
        };
        let length = front.len().min(buffer.remaining());
        buffer.put_slice(&front[..length]);
        stream.arrived.consume(length);
        // A writer may wait for room that full memory has denied.
        if stream.arrived.held() < HELD_MAX
            && let Some(writer) = stream.writer.take()
        {
            writer.wake();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let stream = self.get_mut();
        if stream.unsent.len() - HEADER >= MESSAGE_MAX {
            ready!(stream.poll_send(context))?;
        }
        if stream.has_ended {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if let Some(error) = stream.failure() {
            return Poll::Ready(Err(error));
        }
        let room = MESSAGE_MAX + HEADER - stream.unsent.len();
        let length = bytes.len().min(room);
        stream.unsent.extend_from_slice(&bytes[..length]);
        Poll::Ready(Ok(length))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_send(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        ready!(stream.poll_send(context))?;
        if !stream.has_ended {
            ready!(stream.poll_room(context))?;
            stream.has_ended = true;
            stream.call(end_header(stream.position).to_vec(), context);
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.session.close();
        self.socket.routes().forget(&self.session);
    }
}

/// Bytes of the largest request: long enough to be cheap, and short beside what a server may hold
/// of one client.
const MESSAGE_MAX: usize = 1 << 20;
/// Requests that the server has not answered. The next one's output is told apart by its position.
const CALLS_MAX: usize = 64;
/// Bytes in order that wait for a reader. Behind that neither replies nor one-way messages are
/// taken, so that the server's own output buffer fills.
const HELD_MAX: usize = 8 << 20;
