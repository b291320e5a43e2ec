// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The numbers that the device gives to packets under one key: of ESP, and the IVs of PSP.

use crate::engine::EngineError;

/// Numbers from one on, each of which is given once. They go forward only, whatever the host says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketNumbers {
    /// The number of the next packet; `None` after the highest one.
    next: Option<u64>,
    highest: u64,
}

impl PacketNumbers {
    /// Numbers from `first` to `highest`. `None`: the first is 0, or beyond the highest.
    pub(crate) fn new(first: u64, highest: u64) -> Option<Self> {
        (1..=highest).contains(&first).then_some(Self { next: Some(first), highest })
    }

    /// The number of the next packet; `None` after the highest one.
    pub(crate) fn next(&self) -> Option<u64> {
        self.next
    }

    /// Goes on with this number. A lower one changes nothing: it was given.
    pub(crate) fn go_on_with(&mut self, number: u64) {
        let is_forward = self.next.is_some_and(|next| number > next);
        if is_forward && number <= self.highest {
            self.next = Some(number);
        }
    }

    /// Whether so many packets may still be numbered.
    ///
    /// # Errors
    /// [`EngineError::NumbersUsedUp`]
    pub(crate) fn suffice(&self, packets: u64) -> Result<(), EngineError> {
        // The first number is 1: the distance has room for one more.
        let left = self.next.map_or(0, |next| self.highest - next + 1);
        match packets <= left {
            true => Ok(()),
            false => Err(EngineError::NumbersUsedUp),
        }
    }

    /// Gives the next number, which is used from here on, whatever comes.
    ///
    /// # Errors
    /// [`EngineError::NumbersUsedUp`]
    pub(crate) fn take(&mut self) -> Result<u64, EngineError> {
        let number = self.next.ok_or(EngineError::NumbersUsedUp)?;
        let next = number.checked_add(1);
        self.next = next.filter(|next| *next <= self.highest);
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    const USED_UP: Result<u64, EngineError> = Err(EngineError::NumbersUsedUp);

    #[test]
    fn numbers_begin_at_one_at_least_and_end_with_the_highest() {
        for first in [0, 8, u64::MAX] {
            assert!(PacketNumbers::new(first, 7).is_none());
        }
        for highest in [7, u64::MAX] {
            let mut numbers = PacketNumbers::new(highest - 1, highest).unwrap();
            assert!(numbers.suffice(2).is_ok() && numbers.suffice(3).is_err());
            assert_eq!(numbers.take(), Ok(highest - 1));
            assert_eq!(numbers.take(), Ok(highest));
            assert_eq!((numbers.next(), numbers.take()), (None, USED_UP));
            assert!(numbers.suffice(0).is_ok() && numbers.suffice(1).is_err());
        }
    }

    #[test]
    fn numbers_go_forward_only() {
        let mut numbers = PacketNumbers::new(3, 9).unwrap();
        for (named, next) in [(2, 3), (3, 3), (5, 5), (4, 5), (10, 5), (9, 9)] {
            numbers.go_on_with(named);
            assert_eq!(numbers.next(), Some(next), "after {named}");
        }
        numbers.take().unwrap();
        numbers.go_on_with(9);
        assert_eq!(numbers.next(), None);
    }
}
