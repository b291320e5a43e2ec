// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A network that loses, repeats, delays and reorders messages and cuts pairs off, until it is
//! honest.

use crate::random::Random;

/// How bad the network may be.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// How many nodes there are, two at least.
    pub nodes: u32,
    /// Cuts between two nodes are fewer.
    pub cuts: u64,
    /// A cut is less than this longer than 100 units of time.
    pub cut: u64,
    /// From when on the network is honest: it delays by 12 units at most, and nothing else.
    pub honest_from: u64,
}

/// The network of one run.
#[derive(Clone, Debug)]
pub struct Network {
    honest_from: u64,
    cuts: Vec<Cut>,
    /// Percent of the messages that are lost.
    loss: u64,
}

/// Two nodes that hear nothing of each other for some time.
#[derive(Clone, Debug)]
struct Cut {
    one: u32,
    other: u32,
    from: u64,
    until: u64,
}

/// The fate of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fate {
    /// Its sender and its receiver are cut off from each other.
    Cut,
    /// It is lost.
    Lost,
    /// It arrives.
    Arrives {
        /// When.
        at: u64,
        /// When it arrives once more, if it does.
        again: Option<u64>,
    },
}

impl Network {
    /// Draws a network.
    pub fn draw(bounds: &Bounds, random: &mut Random) -> Self {
        let nodes = u64::from(bounds.nodes);
        let mut cuts = Vec::new();
        for _ in 0..random.below(bounds.cuts) {
            let one = random.below(nodes);
            let other = (one + 1 + random.below(nodes - 1)) % nodes;
            let from = 100 + random.below(2000);
            let until = (from + 100 + random.below(bounds.cut)).min(bounds.honest_from);
            cuts.push(Cut { one: one as u32, other: other as u32, from, until });
        }
        Self { honest_from: bounds.honest_from, cuts, loss: random.below(20) }
    }

    /// The fate of a message that is sent now. `pair` is its sender and its receiver, if both are
    /// nodes: clients are cut off from none.
    pub fn send(&self, now: u64, pair: Option<(u32, u32)>, random: &mut Random) -> Fate {
        if pair.is_some_and(|pair| self.cuts.iter().any(|it| it.parts(pair, now))) {
            return Fate::Cut;
        }
        let is_bad = now < self.honest_from;
        if is_bad && random.chance(self.loss) {
            return Fate::Lost;
        }
        let again = (is_bad && random.chance(5)).then(|| now + 1 + random.below(300));
        let most = if is_bad && random.chance(10) { 120 } else { 12 };
        Fate::Arrives { at: now + 1 + random.below(most), again }
    }
}

impl Cut {
    fn parts(&self, pair: (u32, u32), now: u64) -> bool {
        let is_pair = [(self.one, self.other), (self.other, self.one)].contains(&pair);
        is_pair && (self.from..self.until).contains(&now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_honest_network_only_delays() {
        let mut random = Random::new(1);
        for _ in 0..100 {
            let bounds = Bounds { nodes: 3, cuts: 4, cut: 5000, honest_from: 3000 };
            let network = Network::draw(&bounds, &mut random);
            for pair in [None, Some((0, 1)), Some((2, 1)), Some((2, 0))] {
                let fate = network.send(3000, pair, &mut random);
                assert!(matches!(fate, Fate::Arrives { at: 3001..=3012, again: None }), "{fate:?}");
            }
        }
    }

    #[test]
    fn a_cut_parts_both_ways_until_it_ends_and_nobody_else() {
        let cuts = vec![Cut { one: 0, other: 2, from: 5, until: 9 }];
        let network = Network { honest_from: 100, cuts, loss: 0 };
        let mut random = Random::new(2);
        let mut is_cut = |pair, now| network.send(now, Some(pair), &mut random) == Fate::Cut;
        assert!(is_cut((0, 2), 5) && is_cut((2, 0), 8));
        assert!(!is_cut((0, 2), 4) && !is_cut((2, 0), 9) && !is_cut((0, 1), 6));
    }
}
