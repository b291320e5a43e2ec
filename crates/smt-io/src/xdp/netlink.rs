// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Questions to the kernel about interfaces, routes and neighbours (`NETLINK_ROUTE`, RFC 3549).

use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, Read};
use std::time::Duration;

/// A socket for questions.
#[derive(Debug)]
pub(super) struct Netlink {
    socket: Socket,
    buffer: Vec<u8>,
}

/// An answer: what follows its header.
#[derive(Clone, Debug)]
pub(super) struct Answer(Vec<u8>);

/// A question.
pub(super) struct Question<'a> {
    /// `RTM_*`.
    pub(super) kind: u16,
    /// Whether all there are are wanted.
    pub(super) is_about_all: bool,
    /// The fixed part of the message, and its attributes.
    pub(super) body: &'a [u8],
}

impl Netlink {
    /// Opens a socket; that needs no right.
    pub(super) fn open() -> io::Result<Self> {
        let protocol = Protocol::from(libc::NETLINK_ROUTE);
        let socket = Socket::new(Domain::from(libc::AF_NETLINK), Type::RAW, Some(protocol))?;
        socket.set_read_timeout(Some(ANSWER_WAIT))?;
        Ok(Self { socket, buffer: vec![0; ANSWER_BYTES_MAX] })
    }

    /// Asks, and takes the answers.
    pub(super) fn ask(&mut self, question: &Question<'_>) -> io::Result<Vec<Answer>> {
        let flags = REQUEST | if question.is_about_all { DUMP } else { 0 };
        let mut message = Vec::with_capacity(HEADER_BYTES + question.body.len());
        let length = (HEADER_BYTES + question.body.len()) as u32;
        message.extend(length.to_ne_bytes());
        message.extend(question.kind.to_ne_bytes());
        message.extend(flags.to_ne_bytes());
        // Sequence number and port of the kernel: one question is open at a time.
        message.extend([0; 8]);
        message.extend(question.body);
        self.socket.send(&message)?;
        let mut answers = Vec::new();
        loop {
            let length = (&self.socket).read(&mut self.buffer)?;
            let mut rest = &self.buffer[..length];
            while let Some((kind, body, behind)) = split_message(rest) {
                rest = behind;
                match kind {
                    DONE => return Ok(answers),
                    ERROR => return error_of(body).map(|()| answers),
                    _ => answers.push(Answer(body.to_vec())),
                }
            }
            if !question.is_about_all {
                return Ok(answers);
            }
        }
    }
}

impl Answer {
    /// Its fixed part, of this many bytes; zeros stand for what is missing.
    pub(super) fn fixed<const N: usize>(&self) -> [u8; N] {
        self.0.first_chunk().copied().unwrap_or([0; N])
    }

    /// An attribute behind a fixed part of this many bytes.
    pub(super) fn attribute(&self, fixed: usize, kind: u16) -> Option<&[u8]> {
        let mut rest = self.0.get(fixed..)?;
        loop {
            let [a, b, c, d] = *rest.first_chunk()?;
            let length = usize::from(u16::from_ne_bytes([a, b]));
            let value = rest.get(4..length)?;
            if u16::from_ne_bytes([c, d]) & KIND_MASK == kind {
                return Some(value);
            }
            rest = rest.get(length.next_multiple_of(4)..)?;
        }
    }

    /// An attribute of 32 bits.
    pub(super) fn number(&self, fixed: usize, kind: u16) -> Option<u32> {
        let value = self.attribute(fixed, kind)?;
        Some(u32::from_ne_bytes(*value.first_chunk()?))
    }
}

/// Appends an attribute to a question's body.
pub(super) fn push_attribute(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    body.extend((4 + value.len() as u16).to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

/// The kind and body of the first message, and the messages behind it.
fn split_message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let header = bytes.first_chunk::<HEADER_BYTES>()?;
    let length = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
    let body = bytes.get(HEADER_BYTES..length)?;
    let behind = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some((u16::from_ne_bytes([header[4], header[5]]), body, behind))
}

/// The kernel's word on a question that it does not answer.
fn error_of(body: &[u8]) -> io::Result<()> {
    let code = body.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
    match code {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(-code)),
    }
}

const HEADER_BYTES: usize = 16;
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// The kernel answers within the call; a wait for ever would hold up an endpoint.
const ANSWER_WAIT: Duration = Duration::from_secs(1);
const REQUEST: u16 = 1;
const DUMP: u16 = 0x300;
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// Without the marks of nesting and byte order.
const KIND_MASK: u16 = 0x3FFF;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_as_they_were_written() {
        let mut body = vec![9; 8];
        push_attribute(&mut body, 3, b"abc");
        push_attribute(&mut body, 0x8000 | 4, &7_u32.to_ne_bytes());
        let answer = Answer(body);
        assert_eq!(answer.fixed::<2>(), [9, 9]);
        assert_eq!(answer.attribute(8, 3), Some(&b"abc"[..]));
        assert_eq!(answer.number(8, 4), Some(7));
        assert_eq!(answer.attribute(8, 5), None);
        for end in 0..8 {
            assert_eq!(Answer(answer.0[..end].to_vec()).attribute(8, 3), None);
        }
    }

    #[test]
    fn a_length_that_contradicts_the_message_ends_it() {
        for length in [0_u32, 15, 17, u32::MAX] {
            let mut message = [0; HEADER_BYTES];
            message[..4].copy_from_slice(&length.to_ne_bytes());
            assert!(split_message(&message).is_none(), "{length}");
        }
        assert!(Answer(vec![2, 0, 3, 0]).attribute(0, 3).is_none());
    }
}
