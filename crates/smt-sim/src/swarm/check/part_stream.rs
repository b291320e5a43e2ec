// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parts of a call: how many there are, and every byte of them, follow from the call's number.

use bytes::Bytes;
use smt_proto::{Body, PartMarks};

use super::extras::cut;
use crate::random::{Random, mix};

/// Which messages of a call come in parts, and when its caller gives up.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct InParts {
    /// Parts of the request follow.
    pub request: bool,
    /// The reply may come in parts.
    pub reply: bool,
    /// The caller gives up after so many parts, sent and taken together, if there are as many.
    pub given_up_after: Option<u32>,
}

impl InParts {
    /// Draws a call in parts that its caller does not give up.
    pub(crate) fn draw(random: &mut Random) -> Self {
        let (request, reply) = *random.pick(&[(true, true), (true, false), (false, true)]);
        Self { request, reply, given_up_after: None }
    }

    /// Whether anything comes in parts.
    pub fn has_parts(&self) -> bool {
        self.request || self.reply
    }

    /// The marks of the request.
    pub(crate) fn marks(&self) -> PartMarks {
        PartMarks { reply_in_parts: self.reply, more: self.request, number: 0 }
    }
}

/// The parts of a call in one direction.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct PartStream {
    /// The number of the call.
    pub call: u64,
    /// Whether they are parts of the reply.
    pub is_reply: bool,
}

impl PartStream {
    /// How many parts there are, if nothing ends the call before; at least one.
    pub(crate) fn count(&self) -> u32 {
        let mut random = Random::new(self.seed());
        let most = *random.pick(&[1, 4, 4, 20, 20, 60]);
        random.between(1, most) as u32
    }

    /// Bytes of a part, for a reader that takes so many.
    pub(crate) fn length(&self, index: u32, most: u32) -> u32 {
        let mut random = Random::new(mix(self.seed() ^ u64::from(index)));
        let (least, longest): (u32, u32) = match random.below(100) {
            0..10 => (0, 0),
            10..60 => (1, 300),
            60..80 => (300, 1_500),
            80..97 => (1_500, 20_000),
            _ => (20_000, PART_LONGEST),
        };
        // Some parts have all that their reader takes.
        let drawn = random.between(least.into(), longest.into()) as u32;
        drawn.min(most)
    }

    /// A part of this length.
    pub fn part(&self, index: u32, length: u32) -> Bytes {
        let mut bytes = vec![0; length as usize];
        Random::new(mix(!self.seed() ^ u64::from(index))).fill(&mut bytes);
        Bytes::from(bytes)
    }

    /// The same as its writer sends it: some are chains of buffers.
    pub(crate) fn body(&self, index: u32, length: u32) -> Body {
        let seed = mix(self.seed() ^ u64::from(index));
        cut(seed, self.part(index, length)).body
    }

    fn seed(&self) -> u64 {
        let number = match self.is_reply {
            true => !self.call,
            false => self.call,
        };
        mix(number ^ PARTS)
    }
}

/// Bytes of the longest part.
pub(crate) const PART_LONGEST: u32 = 60_000;
/// Keeps what is drawn of parts apart from the bytes of their call.
const PARTS: u64 = 0x5041_5254;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_stream_differ_from_each_other_and_from_those_of_other_streams() {
        let streams = [(7, false), (7, true), (8, false)];
        let streams = streams.map(|(call, is_reply)| PartStream { call, is_reply });
        let parts = streams.map(|stream| [0, 1].map(|index| stream.part(index, 20)));
        let all: std::collections::BTreeSet<_> = parts.iter().flatten().collect();
        assert_eq!(all.len(), 6);
    }

    #[test]
    fn a_part_is_as_long_as_its_reader_takes_at_most() {
        let lengths = (0..1_000).map(|call| {
            let stream = PartStream { call, is_reply: true };
            stream.length(3, 100)
        });
        let lengths: Vec<_> = lengths.collect();
        assert!(lengths.contains(&0) && lengths.contains(&100));
        assert!(lengths.iter().all(|length| *length <= 100));
    }
}
