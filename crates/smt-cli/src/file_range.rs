// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ranges of a file that is too large for one message, as `smt call` asks `smt serve --dir` for
//! them (docs/SERVE.md).
//!
//! 1. A request for a file that is too large is refused with [`TOO_LARGE`].
//! 2. The caller asks again with the metadata [`RANGE`]. The reply is a [`Part`].
//! 3. Further requests have the metadata [`IF_MATCH`] too. If the file is another by now they are
//!    refused with [`CHANGED`].

use std::fs::Metadata as FileFacts;
use std::os::unix::fs::MetadataExt;

use bytes::{BufMut, Bytes, BytesMut};

/// Name of the metadata with the range: `bytes=FIRST-LAST`, both included, as HTTP writes it.
pub(crate) const RANGE: &str = "range";
/// Name of the metadata with the tag of the version that the part must be of.
pub(crate) const IF_MATCH: &str = "if-match";
/// The code of a refusal: the file does not fit a message, and may be had in ranges. No other
/// application should have this number by chance: it is "smt" and 1.
pub(crate) const TOO_LARGE: u32 = 0x736d_7401;
/// The code of a refusal: the file is not the one any more whose tag was given.
pub(crate) const CHANGED: u32 = 0x736d_7402;
/// Bytes in front of the file's in the reply: size and tag.
pub(crate) const HEADER_LEN: usize = 8 + TAG_LEN;

/// Tells versions of a file apart: its times of change and its number in the file system.
pub(crate) type Tag = [u8; TAG_LEN];

/// A part of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Part {
    /// Bytes of the whole file.
    pub(crate) size: u64,
    pub(crate) tag: Tag,
    pub(crate) bytes: Bytes,
}

impl Part {
    /// The part as the body of a reply.
    pub(crate) fn encode(&self) -> Bytes {
        let mut body = BytesMut::with_capacity(HEADER_LEN + self.bytes.len());
        body.put_u64(self.size);
        body.put_slice(&self.tag);
        body.put_slice(&self.bytes);
        body.freeze()
    }

    /// Understands the body of a reply.
    pub(crate) fn decode(body: Bytes) -> Option<Self> {
        let (size, rest) = body.split_first_chunk()?;
        let (tag, _) = rest.split_first_chunk()?;
        Some(Self { size: u64::from_be_bytes(*size), tag: *tag, bytes: body.slice(HEADER_LEN..) })
    }
}

/// The tag of the present version of a file.
pub(crate) fn tag(facts: &FileFacts) -> Tag {
    let nanoseconds = |seconds: i64, more: i64| (seconds * 1_000_000_000 + more).to_be_bytes();
    let parts = [
        nanoseconds(facts.mtime(), facts.mtime_nsec()),
        nanoseconds(facts.ctime(), facts.ctime_nsec()),
        facts.ino().to_be_bytes(),
    ];
    let mut tag = [0; TAG_LEN];
    tag.copy_from_slice(parts.as_flattened());
    tag
}

/// A range as metadata.
pub(crate) fn range_text(first: u64, length: u64) -> String {
    format!("bytes={first}-{}", first + length - 1)
}

/// First byte and length of a range; `None` if it is none.
pub(crate) fn parse_range(text: &[u8]) -> Option<(u64, u64)> {
    let text = std::str::from_utf8(text).ok()?.strip_prefix("bytes=")?;
    let (first, last) = text.split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    let length = last.checked_sub(first)?.checked_add(1)?;
    Some((first, length))
}

const TAG_LEN: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_read_as_it_was_written() {
        let part = Part { size: 1 << 40, tag: [7; TAG_LEN], bytes: Bytes::from_static(b"content") };
        assert_eq!(Part::decode(part.encode()), Some(part));
        assert_eq!(Part::decode(Bytes::from_static(&[0; HEADER_LEN - 1])), None);
    }

    #[test]
    fn ranges_are_read_as_they_were_written_and_others_are_none() {
        for (first, length) in [(0, 1), (7, 100), (1 << 40, 1 << 22)] {
            let text = range_text(first, length);
            assert_eq!(parse_range(text.as_bytes()), Some((first, length)), "{text}");
        }
        for text in [
            "",
            "bytes=",
            "bytes=5",
            "bytes=5-4",
            "bytes=-5",
            "bytes=0-18446744073709551615",
            "lines=1-2",
        ] {
            assert_eq!(parse_range(text.as_bytes()), None, "{text}");
        }
    }
}
