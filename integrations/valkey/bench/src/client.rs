// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client: commands out, replies in. Replies are counted and not read, so that the client costs
//! little.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::way::Duplex;

/// A connection and its buffers.
pub(crate) struct Client {
    stream: Box<dyn Duplex>,
    out: Vec<u8>,
    read: Vec<u8>,
}

impl Client {
    pub(crate) fn new(stream: Box<dyn Duplex>) -> Self {
        Self { stream, out: Vec::new(), read: Vec::new() }
    }

    /// Sends commands at once, and returns the bytes of their replies.
    pub(crate) async fn ask(&mut self, commands: &[&[&[u8]]]) -> io::Result<&[u8]> {
        self.out.clear();
        for command in commands {
            pack(command, &mut self.out);
        }
        self.stream.write_all(&self.out).await?;
        self.stream.flush().await?;
        self.read.clear();
        let mut length = 0;
        for _ in commands {
            length += self.reply(length).await?;
        }
        Ok(&self.read[..length])
    }

    /// Bytes of the reply that begins there.
    async fn reply(&mut self, begin: usize) -> io::Result<usize> {
        loop {
            let length = smt_valkey::reply_length(&self.read[begin..]);
            let length = length.map_err(|_| io::Error::other("peer: that is no reply"))?;
            if let Some(length) = length {
                if self.read[begin] == b'-' {
                    let text = String::from_utf8_lossy(&self.read[begin..begin + length]);
                    return Err(io::Error::other(format!("peer: {}", text.trim())));
                }
                return Ok(length);
            }
            if self.stream.read_buf(&mut self.read).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

fn pack(command: &[&[u8]], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("*{}\r\n", command.len()).as_bytes());
    for word in command {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}
