// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The contents of messages, and how streams of bytes are cut into them. The same for all peers.
//!
//! A request begins with the length that its reply is to have, and how many microseconds its
//! handler is to compute; the rest is zeros. If the length is the request's own the reply is the
//! request, else zeros.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use bytes::Bytes;

/// A request of this length that wants a reply of that length.
pub(crate) fn request(length: u32, reply: u32) -> Bytes {
    let mut bytes = vec![0; length as usize];
    bytes[..4].copy_from_slice(&reply.to_be_bytes());
    bytes.into()
}

/// The same, whose handler computes for `work_us` microseconds.
pub(crate) fn busy_request(length: u32, reply: u32, work_us: u32) -> Bytes {
    let mut bytes = request(length, reply).to_vec();
    if let Some(work) = bytes.get_mut(WORK) {
        work.copy_from_slice(&work_us.to_be_bytes());
    }
    bytes.into()
}

/// Computes for as long as a request wants it.
pub(crate) fn work(request: &[u8]) {
    let work = request.get(WORK).and_then(|bytes| bytes.try_into().ok());
    let work_us = work.map_or(0, u32::from_be_bytes);
    if work_us > 0 {
        let (began, time) = (Instant::now(), Duration::from_micros(work_us.into()));
        while began.elapsed() < time.min(WORK_MAX) {
            std::hint::spin_loop();
        }
    }
}

/// The reply of a server to `request`.
pub(crate) fn answer(request: Bytes) -> Bytes {
    work(&request);
    match reply_length(&request) {
        length if length == request.len() => request,
        length => zeros(length),
    }
}

/// The length of the reply to a request.
pub(crate) fn reply_length(request: &[u8]) -> usize {
    let length = request.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
    (length as usize).min(ZEROS_BYTES)
}

/// `length` zeros, without copying them.
pub(crate) fn zeros(length: usize) -> Bytes {
    static ZEROS: LazyLock<Bytes> = LazyLock::new(|| vec![0; ZEROS_BYTES].into());
    ZEROS.slice(..length.min(ZEROS_BYTES))
}

/// Before each message on a connection that carries several at once: length and number, both in
/// four bytes.
pub(crate) const NUMBERED_HEADER: usize = 8;

/// The header of a numbered message.
pub(crate) fn numbered(length: usize, number: u32) -> [u8; NUMBERED_HEADER] {
    let mut header = [0; NUMBERED_HEADER];
    header[..4].copy_from_slice(&(length as u32).to_be_bytes());
    header[4..].copy_from_slice(&number.to_be_bytes());
    header
}

/// The first whole message in `bytes`: its number, and where its body is.
pub(crate) fn first_numbered(bytes: &[u8]) -> Option<(u32, std::ops::Range<usize>)> {
    let (number, body) = parse(bytes)?;
    (bytes.len() >= body.end).then_some((number, body))
}

/// How many bytes the first message lacks; 0 if that is not known yet.
pub(crate) fn missing(bytes: &[u8]) -> usize {
    parse(bytes).map_or(0, |(_, body)| body.end.saturating_sub(bytes.len()))
}

fn parse(bytes: &[u8]) -> Option<(u32, std::ops::Range<usize>)> {
    let header: &[u8; NUMBERED_HEADER] = bytes.first_chunk()?;
    let (length, number) = header.split_at(4);
    let word = |part: &[u8]| part.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
    let body = NUMBERED_HEADER..NUMBERED_HEADER + word(length) as usize;
    Some((word(number), body))
}

/// Where a request says how long its handler computes.
const WORK: std::ops::Range<usize> = 4..8;
/// However long a request says.
const WORK_MAX: Duration = Duration::from_millis(10);
/// The largest message.
pub(crate) const ZEROS_BYTES: usize = 1 << 22;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_as_long_as_was_wanted() {
        assert_eq!(answer(request(64, 64)), request(64, 64));
        assert_eq!(answer(request(1_000, 10)).len(), 10);
    }

    #[test]
    fn handler_computes_for_as_long_as_is_wanted() {
        let began = Instant::now();
        assert_eq!(answer(busy_request(64, 64, 500)).len(), 64);
        assert!(began.elapsed() >= Duration::from_micros(500));
    }

    #[test]
    fn only_a_whole_message_is_taken() {
        let mut bytes = numbered(3, 7).to_vec();
        bytes.extend_from_slice(b"ab");
        assert_eq!((first_numbered(&bytes), missing(&bytes)), (None, 1));
        bytes.extend_from_slice(b"cd");
        assert_eq!(first_numbered(&bytes), Some((7, 8..11)));
    }
}
