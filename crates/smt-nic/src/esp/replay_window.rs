// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The window of numbers that may still come, and which of them have (RFC 4303 §3.4.3).

use alloc::vec::Vec;

/// Why a packet's number is not taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stale {
    /// A packet of the number was opened before, or no sender has such a number.
    Seen,
    /// It is below the window.
    BelowWindow,
}

/// The numbers of an association that were opened.
#[derive(Clone, Debug)]
pub(super) struct ReplayWindow {
    /// The highest number that was opened; 0 before the first.
    highest: u64,
    width: u64,
    is_extended: bool,
    /// A bit for each number of the window, at the number modulo their count.
    bits: Vec<u64>,
}

impl ReplayWindow {
    /// A window of so many numbers. All below `first` count as seen.
    pub(super) fn new(width: u32, is_extended: bool, first: u64) -> Self {
        let highest = first.saturating_sub(1);
        // Before an association's first packet there are none to have been seen.
        let seen = if highest == 0 { 0 } else { u64::MAX };
        Self {
            highest,
            width: width.into(),
            is_extended,
            bits: alloc::vec![seen; width.div_ceil(64).max(1) as usize],
        }
    }

    pub(super) fn highest(&self) -> u64 {
        self.highest
    }

    /// The whole number of a packet, by its lower half: the only one of these bits in the 2^32
    /// numbers that begin with the window (RFC 4303 appendix A2.2).
    pub(super) fn restore(&self, low: u32) -> Result<u64, Stale> {
        if !self.is_extended {
            return Ok(low.into());
        }
        // Below 0 before the window is full.
        let begin = i128::from(self.highest) - i128::from(self.width - 1);
        let distance = low.wrapping_sub(begin as u32);
        let number = begin + i128::from(distance);
        u64::try_from(number).map_err(|_| Stale::BelowWindow)
    }

    /// Whether a packet of the number may be opened.
    pub(super) fn check(&self, number: u64) -> Result<(), Stale> {
        if number == 0 {
            return Err(Stale::Seen);
        }
        if number > self.highest {
            return Ok(());
        }
        if self.highest - number >= self.width {
            return Err(Stale::BelowWindow);
        }
        let (word, bit) = self.place(number);
        match self.bits[word] & bit {
            0 => Ok(()),
            _ => Err(Stale::Seen),
        }
    }

    /// Takes a number that was checked, of a packet that has authenticated.
    pub(super) fn take(&mut self, number: u64) {
        let skipped = number.saturating_sub(self.highest).min(self.places());
        for back in 0..skipped {
            let (word, bit) = self.place(number - back);
            self.bits[word] &= !bit;
        }
        self.highest = self.highest.max(number);
        let (word, bit) = self.place(number);
        self.bits[word] |= bit;
    }

    fn places(&self) -> u64 {
        self.bits.len() as u64 * 64
    }

    fn place(&self, number: u64) -> (usize, u64) {
        let place = number % self.places();
        ((place / 64) as usize, 1 << (place % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window_at(highest: u64) -> ReplayWindow {
        let mut window = ReplayWindow::new(64, true, 1);
        window.take(highest);
        window
    }

    #[test]
    fn the_upper_half_is_that_of_the_window_or_of_what_follows_it() {
        let window = window_at((5 << 32) | 1_000);
        assert_eq!(window.restore(937), Ok((5 << 32) | 937));
        assert_eq!(window.restore(936), Ok((6 << 32) | 936));
        let window = window_at((5 << 32) | 10);
        assert_eq!(window.restore(u32::MAX), Ok((4 << 32) | 0xFFFF_FFFF));
        assert_eq!(window.restore(11), Ok((5 << 32) | 11));
    }

    #[test]
    fn numbers_before_the_first_and_behind_the_last_are_none() {
        let window = ReplayWindow::new(64, true, 1);
        assert_eq!(window.restore(u32::MAX), Err(Stale::BelowWindow));
        assert_eq!(window_at(u64::MAX).restore(5), Err(Stale::BelowWindow));
        assert_eq!(window.check(0), Err(Stale::Seen));
    }

    #[test]
    fn a_number_is_taken_once_in_any_order() {
        let mut window = ReplayWindow::new(64, false, 1);
        for number in [3, 1, 70, 40, 7] {
            assert_eq!(window.check(number), Ok(()), "{number}");
            window.take(number);
            assert_eq!(window.check(number), Err(Stale::Seen), "{number}");
        }
        assert_eq!(window.check(6), Err(Stale::BelowWindow));
        assert_eq!(window.check(8), Ok(()));
    }

    #[test]
    fn a_leap_beyond_the_window_forgets_all_bits() {
        let mut window = ReplayWindow::new(64, false, 1);
        window.take(5);
        window.take(5 + 6_400);
        assert_eq!(window.check(5 + 6_400 - 63), Ok(()));
        assert_eq!(window.check(5 + 6_400 - 64), Err(Stale::BelowWindow));
    }

    #[test]
    fn all_below_the_first_number_count_as_seen() {
        let window = ReplayWindow::new(64, true, 1_000);
        assert_eq!(window.check(999), Err(Stale::Seen));
        assert_eq!(window.check(1_000), Ok(()));
    }
}
