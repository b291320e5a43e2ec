// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The pipes of a command: the request goes into its standard input, the reply comes out of its
//! standard output.
//!
//! Neither end waits: a process that the command has started may hold the other end for as long as
//! it likes.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::BorrowedFd;
use std::process::{ChildStdin, ChildStdout};
use std::time::Duration;

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{ioctl_fionbio, ioctl_fionread};

/// The rest of the request, and the reply so far.
pub(super) struct CommandPipes {
    /// Until all is written, or nobody reads any more.
    input: Option<ChildStdin>,
    request: Bytes,
    /// Until its other end is closed.
    output: Option<ChildStdout>,
    reply: Vec<u8>,
    reply_max: usize,
}

impl CommandPipes {
    /// Once more than `reply_max` bytes have come, no more than a pipe's room is read.
    pub(super) fn new(
        input: ChildStdin,
        output: ChildStdout,
        request: Bytes,
        reply_max: usize,
    ) -> io::Result<Self> {
        ioctl_fionbio(&input, true)?;
        ioctl_fionbio(&output, true)?;
        Ok(Self { input: Some(input), request, output: Some(output), reply: Vec::new(), reply_max })
    }

    /// Moves bytes once a pipe can or `ended` is readable, or after `limit`.
    pub(super) fn exchange(
        &mut self,
        ended: Option<BorrowedFd<'_>>,
        limit: Duration,
    ) -> io::Result<()> {
        let mut waits = Vec::with_capacity(3);
        waits.extend(self.input.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::OUT)));
        waits.extend(self.output.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        waits.extend(ended.as_ref().map(|ended| PollFd::new(ended, PollFlags::IN)));
        let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
        match poll(&mut waits, Some(&limit)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.write();
        self.read()
    }

    /// Reads what is in the pipe now, and not what comes meanwhile: all that a command which has
    /// ended has written.
    pub(super) fn read_rest(&mut self) -> io::Result<()> {
        let Some(output) = &mut self.output else {
            return Ok(());
        };
        let length = ioctl_fionread(&*output)?;
        output.take(length).read_to_end(&mut self.reply).map(drop)
    }

    /// Whether more has come than a reply may have.
    pub(super) fn is_too_long(&self) -> bool {
        self.reply.len() > self.reply_max
    }

    /// All that has come.
    pub(super) fn into_reply(self) -> Bytes {
        self.reply.into()
    }

    fn read(&mut self) -> io::Result<()> {
        let mut buffer = [0; READ_BYTES];
        while let Some(output) = self.output.as_mut().filter(|_| self.reply.len() <= self.reply_max)
        {
            match output.read(&mut buffer) {
                Ok(0) => self.output = None,
                Ok(length) => self.reply.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// A command that does not read all of its input is none of the server's business.
    fn write(&mut self) {
        while let Some(input) = &mut self.input {
            if self.request.is_empty() {
                self.input = None;
                return;
            }
            match input.write(&self.request) {
                Ok(length) => drop(self.request.split_to(length)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    tracing::debug!(%error, "the command did not read all of the request");
                    self.input = None;
                }
            }
        }
    }
}

/// A pipe's room on Linux.
const READ_BYTES: usize = 64 * 1024;
