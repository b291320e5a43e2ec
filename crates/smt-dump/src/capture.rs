// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A capture file: which of the two formats it is, and its frames one after the other.
//!
//! A file that ends in the middle of a frame, as of a tcpdump that was killed, is read up to there.

use std::io::{self, Read};
use std::time::Duration;

use crate::error::DumpError;
use crate::link::LinkType;
use crate::pcap::{Magic, Pcap};
use crate::pcapng::Pcapng;

/// Bytes that were captured at once.
#[derive(Debug)]
pub(crate) struct Frame {
    /// Since 1970, UTC; zero if the file does not say.
    pub(crate) time: Duration,
    pub(crate) link: LinkType,
    pub(crate) bytes: Vec<u8>,
    /// Bytes before the capture cut the frame off.
    pub(crate) original_length: usize,
}

/// An open file.
#[derive(Debug)]
pub(crate) struct Capture<R> {
    format: Format<R>,
    is_cut_short: bool,
}

#[derive(Debug)]
enum Format<R> {
    Pcap(Pcap<R>),
    Pcapng(Pcapng<R>),
}

/// The byte order of a file's numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Order {
    Big,
    Little,
}

impl<R: Read> Capture<R> {
    /// Tells the format by the first four bytes.
    pub(crate) fn open(mut input: R) -> Result<Self, DumpError> {
        let mut magic = [0; 4];
        let length = read_some(&mut input, &mut magic).map_err(DumpError::Capture)?;
        if length == magic.len() {
            if let Some(magic) = Magic::of(magic) {
                return begun(magic.open(input).map(Format::Pcap));
            }
            if Pcapng::<R>::is_magic(magic) {
                return begun(Pcapng::open(input).map(Format::Pcapng));
            }
        }
        Err(DumpError::NoCapture(format!(
            "neither pcap nor pcapng begins with {}",
            first_bytes(&magic[..length])
        )))
    }

    /// The next frame; `None` at the end.
    pub(crate) fn next_frame(&mut self) -> Result<Option<Frame>, DumpError> {
        let frame = match &mut self.format {
            Format::Pcap(pcap) => pcap.next_frame(),
            Format::Pcapng(pcapng) => pcapng.next_frame(),
        };
        match frame {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.is_cut_short = true;
                Ok(None)
            }
            frame => frame.map_err(DumpError::Capture),
        }
    }

    /// Whether it ended in the middle of a frame.
    pub(crate) fn is_cut_short(&self) -> bool {
        self.is_cut_short
    }
}

/// The capture behind a file header that was read, or the error that reading it met.
fn begun<R>(format: io::Result<Format<R>>) -> Result<Capture<R>, DumpError> {
    match format {
        Ok(format) => Ok(Capture { format, is_cut_short: false }),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err(DumpError::NoCapture("it ends before the first frame could begin".to_owned()))
        }
        Err(error) => Err(DumpError::Capture(error)),
    }
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
    io::Error::new(io::ErrorKind::InvalidData, format!("the capture is damaged: {what}"))
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

fn first_bytes(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "nothing".to_owned();
    }
    let words: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    words.join(" ")
}

/// No capture has larger frames; loopback's have 64 KB.
const FRAME_BYTES_MAX: u32 = 64 << 20;
