// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A connection that does not block, with frames in and out. The buffer for reading is the
//! thread's, not its own.

use std::io::{self, Read};
use std::net::TcpStream;
use std::os::fd::OwnedFd;

use rustix::event::epoll;

use super::channel::Channel;
use crate::frame;

/// A connection.
pub(super) struct Connection<C> {
    socket: TcpStream,
    channel: C,
    /// Frames to be sent.
    out: Vec<u8>,
    /// Frames that have come, the last one perhaps in part.
    come: Vec<u8>,
    is_full: bool,
}

impl<C: Channel> Connection<C> {
    pub(super) fn new(socket: TcpStream, channel: C) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, channel, out: Vec::new(), come: Vec::new(), is_full: false })
    }

    /// To be told when something comes.
    pub(super) fn register(&self, epoll: &OwnedFd, number: u64) -> io::Result<()> {
        let data = epoll::EventData::new_u64(number);
        Ok(epoll::add(epoll, &self.socket, data, epoll::EventFlags::IN)?)
    }

    pub(super) fn has_frames(&self) -> bool {
        !self.out.is_empty()
    }

    /// A frame to be sent with the next ones.
    pub(super) fn put(&mut self, number: u32, body: &[u8]) {
        self.out.extend_from_slice(&frame::numbered(body.len(), number));
        self.out.extend_from_slice(body);
    }

    /// Sends what waits. If the socket has no room, `epoll` tells when it has.
    pub(super) fn send(&mut self, epoll: &OwnedFd, number: u64) -> io::Result<()> {
        let is_full = !self.channel.write(&mut self.socket, &mut self.out)?;
        if is_full != self.is_full {
            self.is_full = is_full;
            let mut flags = epoll::EventFlags::IN;
            flags.set(epoll::EventFlags::OUT, is_full);
            epoll::modify(epoll, &self.socket, epoll::EventData::new_u64(number), flags)?;
        }
        Ok(())
    }

    /// Takes what has come; `take` gets number and body of each whole frame.
    pub(super) fn receive(
        &mut self,
        buffer: &mut [u8],
        mut take: impl FnMut(u32, &[u8]),
    ) -> io::Result<()> {
        self.read(buffer)?;
        let mut taken = 0;
        while let Some((number, body)) = frame::first_numbered(&self.come[taken..]) {
            take(number, &self.come[taken..][body.clone()]);
            taken += body.end;
        }
        self.come.drain(..taken);
        Ok(())
    }

    /// Answers what has come; the answers are still to be sent.
    pub(super) fn receive_and_reply(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let mut out = std::mem::take(&mut self.out);
        let outcome = self.receive(buffer, |number, request| {
            frame::work(request);
            let length = frame::reply_length(request);
            out.extend_from_slice(&frame::numbered(length, number));
            if length == request.len() {
                out.extend_from_slice(request);
            } else {
                out.resize(out.len() + length, 0);
            }
        });
        self.out = out;
        outcome
    }

    /// Reads until there is no more, or until others should have a turn.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        for _ in 0..READS_PER_TURN {
            match self.socket.read(buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => {
                    self.channel.read(&buffer[..bytes], &mut self.come)?;
                    if bytes < buffer.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Reads in a turn at most. Requests that have come are answered before more is read: both sides
/// then work at the same time.
const READS_PER_TURN: usize = 4;
