// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A state of the explored system.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};

use smt_attestation::Attestation;

use crate::attack::Action;

/// An attestation with its message, as the network has it.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Packet {
    /// The attestation.
    pub attestation: [u8; 64],
    /// The message, or a vote of 40 bytes.
    pub body: Vec<u8>,
}

impl Packet {
    /// Device, epoch and counter, as the attestation states them.
    #[must_use]
    pub fn place(&self) -> (u32, u64, u64) {
        let claim = Attestation(self.attestation).claim();
        claim.map_or((0, 0, 0), |it| (it.device.0, it.epoch.0, it.counter))
    }
}

/// A deed of the receiver, over all its starts.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Entry {
    /// It takes the sender's stream from here on: epoch and the counter before the next.
    Begun {
        /// The sender's epoch.
        epoch: u64,
        /// The counter before the next message.
        counter: u64,
        /// Whether a quorum of others had voted for that epoch.
        by_quorum: bool,
    },
    /// It took a message.
    Taken(Packet),
}

/// All that tells two states apart: what the kernels hold, what the network has, what was taken.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct View {
    /// The last counter of each running sender, by its place in the order of starts.
    pub senders: Vec<u64>,
    /// The receiver's starts.
    pub receiver_starts: u64,
    /// The receiver's last counter, and the sender's position.
    pub receiver: (u64, (u64, Option<u64>)),
    /// The voter's last counter, and the sender's position.
    pub voter: (u64, (u64, Option<u64>)),
    /// All that was ever attested. The network may deliver, drop, repeat and reorder it.
    pub issued: BTreeSet<Packet>,
    /// The receiver's deeds.
    pub log: Vec<Entry>,
}

/// A view, and how it came about: the kernel has no `Clone`, so each step plays all actions again.
#[derive(Clone, Debug)]
pub struct State {
    /// The view.
    pub view: View,
    /// The actions from the beginning.
    pub trace: Vec<Action>,
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.view == other.view
    }
}

impl Eq for State {}

impl Hash for State {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.view.hash(state);
    }
}
