// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The order in which connections were used last: a list through their places, so that a packet
//! costs a few writes, however many there are.

use alloc::vec::Vec;

/// The order, and a clock that counts packets.
#[derive(Clone, Debug, Default)]
pub(super) struct Recency {
    links: Vec<Link>,
    newest: Option<u32>,
    oldest: Option<u32>,
    packets: u64,
}

/// The neighbours of a place, and when it was used last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Link {
    newer: Option<u32>,
    older: Option<u32>,
    at: u64,
}

impl Recency {
    /// Adds a place as the one used last. It is not in the list.
    pub(super) fn add(&mut self, place: u32) {
        if self.links.len() <= place as usize {
            self.links.resize(place as usize + 1, Link::default());
        }
        self.packets += 1;
        let older = self.newest.replace(place);
        let at = self.packets;
        self.links[place as usize] = Link { newer: None, older, at };
        match older {
            Some(older) => self.links[older as usize].newer = Some(place),
            None => self.oldest = Some(place),
        }
    }

    /// Takes a place of the list out of it.
    pub(super) fn remove(&mut self, place: u32) {
        let Link { newer, older, .. } = self.links[place as usize];
        match newer {
            Some(newer) => self.links[newer as usize].older = older,
            None => self.newest = older,
        }
        match older {
            Some(older) => self.links[older as usize].newer = newer,
            None => self.oldest = newer,
        }
    }

    /// A packet of a place that is in the list.
    pub(super) fn touch(&mut self, place: u32) {
        if self.newest == Some(place) {
            self.packets += 1;
            self.links[place as usize].at = self.packets;
            return;
        }
        self.remove(place);
        self.add(place);
    }

    /// The place that was used least recently, and how many packets of others came since.
    pub(super) fn oldest(&self) -> Option<(u32, u64)> {
        let oldest = self.oldest?;
        Some((oldest, self.packets - self.links[oldest as usize].at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_that_of_a_list_that_is_searched() {
        let (mut recency, mut list) = (Recency::default(), Vec::new());
        let mut state = 3_u64;
        for step in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let place = (state >> 33) as u32 % 40;
            let at = list.iter().position(|of| *of == place);
            match at {
                None => {
                    recency.add(place);
                    list.push(place);
                }
                Some(at) if step % 3 == 0 => {
                    recency.remove(place);
                    list.remove(at);
                }
                Some(at) => {
                    recency.touch(place);
                    list.remove(at);
                    list.push(place);
                }
            }
            let oldest = recency.oldest().map(|(place, _)| place);
            assert_eq!(oldest, list.first().copied(), "step {step}");
        }
    }

    #[test]
    fn the_age_counts_packets_of_others() {
        let mut recency = Recency::default();
        recency.add(0);
        recency.add(1);
        for _ in 0..5 {
            recency.touch(1);
        }
        assert_eq!(recency.oldest(), Some((0, 6)));
        recency.touch(0);
        assert_eq!(recency.oldest(), Some((1, 1)));
    }
}
