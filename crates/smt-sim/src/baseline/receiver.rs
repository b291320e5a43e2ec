// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The receiving end of a stream: what is in order is read, what came early is kept and reported in
//! SACK blocks.

use std::collections::VecDeque;

use bytes::Bytes;

use super::framing::{Frame, FrameReader};
use super::limits::{BLOCKS_MAX, HEADER_LEN};
use super::segment::Block;

/// A stream's receiving end.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    /// The next byte in order.
    next: u64,
    reader: FrameReader,
    /// Stream bytes that came early and where they begin, in their order.
    early: VecDeque<(u64, Bytes)>,
    /// The places that those fill, the latest to change first (RFC 2018 §4).
    blocks: Vec<Block>,
}

impl Receiver {
    /// Takes a packet whose stream bytes are those from `start` on, and tells which messages they
    /// complete.
    pub(super) fn receive(&mut self, start: u64, packet: &Bytes, mut complete: impl FnMut(Frame)) {
        if start > self.next {
            self.keep(start, packet.slice(HEADER_LEN..));
            return;
        }
        self.read(start, &packet[HEADER_LEN..], &mut complete);
        if self.early.is_empty() {
            return;
        }
        while let Some((start, _)) = self.early.front()
            && *start <= self.next
            && let Some((start, bytes)) = self.early.pop_front()
        {
            self.read(start, &bytes, &mut complete);
        }
        self.blocks.retain(|block| block.end > self.next);
    }

    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The block of what came last is the first.
    pub(super) fn blocks(&self) -> [Block; BLOCKS_MAX] {
        std::array::from_fn(|at| self.blocks.get(at).copied().unwrap_or_default())
    }

    /// Reads what is new of bytes that begin at the next one or earlier.
    fn read(&mut self, start: u64, bytes: &[u8], complete: &mut impl FnMut(Frame)) {
        let known = (self.next - start).min(bytes.len() as u64);
        let new = &bytes[known as usize..];
        self.next += new.len() as u64;
        self.reader.read(new, complete);
    }

    fn keep(&mut self, start: u64, bytes: Bytes) {
        let mut block = Block { start, end: start + bytes.len() as u64 };
        let place = self.early.partition_point(|(at, _)| *at < start);
        if self.early.get(place).is_none_or(|(at, _)| *at != start) {
            self.early.insert(place, (start, bytes));
        }
        self.blocks.retain(|other| {
            let is_apart = other.end < block.start || block.end < other.start;
            if !is_apart {
                block.start = block.start.min(other.start);
                block.end = block.end.max(other.end);
            }
            is_apart
        });
        self.blocks.insert(0, block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::framing::FrameWriter;

    const LENGTH: u64 = 100;

    /// Gives a receiver segments of a stream of 10 messages, each of two segments.
    struct Stream {
        writer: FrameWriter,
        receiver: Receiver,
        complete: Vec<u64>,
    }

    impl Stream {
        fn new() -> Self {
            let mut writer = FrameWriter::default();
            for message in 0..10 {
                let length = 2 * LENGTH as u32 - 34;
                writer.push(Frame { message, length });
            }
            Self { writer, receiver: Receiver::default(), complete: Vec::new() }
        }

        fn arrive(&mut self, segments: impl IntoIterator<Item = u64>) {
            for segment in segments {
                let mut packet = vec![0; HEADER_LEN + LENGTH as usize];
                let payload = &mut packet[HEADER_LEN..];
                self.writer.fill(segment * LENGTH, payload);
                let complete = |frame: Frame| self.complete.push(frame.message);
                self.receiver.receive(segment * LENGTH, &Bytes::from(packet), complete);
            }
        }

        /// In segments.
        fn blocks(&self) -> Vec<(u64, u64)> {
            let blocks = self.receiver.blocks().into_iter();
            blocks
                .filter(|block| !block.is_empty())
                .map(|block| (block.start / LENGTH, block.end / LENGTH))
                .collect()
        }
    }

    #[test]
    fn nothing_is_complete_before_all_that_precedes_it() {
        let mut stream = Stream::new();
        stream.arrive(1..20);
        assert!(stream.complete.is_empty());
        stream.arrive([0]);
        assert!(stream.complete.iter().copied().eq(0..10));
        assert_eq!(stream.receiver.next(), 20 * LENGTH);
        assert!(stream.blocks().is_empty() && stream.receiver.early.is_empty());
    }

    #[test]
    fn blocks_grow_and_join_and_the_latest_is_first() {
        let mut stream = Stream::new();
        stream.arrive([2, 3]);
        assert_eq!(stream.blocks(), [(2, 4)]);
        stream.arrive([7, 5]);
        assert_eq!(stream.blocks(), [(5, 6), (7, 8), (2, 4)]);
        stream.arrive([9]);
        assert_eq!(stream.blocks(), [(9, 10), (5, 6), (7, 8)]);
        stream.arrive([4]);
        assert_eq!(stream.blocks(), [(2, 6), (9, 10), (7, 8)]);
        stream.arrive([0, 1]);
        assert_eq!(stream.blocks(), [(9, 10), (7, 8)]);
        assert_eq!(stream.receiver.next(), 6 * LENGTH);
    }

    #[test]
    fn bytes_that_come_twice_are_read_once() {
        let mut stream = Stream::new();
        stream.arrive([0, 0, 3, 3, 1, 2, 1, 3]);
        assert_eq!(stream.complete, [0, 1]);
        assert_eq!(stream.receiver.next(), 4 * LENGTH);
    }
}
