// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages on a stream: each is 12 bytes of header (id, length), its body, and what TLS would add
//! to it.
//!
//! Only headers are written; bodies are zeros. A message begins a TLS record of its own, as a write
//! to a TLS socket does. Where a record's overhead lies does not matter to when a message is whole,
//! so all of it is at the end.

use std::collections::VecDeque;

use super::limits::{RECORD_LEN, RECORD_OVERHEAD};

/// The frames that the sender has put on a stream.
#[derive(Debug, Default)]
pub(super) struct FrameWriter {
    /// Headers that may have to be written, in the order of the stream.
    headers: VecDeque<(u64, [u8; HEADER_LEN])>,
    /// Where the next message begins.
    end: u64,
}

/// The part of a stream that the receiver has read.
#[derive(Debug, Default)]
pub(super) struct FrameReader {
    header: [u8; HEADER_LEN],
    /// How much of the header is there.
    header_len: usize,
    /// Bytes that the message still lacks once its header is whole.
    missing: u64,
}

/// A message that has arrived.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Frame {
    pub(super) message: u64,
    pub(super) length: u32,
}

impl FrameWriter {
    pub(super) fn push(&mut self, frame: Frame) {
        let mut header = [0; HEADER_LEN];
        header[..8].copy_from_slice(&frame.message.to_be_bytes());
        header[8..].copy_from_slice(&frame.length.to_be_bytes());
        self.headers.push_back((self.end, header));
        self.end += stream_len(frame.length);
    }

    /// Forgets the headers before this place: they will not be asked for again.
    pub(super) fn forget(&mut self, until: u64) {
        let is_over = |start: u64| start + HEADER_LEN as u64 <= until;
        while self.headers.front().is_some_and(|(at, _)| is_over(*at)) {
            self.headers.pop_front();
        }
    }

    /// Where the stream ends so far.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Writes what headers there are among the bytes from `start` on; they must be zero.
    pub(super) fn fill(&self, start: u64, bytes: &mut [u8]) {
        let end = start + bytes.len() as u64;
        let first = self.headers.partition_point(|(at, _)| at + HEADER_LEN as u64 <= start);
        let touched = self.headers.range(first..);
        for (at, header) in touched.take_while(|(at, _)| *at < end) {
            let (from, until) = (start.max(*at), end.min(at + HEADER_LEN as u64));
            let part = &header[(from - at) as usize..(until - at) as usize];
            bytes[(from - start) as usize..(until - start) as usize].copy_from_slice(part);
        }
    }
}

impl FrameReader {
    /// Takes the next bytes of the stream, and tells which messages they complete.
    pub(super) fn read(&mut self, mut bytes: &[u8], mut complete: impl FnMut(Frame)) {
        while !bytes.is_empty() {
            if self.header_len < HEADER_LEN {
                let taken = bytes.len().min(HEADER_LEN - self.header_len);
                self.header[self.header_len..][..taken].copy_from_slice(&bytes[..taken]);
                self.header_len += taken;
                self.missing = stream_len(self.frame().length) - HEADER_LEN as u64;
                bytes = &bytes[taken..];
                continue;
            }
            let taken = self.missing.min(bytes.len() as u64);
            self.missing -= taken;
            bytes = &bytes[taken as usize..];
            if self.missing == 0 {
                self.header_len = 0;
                complete(self.frame());
            }
        }
    }

    fn frame(&self) -> Frame {
        let [m0, m1, m2, m3, m4, m5, m6, m7, l0, l1, l2, l3] = self.header;
        Frame {
            message: u64::from_be_bytes([m0, m1, m2, m3, m4, m5, m6, m7]),
            length: u32::from_be_bytes([l0, l1, l2, l3]),
        }
    }
}

/// The bytes that a message of this length takes of a stream.
fn stream_len(length: u32) -> u64 {
    let plaintext = HEADER_LEN as u64 + u64::from(length);
    plaintext + plaintext.div_ceil(RECORD_LEN) * RECORD_OVERHEAD
}

/// Message id and length.
const HEADER_LEN: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Vec<Frame> {
        [0, 1, 100, 16_372, 16_373, 0, 50_000]
            .into_iter()
            .zip(1 << 40..)
            .map(|(length, message)| Frame { message, length })
            .collect()
    }

    fn written() -> FrameWriter {
        let mut writer = FrameWriter::default();
        frames().into_iter().for_each(|frame| writer.push(frame));
        writer
    }

    #[test]
    fn a_record_costs_22_bytes_and_holds_16384() {
        assert_eq!(stream_len(0), 12 + 22);
        assert_eq!(stream_len(16_372), 16_384 + 22);
        assert_eq!(stream_len(16_373), 16_385 + 44);
    }

    #[test]
    fn frames_are_read_as_written_however_the_stream_is_cut() {
        for step in [1, 5, 12, 13, 1_460, 100_000] {
            let (mut writer, mut reader) = (written(), FrameReader::default());
            let (mut read, mut at) = (Vec::new(), 0);
            while at < writer.end() {
                let mut bytes = vec![0; step.min(writer.end() - at) as usize];
                writer.fill(at, &mut bytes);
                reader.read(&bytes, |frame| read.push(frame));
                at += bytes.len() as u64;
                writer.forget(at);
            }
            assert_eq!(read, frames(), "{step}");
            assert!(writer.headers.is_empty());
        }
    }

    #[test]
    fn a_message_is_complete_with_its_last_byte_only() {
        let (writer, mut reader) = (written(), FrameReader::default());
        let mut bytes = vec![0; writer.end() as usize];
        writer.fill(0, &mut bytes);
        let (last, rest) = bytes.split_last().unwrap();
        let mut count = 0;
        reader.read(rest, |_| count += 1);
        assert_eq!(count, frames().len() - 1);
        reader.read(&[*last], |_| count += 1);
        assert_eq!(count, frames().len());
    }
}
