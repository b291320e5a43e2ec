// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The packet numbers that a connection has taken lately: one packet is told as new once.

/// Numbers below the largest that are told apart.
const WINDOW: u64 = 128;

/// The engine's knowledge of a packet number.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Freshness {
    /// No packet with it was opened before.
    New,
    /// One was: this packet is a repetition.
    Duplicate,
    /// It is so far below the largest that the engine does not remember; the host decides.
    Old,
}

/// The largest number, and which of those below it were taken.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NumberWindow {
    largest: Option<u64>,
    /// Bit n: the largest less n.
    taken: u128,
}

impl NumberWindow {
    /// Software has opened packets up to `largest`, and knows which.
    pub(super) fn after(largest: Option<u64>) -> Self {
        let taken = largest.map_or(0, |_| 1);
        Self { largest, taken }
    }

    pub(super) fn largest(&self) -> Option<u64> {
        self.largest
    }

    /// Takes the number of a packet that has opened.
    pub(super) fn take(&mut self, number: u64) -> Freshness {
        let Some(largest) = self.largest else {
            (self.largest, self.taken) = (Some(number), 1);
            return Freshness::New;
        };
        if number > largest {
            let distance = number - largest;
            self.taken = match distance < WINDOW {
                true => self.taken << distance | 1,
                false => 1,
            };
            self.largest = Some(number);
            return Freshness::New;
        }
        let below = largest - number;
        if below >= WINDOW {
            return Freshness::Old;
        }
        let bit = 1 << below;
        match self.taken & bit {
            0 => {
                self.taken |= bit;
                Freshness::New
            }
            _ => Freshness::Duplicate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn numbers_in_any_order_are_told_as_by_a_set() {
        let (mut window, mut set) = (NumberWindow::default(), BTreeSet::new());
        let mut state = 1_u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let largest = set.last().copied().unwrap_or(0_u64);
            let number = (largest + 100).saturating_sub((state >> 33) % 300);
            let known = match (set.last(), set.contains(&number)) {
                (Some(largest), _) if largest.saturating_sub(number) >= WINDOW => Freshness::Old,
                (_, true) => Freshness::Duplicate,
                (_, false) => Freshness::New,
            };
            assert_eq!(window.take(number), known, "{number}");
            set.insert(number);
        }
    }
}
