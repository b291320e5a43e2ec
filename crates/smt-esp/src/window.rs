// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The receiver's window of sequence numbers (RFC 4303 §3.4.3, appendix A).

use crate::limits::WINDOW_WIDTHS;

/// Why a sequence number is not taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Unfit {
    /// The number was there before, or is none that a sender has.
    Replay,
    /// The number is left of the window.
    BelowWindow,
}

/// Which sequence numbers have been received, the latest `width` of them.
///
/// The window moves only by [`Self::mark`], which is called once a packet has authenticated.
#[derive(Debug)]
pub(crate) struct ReplayWindow {
    /// The highest number that was authenticated; 0 before the first.
    top: u64,
    width: u64,
    extended: bool,
    /// A bit for each number, at the number modulo their count: at least `width` of them.
    seen: Box<[u64]>,
}

impl ReplayWindow {
    /// A window of `width` numbers; with `extended` numbers have 64 bits. Those before `first`
    /// count as seen.
    pub(crate) fn new(width: u32, extended: bool, first: u64) -> Option<Self> {
        let top = first.saturating_sub(1);
        let seen = if top > 0 { u64::MAX } else { 0 };
        WINDOW_WIDTHS.contains(&width).then(|| Self {
            top,
            width: width.into(),
            extended,
            seen: vec![seen; width.div_ceil(64) as usize].into_boxed_slice(),
        })
    }

    /// The whole number of a packet by its lower 32 bits (RFC 4303 appendix A2.2).
    pub(crate) fn infer(&self, low: u32) -> Result<u64, Unfit> {
        let high = if self.extended { self.high(low)? } else { 0 };
        Ok((u64::from(high) << 32) | u64::from(low))
    }

    fn high(&self, low: u32) -> Result<u32, Unfit> {
        let (top_high, top_low) = ((self.top >> 32) as u32, self.top as u32);
        let width = self.width as u32;
        let bottom = top_low.wrapping_sub(width - 1);
        let high = if top_low >= width - 1 {
            // Case A: the window lies in one subspace of numbers.
            if low >= bottom { Some(top_high) } else { top_high.checked_add(1) }
        } else {
            // Case B: the window lies across the border of two subspaces.
            if low >= bottom { top_high.checked_sub(1) } else { Some(top_high) }
        };
        // There is no subspace before the first one, or after the last.
        high.ok_or(Unfit::BelowWindow)
    }

    /// Whether a packet of this number may be opened.
    pub(crate) fn check(&self, number: u64) -> Result<(), Unfit> {
        // The first packet has the number 1 (RFC 4303 §3.3.3).
        if number == 0 {
            return Err(Unfit::Replay);
        }
        if number > self.top {
            return Ok(());
        }
        if self.top - number >= self.width {
            return Err(Unfit::BelowWindow);
        }
        let (word, bit) = self.slot(number);
        if self.seen[word] & bit == 0 { Ok(()) } else { Err(Unfit::Replay) }
    }

    /// Remembers a number, which must have passed [`Self::check`] and authenticated.
    pub(crate) fn mark(&mut self, number: u64) {
        if number > self.top {
            let slots = self.seen.len() as u64 * 64;
            if number - self.top >= slots {
                self.seen.fill(0);
            } else {
                for skipped in self.top + 1..number {
                    self.clear(skipped);
                }
            }
            self.top = number;
        }
        let (word, bit) = self.slot(number);
        self.seen[word] |= bit;
    }

    fn clear(&mut self, number: u64) {
        let (word, bit) = self.slot(number);
        self.seen[word] &= !bit;
    }

    fn slot(&self, number: u64) -> (usize, u64) {
        let slot = number % (self.seen.len() as u64 * 64);
        ((slot / 64) as usize, 1 << (slot % 64))
    }

    /// The highest number that was authenticated; 0 before the first.
    pub(crate) const fn top(&self) -> u64 {
        self.top
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn window_at(top: u64, width: u32) -> ReplayWindow {
        let mut window = ReplayWindow::new(width, true, 1).unwrap();
        window.mark(top);
        window
    }

    #[test]
    fn the_high_bits_follow_appendix_a_in_both_cases() {
        // Case A: the whole window has the high bits 5.
        let window = window_at((5 << 32) | 1000, 64);
        assert_eq!(window.infer(937), Ok((5 << 32) | 937));
        assert_eq!(window.infer(936), Ok((6 << 32) | 936));
        // Case B: the left of the window has the high bits 4.
        let window = window_at((5 << 32) | 10, 64);
        assert_eq!(window.infer(u32::MAX - 52), Ok((4 << 32) | (0xFFFF_FFFF - 52)));
        assert_eq!(window.infer(u32::MAX - 53), Ok((5 << 32) | (0xFFFF_FFFF - 53)));
        assert_eq!(window.infer(11), Ok((5 << 32) | 11));
    }

    #[test]
    fn a_number_before_the_first_subspace_or_after_the_last_is_refused() {
        let window = ReplayWindow::new(64, true, 1).unwrap();
        assert_eq!(window.infer(u32::MAX), Err(Unfit::BelowWindow));
        let window = window_at(u64::MAX, 64);
        assert_eq!(window.infer(5), Err(Unfit::BelowWindow));
    }

    #[test]
    fn all_numbers_before_the_first_count_as_seen() {
        let mut window = ReplayWindow::new(64, true, 1000).unwrap();
        assert_eq!(window.check(999), Err(Unfit::Replay));
        assert_eq!(window.check(936), Err(Unfit::Replay));
        assert_eq!(window.check(935), Err(Unfit::BelowWindow));
        assert_eq!(window.check(1000), Ok(()));
        window.mark(1002);
        assert_eq!(window.check(1001), Ok(()));
        assert_eq!(window.check(999), Err(Unfit::Replay));
    }

    #[test]
    fn number_zero_is_refused() {
        let window = ReplayWindow::new(64, false, 1).unwrap();
        assert_eq!(window.check(0), Err(Unfit::Replay));
    }

    #[test]
    fn widths_beyond_the_limits_are_refused() {
        assert!(ReplayWindow::new(WINDOW_WIDTHS.start() - 1, false, 1).is_none());
        assert!(ReplayWindow::new(WINDOW_WIDTHS.end() + 1, false, 1).is_none());
    }

    proptest! {
        /// A set without memory limit is the model; `steps` are distances from the top.
        #[test]
        fn the_window_agrees_with_a_set(
            width in 32u32..200,
            start in prop_oneof![Just(0u64), Just(0xFFFF_FFC0), Just(0x5_FFFF_FFC0)],
            steps in prop::collection::vec(-250i64..250, 1..200),
        ) {
            let mut window = ReplayWindow::new(width, true, 1).unwrap();
            let mut seen = BTreeSet::new();
            if start > 0 {
                window.mark(start);
                seen.insert(start);
            }
            for step in steps {
                let top = seen.last().copied().unwrap_or(0);
                let Some(number) = top.checked_add_signed(step).filter(|number| *number > 0) else {
                    continue;
                };
                let expected = if number + u64::from(width) <= top {
                    Err(Unfit::BelowWindow)
                } else if seen.contains(&number) {
                    Err(Unfit::Replay)
                } else {
                    Ok(())
                };
                prop_assert_eq!(window.check(number), expected);
                if expected != Err(Unfit::BelowWindow) {
                    prop_assert_eq!(window.infer(number as u32), Ok(number));
                }
                if expected.is_ok() {
                    window.mark(number);
                    seen.insert(number);
                }
                prop_assert_eq!(window.top(), seen.last().copied().unwrap_or(0));
            }
        }
    }
}
