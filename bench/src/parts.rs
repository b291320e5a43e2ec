// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A reply in parts: how many its request wants, what they say, and whether each has come once and
//! in order. The same for all peers.
//!
//! A part begins with the tag of its call and its own number; the rest is zeros.

use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;

use crate::failure::Failure;
use crate::frame;

/// The parts that a request wants.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Wanted {
    /// Names the call.
    tag: u32,
    count: u32,
    /// Bytes of each.
    bytes: u32,
}

impl Wanted {
    /// The parts of a new call: `count` of `bytes` each, at least [`PART_MIN`].
    pub(crate) fn new(count: u32, bytes: u32) -> Self {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        Self { tag: CALLS.fetch_add(1, Ordering::Relaxed), count, bytes }
    }

    /// The request for them.
    pub(crate) fn request(&self, length: u32) -> Bytes {
        let mut bytes = frame::request(length.max(REQUEST_MIN), self.bytes).to_vec();
        bytes[COUNT].copy_from_slice(&self.count.to_be_bytes());
        bytes[TAG].copy_from_slice(&self.tag.to_be_bytes());
        bytes.into()
    }

    /// Reads a request: `None` if it wants no parts.
    pub(crate) fn of(request: &[u8]) -> Option<Self> {
        let count = word(request, COUNT).filter(|count| (1..=COUNT_MAX).contains(count))?;
        let bytes = frame::reply_length(request);
        (bytes >= PART_MIN).then_some(Self { tag: word(request, TAG)?, count, bytes: bytes as u32 })
    }

    /// All of them, in order.
    pub(crate) fn parts(self) -> impl Iterator<Item = Bytes> + Send + 'static {
        (0..self.count).map(move |number| {
            let mut bytes = vec![0; self.bytes as usize];
            bytes[..4].copy_from_slice(&self.tag.to_be_bytes());
            bytes[4..PART_MIN].copy_from_slice(&number.to_be_bytes());
            bytes.into()
        })
    }

    /// A check of the parts that come.
    pub(crate) fn check(self) -> Check {
        Check { wanted: self, next: 0 }
    }
}

/// How many parts of a call have come.
#[derive(Debug)]
pub(crate) struct Check {
    wanted: Wanted,
    next: u32,
}

impl Check {
    /// Takes the next part.
    pub(crate) fn take(&mut self, part: &[u8]) -> Result<(), Failure> {
        let Wanted { tag, bytes, .. } = self.wanted;
        let is_next = part.len() == bytes as usize
            && word(part, 0..4) == Some(tag)
            && word(part, 4..PART_MIN) == Some(self.next);
        if !is_next {
            return Err(Failure::new(format!(
                "instead of part {} of call {tag}, {bytes} B, came {:?} of call {:?}, {} B",
                self.next,
                word(part, 4..PART_MIN),
                word(part, 0..4),
                part.len()
            )));
        }
        self.next += 1;
        Ok(())
    }

    /// There are no more.
    pub(crate) fn end(self) -> Result<(), Failure> {
        let Wanted { tag, count, .. } = self.wanted;
        match self.next == count {
            true => Ok(()),
            false => Err(Failure::new(format!(
                "call {tag} has ended behind {} of {count} parts",
                self.next
            ))),
        }
    }
}

fn word(bytes: &[u8], range: std::ops::Range<usize>) -> Option<u32> {
    let word = bytes.get(range)?.try_into().ok()?;
    Some(u32::from_be_bytes(word))
}

/// Bytes of the shortest part.
pub(crate) const PART_MIN: usize = 8;
/// Parts of one reply.
const COUNT_MAX: u32 = 1 << 20;
/// Where a request says how many parts it wants, and whose they are.
const COUNT: std::ops::Range<usize> = 8..12;
const TAG: std::ops::Range<usize> = 12..16;
const REQUEST_MIN: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_which_parts_it_wants() {
        let wanted = Wanted::new(3, 64);
        assert_eq!(Wanted::of(&wanted.request(64)), Some(wanted));
        assert_eq!(Wanted::of(&frame::request(64, 64)), None);
    }

    #[test]
    fn parts_that_come_once_and_in_order_are_all() {
        let wanted = Wanted::new(3, 64);
        let mut check = wanted.check();
        for part in wanted.parts() {
            check.take(&part).unwrap();
        }
        check.end().unwrap();
    }

    #[test]
    fn a_part_that_lacks_is_double_or_of_another_call_is_noticed() {
        let wanted = Wanted::new(2, 64);
        let parts: Vec<Bytes> = wanted.parts().collect();
        assert!(wanted.check().take(&parts[1]).is_err(), "part 0 lacks");
        assert!(wanted.check().take(&parts[0][..63]).is_err());
        let mut check = wanted.check();
        check.take(&parts[0]).unwrap();
        assert!(check.take(&parts[0]).is_err(), "it has come before");
        assert!(check.end().is_err(), "part 1 lacks");
        let other = Wanted::new(2, 64).parts().next().unwrap();
        assert!(wanted.check().take(&other).is_err());
    }
}
