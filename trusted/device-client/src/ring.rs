// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A ring of frames in shared memory, with one writer and one reader.
//!
//! Each side keeps its own position in private memory, and only publishes copies. The other side's
//! position is fetched once and judged before it is used. A frame is copied out word by word before
//! anything in it is looked at, so memory that changes meanwhile changes nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::layout::RING_WORDS;
use crate::shared_memory::SharedMemory;

/// The longest body of a frame, in bytes: half a ring.
pub const FRAME_LEN_MAX: usize = RING_WORDS * 8 / 2;

/// The other side has written a position or a length that no writer or reader has.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct Corrupt(pub &'static str);

/// Where a ring and its two positions are in the shared memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) ring: usize,
    pub(crate) written: usize,
    pub(crate) read: usize,
}

pub(crate) const REQUESTS: Place = Place {
    ring: crate::layout::REQUESTS,
    written: crate::layout::REQUESTS_WRITTEN,
    read: crate::layout::REQUESTS_READ,
};

pub(crate) const ANSWERS: Place = Place {
    ring: crate::layout::ANSWERS,
    written: crate::layout::ANSWERS_WRITTEN,
    read: crate::layout::ANSWERS_READ,
};

/// The writing side of a ring.
pub struct Writer {
    memory: Arc<SharedMemory>,
    place: Place,
    /// Words written, published or not.
    written: u64,
    /// Words that the reader has read, as last seen.
    read: u64,
}

impl Writer {
    /// The host's side of the ring of requests, which is empty.
    #[must_use]
    pub fn of_requests(memory: Arc<SharedMemory>) -> Self {
        Self { memory, place: REQUESTS, written: 0, read: 0 }
    }

    /// The device's side of the ring of answers, which is empty.
    #[must_use]
    pub fn of_answers(memory: Arc<SharedMemory>) -> Self {
        Self { memory, place: ANSWERS, written: 0, read: 0 }
    }

    /// Whether a frame with a body of `length` bytes fits now.
    ///
    /// # Errors
    /// The reader's position is not one that it can have.
    pub fn has_room(&mut self, length: usize) -> Result<bool, Corrupt> {
        let words = words_of(length);
        if RING_WORDS as u64 - (self.written - self.read) >= words {
            return Ok(true);
        }
        let read = self.memory.word(self.place.read).load(Ordering::Acquire);
        if read < self.read || read > self.written {
            return Err(Corrupt("the reader has read what was not written"));
        }
        self.read = read;
        Ok(RING_WORDS as u64 - (self.written - self.read) >= words)
    }

    /// Writes a frame, which the reader sees after [`Writer::publish`]. False if it does not fit.
    ///
    /// # Errors
    /// Those of [`Writer::has_room`].
    pub fn push(&mut self, tag: u32, body: &[u8]) -> Result<bool, Corrupt> {
        if body.len() > FRAME_LEN_MAX || !self.has_room(body.len())? {
            return Ok(false);
        }
        self.put(u64::from(tag) << 32 | body.len() as u64);
        let (words, rest) = body.as_chunks::<8>();
        for word in words {
            self.put(u64::from_ne_bytes(*word));
        }
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.put(u64::from_ne_bytes(word));
        }
        Ok(true)
    }

    /// Shows the reader all frames that were written.
    pub fn publish(&self) {
        self.memory.word(self.place.written).store(self.written, Ordering::Release);
    }

    fn put(&mut self, word: u64) {
        let index = self.written as usize % RING_WORDS;
        self.memory.word(self.place.ring + index).store(word, Ordering::Relaxed);
        self.written += 1;
    }
}

/// The reading side of a ring.
pub struct Reader {
    memory: Arc<SharedMemory>,
    place: Place,
    /// Words that the writer has written, as last seen.
    written: u64,
    read: u64,
}

impl Reader {
    /// The device's side of the ring of requests, which is empty.
    #[must_use]
    pub fn of_requests(memory: Arc<SharedMemory>) -> Self {
        Self { memory, place: REQUESTS, written: 0, read: 0 }
    }

    /// The host's side of the ring of answers, which is empty.
    #[must_use]
    pub fn of_answers(memory: Arc<SharedMemory>) -> Self {
        Self { memory, place: ANSWERS, written: 0, read: 0 }
    }

    /// Whether there is no frame.
    ///
    /// # Errors
    /// The writer's position is not one that it can have.
    pub fn is_empty(&mut self) -> Result<bool, Corrupt> {
        if self.read == self.written {
            let written = self.memory.word(self.place.written).load(Ordering::Acquire);
            if written < self.written || written - self.read > RING_WORDS as u64 {
                return Err(Corrupt("the writer has written more than the ring takes"));
            }
            self.written = written;
        }
        Ok(self.read == self.written)
    }

    /// Copies the body of the next frame into `body`, and returns its tag; nothing if there is
    /// none. The writer gets the room back by [`Reader::publish`].
    ///
    /// # Errors
    /// Those of [`Reader::is_empty`], and a length that is longer than what was written.
    pub fn next(&mut self, body: &mut Vec<u8>) -> Result<Option<u32>, Corrupt> {
        if self.is_empty()? {
            return Ok(None);
        }
        let head = self.take();
        let (tag, length) = ((head >> 32) as u32, (head & 0xffff_ffff) as usize);
        if length > FRAME_LEN_MAX || words_of(length) - 1 > self.written - self.read {
            return Err(Corrupt("a frame is longer than what was written"));
        }
        body.clear();
        for _ in 0..length / 8 {
            let word = self.take();
            body.extend_from_slice(&word.to_ne_bytes());
        }
        if !length.is_multiple_of(8) {
            let word = self.take();
            body.extend_from_slice(&word.to_ne_bytes()[..length % 8]);
        }
        Ok(Some(tag))
    }

    /// Gives the writer the room of all frames that were read.
    pub fn publish(&self) {
        self.memory.word(self.place.read).store(self.read, Ordering::Release);
    }

    fn take(&mut self) -> u64 {
        let index = self.read as usize % RING_WORDS;
        self.read += 1;
        self.memory.word(self.place.ring + index).load(Ordering::Relaxed)
    }
}

/// Words of a frame with a body of `length` bytes.
fn words_of(length: usize) -> u64 {
    1 + length.div_ceil(8) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rings() -> (Arc<SharedMemory>, Writer, Reader) {
        let (memory, _) = SharedMemory::create().unwrap();
        let memory = Arc::new(memory);
        let writer = Writer::of_requests(memory.clone());
        let reader = Reader::of_requests(memory.clone());
        (memory, writer, reader)
    }

    #[test]
    fn frames_of_all_lengths_arrive_in_order() {
        let (_, mut writer, mut reader) = rings();
        let mut body = Vec::new();
        for round in 0..2000 {
            let sent: Vec<u8> = (0..round).map(|byte| byte as u8).collect();
            assert!(writer.push(round, &sent).unwrap());
            writer.publish();
            assert_eq!(reader.next(&mut body), Ok(Some(round)));
            assert_eq!(body, sent);
            assert_eq!(reader.next(&mut body), Ok(None));
            reader.publish();
        }
    }

    #[test]
    fn a_full_ring_takes_no_frame_until_one_is_read() {
        let (_, mut writer, mut reader) = rings();
        let long = vec![1; FRAME_LEN_MAX - 8];
        assert!(writer.push(1, &long).unwrap());
        assert!(writer.push(2, &long).unwrap());
        assert!(!writer.push(3, &[]).unwrap());
        writer.publish();
        let mut body = Vec::new();
        assert_eq!(reader.next(&mut body), Ok(Some(1)));
        assert!(!writer.push(3, &[]).unwrap());
        reader.publish();
        assert!(writer.push(3, &[]).unwrap());
    }

    #[test]
    fn a_frame_that_is_too_long_is_not_taken() {
        let (_, mut writer, _) = rings();
        assert!(!writer.push(1, &vec![0; FRAME_LEN_MAX + 1]).unwrap());
    }

    #[test]
    fn positions_that_nobody_has_are_refused() {
        for written in [RING_WORDS as u64 + 1, u64::MAX] {
            let (memory, _, mut reader) = rings();
            memory.word(REQUESTS.written).store(written, Ordering::Relaxed);
            assert!(reader.is_empty().is_err(), "{written}");
        }
        let (memory, mut writer, mut reader) = rings();
        assert!(writer.push(1, &[0; 80]).unwrap());
        writer.publish();
        let mut body = Vec::new();
        assert_eq!(reader.next(&mut body), Ok(Some(1)));
        // The writer goes back behind what was read.
        memory.word(REQUESTS.written).store(3, Ordering::Relaxed);
        assert!(reader.is_empty().is_err());
        // The reader claims what was not written.
        memory.word(REQUESTS.read).store(u64::MAX, Ordering::Relaxed);
        let long = vec![0; FRAME_LEN_MAX - 8];
        assert!(writer.push(2, &long).unwrap());
        assert!(writer.push(3, &long).is_err());
    }

    #[test]
    fn a_length_beyond_what_was_written_is_refused() {
        let (memory, mut writer, mut reader) = rings();
        assert!(writer.push(1, &[0; 8]).unwrap());
        writer.publish();
        memory.word(REQUESTS.ring).store(9, Ordering::Relaxed);
        assert!(reader.next(&mut Vec::new()).is_err());
    }

    #[test]
    fn memory_that_changes_after_a_frame_was_read_changes_nothing() {
        let (memory, mut writer, mut reader) = rings();
        assert!(writer.push(1, b"attested").unwrap());
        writer.publish();
        let mut body = Vec::new();
        reader.next(&mut body).unwrap();
        memory.word(REQUESTS.ring + 1).store(0, Ordering::Relaxed);
        assert_eq!(body, b"attested");
    }
}
