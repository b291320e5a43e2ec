// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The attacker's choices: what becomes of a datagram, and what is made up.
//!
//! It knows all of the clear: versions, types, indices, ids, offsets, lengths, numbers, epochs
//! (SPEC §3), since it has seen them. It does not know the keys.

mod forge;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use crate::support::forwarder::{Outcome, Way};
use crate::support::random::Random;

/// An attacker; clones are the same one.
#[derive(Clone)]
pub(crate) struct Attacker(Arc<Mutex<State>>);

struct State {
    random: Random,
    /// Datagrams still to be attacked.
    left: usize,
    /// One datagram in so many is left alone.
    mercy: usize,
    /// Seen datagrams, to be sent again much later.
    seen: Vec<(Way, Vec<u8>)>,
    held: Vec<(Way, Vec<u8>)>,
    counts: BTreeMap<&'static str, usize>,
}

impl Attacker {
    /// At first it forwards faithfully.
    pub(crate) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            random: Random::new(seed),
            left: 0,
            mercy: 2,
            seen: Vec::new(),
            held: Vec::new(),
            counts: BTreeMap::new(),
        })))
    }

    /// From now on attacks this many datagrams, half of them.
    pub(crate) fn attack(&self, datagrams: usize) {
        let mut state = self.0.lock().unwrap();
        (state.left, state.mercy) = (datagrams, 2);
    }

    /// The same, sparing one in five.
    pub(crate) fn attack_hard(&self, datagrams: usize) {
        let mut state = self.0.lock().unwrap();
        (state.left, state.mercy) = (datagrams, 5);
    }

    pub(crate) fn has_relented(&self) -> bool {
        self.0.lock().unwrap().left == 0
    }

    /// The datagrams that leave for a datagram that has come.
    pub(crate) fn pass(&self, way: Way, datagram: &[u8]) -> Outcome {
        self.0.lock().unwrap().pass(way, datagram)
    }
}

impl State {
    fn pass(&mut self, way: Way, datagram: &[u8]) -> Outcome {
        self.remember(way, datagram);
        let genuine = (way, datagram.to_vec());
        if self.left == 0 {
            return vec![genuine];
        }
        self.left -= 1;
        let mut out = Vec::new();
        // Forged datagrams go before the genuine one: the worst order.
        for _ in 0..self.random.below(3) {
            out.extend(self.make_up(way, datagram));
        }
        let is_spared = match self.mercy {
            2 => self.random.one_in(2),
            of => self.random.one_in(of),
        };
        if is_spared {
            out.push(genuine);
        } else {
            out.extend(self.attack(way, datagram));
        }
        if self.random.one_in(4) {
            out.append(&mut self.held);
        }
        out
    }

    /// Instead of the genuine datagram.
    fn attack(&mut self, way: Way, datagram: &[u8]) -> Outcome {
        let genuine = || (way, datagram.to_vec());
        let (what, out) = match self.random.below(8) {
            0 => ("dropped", vec![]),
            1 => ("repeated", vec![genuine(), genuine()]),
            2 => {
                self.held.push(genuine());
                ("held back", vec![])
            }
            3 => {
                let length = self.random.below(datagram.len());
                ("truncated", vec![(way, datagram[..length].to_vec())])
            }
            4 => ("lengthened", vec![(way, self.lengthened(datagram))]),
            5 => ("turned round", vec![(way.back(), datagram.to_vec())]),
            6 => {
                let from = self.random.below(datagram.len());
                ("beheaded", vec![(way, datagram[from..].to_vec())])
            }
            _ => {
                let bits = 1 + self.random.below(4);
                ("bits flipped", vec![(way, self.flipped(datagram, bits))])
            }
        };
        self.count(what, out)
    }

    /// Beside the genuine datagram.
    fn make_up(&mut self, way: Way, datagram: &[u8]) -> Outcome {
        let old = self.random.below(self.seen.len());
        let (what, out) = match self.random.below(8) {
            0 => ("old replayed", vec![self.seen[old].clone()]),
            1 => {
                let (of, bytes) = self.seen[old].clone();
                ("old reflected", vec![(of.back(), bytes)])
            }
            2 => ("reflected", vec![(way.back(), datagram.to_vec())]),
            3 => ("changed copies", vec![(way, self.flipped(datagram, 1))]),
            4 => {
                let rewritten = forge::rewritten(&mut self.random, datagram);
                ("headers rewritten", vec![(way, rewritten)])
            }
            5 | 6 => {
                let forged = forge::control(&mut self.random, datagram);
                ("control forged", vec![(way, forged)])
            }
            _ => {
                let (name, forged) = forge::unauthenticated(&mut self.random, datagram);
                (name, vec![(way, forged.clone()), (way.back(), forged)])
            }
        };
        self.count(what, out)
    }

    fn count(&mut self, what: &'static str, outcome: Outcome) -> Outcome {
        *self.counts.entry(what).or_default() += 1;
        outcome
    }

    fn remember(&mut self, way: Way, datagram: &[u8]) {
        if self.seen.len() < SEEN_MAX {
            self.seen.push((way, datagram.to_vec()));
        } else if self.random.one_in(8) {
            let at = self.random.below(SEEN_MAX);
            self.seen[at] = (way, datagram.to_vec());
        }
    }

    fn flipped(&mut self, datagram: &[u8], bits: usize) -> Vec<u8> {
        let mut bytes = datagram.to_vec();
        for _ in 0..bits {
            // Half of them in the headers, where they matter most.
            let most = if self.random.one_in(2) { bytes.len().min(64) } else { bytes.len() };
            bytes[self.random.below(most)] ^= 1 << self.random.below(8);
        }
        bytes
    }

    fn lengthened(&mut self, datagram: &[u8]) -> Vec<u8> {
        let mut bytes = datagram.to_vec();
        let more = (1 + self.random.below(200)).min(65_000_usize.saturating_sub(bytes.len()));
        bytes.extend((0..more).map(|_| self.random.next() as u8));
        bytes
    }
}

impl fmt::Display for Attacker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.lock().unwrap();
        let all: usize = state.counts.values().sum();
        write!(f, "{all} attacks:")?;
        state.counts.iter().try_for_each(|(what, count)| write!(f, " {what} {count},"))
    }
}

/// Datagrams that are kept for later.
const SEEN_MAX: usize = 512;
