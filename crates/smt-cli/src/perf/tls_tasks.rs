// SPDX-License-Identifier: Apache-2.0 OR MIT
//! TLS over TCP by tokio: whole messages over a connection, as `tls.rs` does it with blocking
//! sockets.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::tls::READ_BYTES;

/// A socket with reads of 64 KB: rustls asks for 4 KB at a time.
pub(super) type BigReads = BufReader<TcpStream>;

/// The socket under a connection.
pub(super) fn big_reads(socket: TcpStream) -> io::Result<BigReads> {
    socket.set_nodelay(true)?;
    Ok(BufReader::with_capacity(READ_BYTES, socket))
}

/// A connection that carries whole messages.
pub(super) struct Messages<S> {
    stream: S,
    /// The message to be written, with its length before it.
    frame: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Messages<S> {
    /// Over a connection whose handshake is over.
    pub(super) fn new(stream: S) -> Self {
        Self { stream, frame: Vec::new() }
    }

    /// Writes one message.
    pub(super) async fn write(&mut self, message: &[u8]) -> io::Result<()> {
        let length = u32::try_from(message.len()).map_err(io::Error::other)?;
        self.frame.clear();
        self.frame.extend_from_slice(&length.to_be_bytes());
        self.frame.extend_from_slice(message);
        self.stream.write_all(&self.frame).await?;
        self.stream.flush().await
    }

    /// Reads one message over the last one's bytes.
    pub(super) async fn read(&mut self, message: &mut Vec<u8>) -> io::Result<()> {
        let length = self.stream.read_u32().await?;
        message.resize(length as usize, 0);
        self.stream.read_exact(message).await?;
        Ok(())
    }
}
