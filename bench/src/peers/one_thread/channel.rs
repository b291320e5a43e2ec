// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The layer between frames and the socket: TLS, or nothing.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::ops::{Deref, DerefMut};

use rustls::{ConnectionCommon, SideData};

/// Makes bytes of frames, and frames of bytes.
pub(super) trait Channel {
    /// Writes the waiting bytes and as much of `frames` as possible, by as few calls as possible;
    /// written bytes are removed. False: the socket has no room for the rest.
    fn write(&mut self, socket: &mut TcpStream, frames: &mut Vec<u8>) -> io::Result<bool>;

    /// Takes bytes that have come, and adds what is in them to `frames`.
    fn read(&mut self, bytes: &[u8], frames: &mut Vec<u8>) -> io::Result<()>;
}

/// No encryption.
pub(super) struct Plain;

impl Channel for Plain {
    fn write(&mut self, socket: &mut TcpStream, frames: &mut Vec<u8>) -> io::Result<bool> {
        let mut written = 0;
        let outcome = loop {
            if written == frames.len() {
                break Ok(true);
            }
            match socket.write(&frames[written..]) {
                Ok(bytes) => written += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break Ok(false),
                Err(error) => break Err(error),
            }
        };
        frames.drain(..written);
        outcome
    }

    fn read(&mut self, bytes: &[u8], frames: &mut Vec<u8>) -> io::Result<()> {
        frames.extend_from_slice(bytes);
        Ok(())
    }
}

/// TLS by rustls.
pub(super) struct Sealed<C>(C);

impl<C, S> Sealed<C>
where
    C: Deref<Target = ConnectionCommon<S>> + DerefMut,
    S: SideData,
{
    /// Before the handshake.
    pub(super) fn new(mut connection: C) -> Self {
        connection.set_buffer_limit(None);
        Self(connection)
    }
}

impl<C, S> Channel for Sealed<C>
where
    C: Deref<Target = ConnectionCommon<S>> + DerefMut,
    S: SideData,
{
    fn write(&mut self, socket: &mut TcpStream, frames: &mut Vec<u8>) -> io::Result<bool> {
        if !frames.is_empty() && !self.0.is_handshaking() {
            self.0.writer().write_all(frames)?;
            frames.clear();
        }
        while self.0.wants_write() {
            match self.0.write_tls(socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn read(&mut self, mut bytes: &[u8], frames: &mut Vec<u8>) -> io::Result<()> {
        while !bytes.is_empty() {
            self.0.read_tls(&mut bytes)?;
            let state = self.0.process_new_packets().map_err(io::Error::other)?;
            let (held, more) = (frames.len(), state.plaintext_bytes_to_read());
            frames.resize(held + more, 0);
            self.0.reader().read_exact(&mut frames[held..])?;
        }
        Ok(())
    }
}
