// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The sender's sequence numbers (RFC 4303 §3.3.3).

/// The numbers of the packets to come: each is given out once.
///
/// The IV of a packet is its number, and a second packet of the same number would end the secrecy
/// of both (RFC 4106 §3.1). The type is therefore not `Clone`.
#[derive(Debug)]
pub(crate) struct SequenceNumbers {
    next: Option<u64>,
    last: u64,
}

impl SequenceNumbers {
    /// Numbers from `first` on, of 64 bits if they are extended, else of 32.
    pub(crate) fn new(first: u64, extended: bool) -> Option<Self> {
        let last = if extended { u64::MAX } else { u32::MAX.into() };
        (1..=last).contains(&first).then_some(Self { next: Some(first), last })
    }

    /// The next number; nothing once all are used.
    pub(crate) fn take(&mut self) -> Option<u64> {
        let number = self.next?;
        self.next = (number < self.last).then(|| number + 1);
        Some(number)
    }

    /// The number of the next packet, if one is left.
    pub(crate) const fn next(&self) -> Option<u64> {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_at_their_width() {
        for (extended, last) in [(false, u64::from(u32::MAX)), (true, u64::MAX)] {
            let mut numbers = SequenceNumbers::new(last - 1, extended).unwrap();
            assert_eq!(numbers.take(), Some(last - 1));
            assert_eq!(numbers.take(), Some(last));
            assert_eq!(numbers.next(), None);
            assert_eq!(numbers.take(), None);
            assert_eq!(numbers.take(), None);
        }
    }

    #[test]
    fn a_first_number_that_is_none_is_refused() {
        assert!(SequenceNumbers::new(0, true).is_none());
        assert!(SequenceNumbers::new(1 << 32, false).is_none());
        assert!(SequenceNumbers::new(1 << 32, true).is_some());
    }
}
