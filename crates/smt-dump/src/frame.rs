// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A frame of a capture, and how numbers and bytes of the file are read.

use std::io::{self, Read};
use std::time::Duration;

/// A number of <https://www.tcpdump.org/linktypes.html>.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct LinkType(pub(crate) u32);

/// Bytes that were captured at once.
#[derive(Debug)]
pub(crate) struct Frame {
    /// Since 1970, UTC; zero if the file does not say.
    pub(crate) time: Duration,
    pub(crate) link: LinkType,
    /// The byte order of the machine that captured it.
    pub(crate) order: Order,
    pub(crate) bytes: Vec<u8>,
    /// Bytes before the capture cut the frame off.
    pub(crate) original_length: usize,
}

/// The byte order of a file's numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Order {
    Big,
    Little,
}

impl Order {
    pub(crate) fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Big => u16::from_be_bytes(bytes),
            Self::Little => u16::from_le_bytes(bytes),
        }
    }

    pub(crate) fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Big => u32::from_be_bytes(bytes),
            Self::Little => u32::from_le_bytes(bytes),
        }
    }

    /// The number at an offset; `None` past the end.
    pub(crate) fn u32_at(self, bytes: &[u8], offset: usize) -> Option<u32> {
        let bytes = bytes.get(offset..)?.first_chunk()?;
        Some(self.u32(*bytes))
    }

    /// The number at an offset; `None` past the end.
    pub(crate) fn u16_at(self, bytes: &[u8], offset: usize) -> Option<u16> {
        let bytes = bytes.get(offset..)?.first_chunk()?;
        Some(self.u16(*bytes))
    }
}

/// Reads `length` bytes, of which a damaged file may claim any number.
pub(crate) fn read_bytes(input: &mut impl Read, length: u32) -> io::Result<Vec<u8>> {
    if length > FRAME_BYTES_MAX {
        return Err(damaged("a frame of more than 64 MB"));
    }
    let mut bytes = vec![0; length as usize];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// The file contradicts its format.
pub(crate) fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Fills `buffer` as far as the input goes.
pub(crate) fn read_some(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match input.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

/// No capture has larger frames; loopback's have 64 KB.
const FRAME_BYTES_MAX: u32 = 64 << 20;
