// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A capture file: which of the two formats it is, and its frames one after the other.
//!
//! A file that ends in the middle of a frame, as of a tcpdump that was killed, is read up to there.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::time::Duration;

use super::link::LinkType;
use super::pcap::{Magic, Pcap};
use super::pcapng::Pcapng;
use crate::failure::{Doing, Failure};

/// What was captured at once.
#[derive(Debug)]
pub(super) struct Frame {
    /// Since 1970, UTC; zero if the file does not say.
    pub(super) time: Duration,
    pub(super) link: LinkType,
    pub(super) bytes: Vec<u8>,
    /// Bytes before the capture cut the frame off.
    pub(super) original_length: usize,
}

/// An open file.
#[derive(Debug)]
pub(super) enum Capture {
    Pcap(Pcap<Input>),
    Pcapng(Pcapng<Input>),
}

type Input = BufReader<File>;

/// The byte order of a file's numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Order {
    Big,
    Little,
}

impl Capture {
    /// Tells the format by the first four bytes.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let file = File::open(path).doing(format!("opening {}", path.display()))?;
        let mut input = BufReader::new(file);
        let mut magic = [0; 4];
        let length =
            read_some(&mut input, &mut magic).doing(format!("reading {}", path.display()))?;
        if length == magic.len() {
            if let Some(magic) = Magic::of(magic) {
                return begun(magic.open(input).map(Self::Pcap), path);
            }
            if Pcapng::<Input>::is_magic(magic) {
                return begun(Pcapng::open(input).map(Self::Pcapng), path);
            }
        }
        Err(Failure::new(format!(
            "{} is no capture: neither pcap nor pcapng begins with {}",
            path.display(),
            first_bytes(&magic[..length])
        )))
    }

    /// The next frame; `None` at the end.
    pub(super) fn next_frame(&mut self) -> Result<Option<Frame>, Failure> {
        let frame = match self {
            Self::Pcap(pcap) => pcap.next_frame(),
            Self::Pcapng(pcapng) => pcapng.next_frame(),
        };
        match frame {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                tracing::warn!("the capture ends in the middle of a frame");
                Ok(None)
            }
            frame => frame.doing("reading the capture"),
        }
    }
}

/// What the file's own header has led to.
fn begun(capture: io::Result<Capture>, path: &Path) -> Result<Capture, Failure> {
    let path = path.display();
    match capture {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            let text = format!("{path} is no capture: it ends before the first frame could begin");
            Err(Failure::new(text))
        }
        capture => capture.doing(path),
    }
}

impl Order {
    pub(super) fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Big => u16::from_be_bytes(bytes),
            Self::Little => u16::from_le_bytes(bytes),
        }
    }

    pub(super) fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Big => u32::from_be_bytes(bytes),
            Self::Little => u32::from_le_bytes(bytes),
        }
    }

    /// The number at an offset; `None` past the end.
    pub(super) fn u32_at(self, bytes: &[u8], offset: usize) -> Option<u32> {
        let bytes = bytes.get(offset..)?.first_chunk()?;
        Some(self.u32(*bytes))
    }

    /// The number at an offset; `None` past the end.
    pub(super) fn u16_at(self, bytes: &[u8], offset: usize) -> Option<u16> {
        let bytes = bytes.get(offset..)?.first_chunk()?;
        Some(self.u16(*bytes))
    }
}

/// Reads `length` bytes, of which a damaged file may claim any number.
pub(super) fn read_bytes(input: &mut impl Read, length: u32) -> io::Result<Vec<u8>> {
    if length > FRAME_BYTES_MAX {
        return Err(damaged("a frame of more than 64 MB"));
    }
    let mut bytes = vec![0; length as usize];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// The file contradicts its format.
pub(super) fn damaged(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the capture is damaged: {what}"),
    )
}

/// Fills `buffer` as far as the input goes.
pub(super) fn read_some(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
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
