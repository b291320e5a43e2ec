// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The bytes of the server, put back into their order: SMT delivers messages in any.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Buf, Bytes};

use crate::frame::{Frame, Malformed};

/// The bytes that the server has sent and nobody has read.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    ready: VecDeque<Bytes>,
    /// Bytes in `ready`.
    held: usize,
    early: BTreeMap<u64, Bytes>,
    /// Position of the first byte that has not come.
    position: u64,
    end: Option<u64>,
}

impl Reassembly {
    /// Takes a message.
    pub(crate) fn add(&mut self, frame: Frame) -> Result<(), Malformed> {
        if frame.is_end {
            self.end = Some(frame.position);
        }
        if !frame.bytes.is_empty() {
            let is_new = frame.position >= self.position && self.early.len() < EARLY_MAX;
            if !is_new || self.early.insert(frame.position, frame.bytes).is_some() {
                return Err(Malformed);
            }
        }
        while let Some(entry) = self.early.first_entry() {
            match entry.key().cmp(&self.position) {
                std::cmp::Ordering::Less => return Err(Malformed),
                std::cmp::Ordering::Greater => break,
                std::cmp::Ordering::Equal => {
                    let bytes = entry.remove();
                    self.position += bytes.len() as u64;
                    self.held += bytes.len();
                    self.ready.push_back(bytes);
                }
            }
        }
        Ok(())
    }

    /// The next bytes, if there are any.
    pub(crate) fn front(&self) -> Option<&Bytes> {
        self.ready.front()
    }

    /// Bytes that may be read.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Takes so many bytes of the front away.
    pub(crate) fn consume(&mut self, length: usize) {
        if let Some(front) = self.ready.front_mut() {
            front.advance(length);
            self.held -= length;
            if front.is_empty() {
                self.ready.pop_front();
            }
        }
    }

    /// Whether all bytes that the server has sent before the end were read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.ready.is_empty() && self.end == Some(self.position)
    }
}

/// Messages that may wait for bytes before them: more than a server sends without an answer.
const EARLY_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(position: u64, bytes: &'static [u8]) -> Frame {
        Frame { position, is_end: false, bytes: Bytes::from_static(bytes) }
    }

    fn read_all(reassembly: &mut Reassembly) -> Vec<u8> {
        let mut read = Vec::new();
        while let Some(front) = reassembly.front() {
            read.extend_from_slice(front);
            let length = front.len();
            reassembly.consume(length);
        }
        read
    }

    #[test]
    fn messages_in_any_order_become_the_stream() {
        let mut reassembly = Reassembly::default();
        for (position, bytes, expected) in
            [(3, &b"lo"[..], &b""[..]), (0, b"hel", b"hello"), (6, b"w", b""), (5, b" ", b" w")]
        {
            assert_eq!(reassembly.add(frame(position, bytes)), Ok(()));
            assert_eq!(reassembly.held(), expected.len());
            assert_eq!(read_all(&mut reassembly), expected);
            assert_eq!(reassembly.held(), 0);
        }
        let end = Frame { is_end: true, ..frame(7, b"") };
        assert!(!reassembly.is_at_end());
        assert_eq!(reassembly.add(end), Ok(()));
        assert!(reassembly.is_at_end());
    }

    #[test]
    fn bytes_that_were_there_before_are_refused() {
        let mut reassembly = Reassembly::default();
        assert_eq!(reassembly.add(frame(0, b"abc")), Ok(()));
        assert_eq!(reassembly.add(frame(0, b"abc")), Err(Malformed));
        assert_eq!(reassembly.add(frame(5, b"x")), Ok(()));
        assert_eq!(reassembly.add(frame(5, b"y")), Err(Malformed));
        assert_eq!(reassembly.add(frame(3, b"too long")), Err(Malformed));
    }
}
