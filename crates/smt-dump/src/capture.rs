// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A capture file: which of the two formats it is, and its frames one after the other.
//!
//! A file that ends in the middle of a frame, as of a tcpdump that was killed, is read up to there.

use std::io::{self, Read};

use crate::error::DumpError;
use crate::frame::{Frame, read_some};
use crate::magic::{PcapMagic, is_section};
use crate::pcap::Pcap;
use crate::pcapng::Pcapng;

/// An open file.
#[derive(Debug)]
pub(crate) struct Capture<R> {
    format: Format<Counted<R>>,
    frames: u64,
    is_cut_short: bool,
}

#[derive(Debug)]
enum Format<R> {
    Pcap(Pcap<R>),
    Pcapng(Pcapng<R>),
}

/// An input, and how many bytes were read from it.
#[derive(Debug)]
struct Counted<R> {
    input: R,
    bytes: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(buffer)?;
        self.bytes += length as u64;
        Ok(length)
    }
}

impl<R: Read> Capture<R> {
    /// Tells the format by the first four bytes.
    pub(crate) fn open(input: R) -> Result<Self, DumpError> {
        let mut input = Counted { input, bytes: 0 };
        let mut magic = [0; 4];
        let length = read_some(&mut input, &mut magic).map_err(at_its_begin)?;
        if length == magic.len() {
            if let Some(magic) = PcapMagic::of(magic) {
                return begun(Pcap::open(magic, input).map(Format::Pcap));
            }
            if is_section(magic) {
                return begun(Pcapng::open(input).map(Format::Pcapng));
            }
        }
        Err(DumpError::NoCapture(format!(
            "neither pcap nor pcapng begins with {}",
            first_bytes(&magic[..length])
        )))
    }

    /// The next frame; `None` at the end.
    ///
    /// # Errors
    /// [`DumpError::Capture`]: the file cannot be read on, or contradicts its format from the byte
    /// on that the error names. All frames before it were returned.
    pub(crate) fn next_frame(&mut self) -> Result<Option<Frame>, DumpError> {
        let byte = self.byte();
        let frame = match &mut self.format {
            Format::Pcap(pcap) => pcap.next_frame(),
            Format::Pcapng(pcapng) => pcapng.next_frame(),
        };
        match frame {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.is_cut_short = true;
                Ok(None)
            }
            Err(error) => Err(DumpError::Capture { frames: self.frames, byte, error }),
            Ok(frame) => {
                self.frames += u64::from(frame.is_some());
                Ok(frame)
            }
        }
    }

    /// Frames that were returned.
    pub(crate) fn frames(&self) -> u64 {
        self.frames
    }

    /// Bytes of the file that were read.
    fn byte(&self) -> u64 {
        match &self.format {
            Format::Pcap(pcap) => pcap.input().bytes,
            Format::Pcapng(pcapng) => pcapng.input().bytes,
        }
    }

    /// Whether it ended in the middle of a frame.
    pub(crate) fn is_cut_short(&self) -> bool {
        self.is_cut_short
    }
}

/// The capture behind a file header that was read, or the error that reading it met.
fn begun<R>(format: io::Result<Format<Counted<R>>>) -> Result<Capture<R>, DumpError> {
    match format {
        Ok(format) => Ok(Capture { format, frames: 0, is_cut_short: false }),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err(DumpError::NoCapture("it ends before the first frame could begin".to_owned()))
        }
        Err(error) => Err(at_its_begin(error)),
    }
}

fn at_its_begin(error: io::Error) -> DumpError {
    DumpError::Capture { frames: 0, byte: 0, error }
}

fn first_bytes(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "nothing".to_owned();
    }
    let words: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    words.join(" ")
}
