// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The coverage of a run, and of many runs.

use std::collections::BTreeMap;

use smt_record::Padding;
use smt_wire::PacketType;

use super::events::Events;
use crate::net::adversary::Move;
use crate::net::fault::{FaultKind, Strikes};

/// Names of what was reached, with the number of runs that did.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Coverage {
    runs: u64,
    reached: BTreeMap<String, u64>,
}

impl Coverage {
    /// The coverage of one run: packet types on the wire, faults that struck, events that hosts
    /// have met.
    pub(super) fn failed(
        packet_types: &[u64; 256],
        strikes: &Strikes,
        paddings: &[Padding],
        events: &Events,
    ) -> Self {
        let mut reached = BTreeMap::new();
        let mut note = |name: String| {
            reached.insert(name, 1);
        };
        for packet_type in PacketType::ALL {
            if packet_types[packet_type as usize] > 0 {
                note(format!("packet {packet_type}"));
            }
        }
        let struck = FaultKind::ALL.iter().filter(|kind| strikes.of(**kind) > 0);
        struck.for_each(|kind| note(format!("fault {kind:?}")));
        let made = Move::ALL.iter().filter(|made| strikes.has(**made));
        made.for_each(|made| note(format!("attack {made:?}")));
        for padding in paddings {
            note(match padding {
                Padding::None => "padding none".to_owned(),
                Padding::Block(_) => "padding block".to_owned(),
                Padding::Padme => "padding padme".to_owned(),
            });
        }
        events.met().for_each(|name| note(name.to_owned()));
        Self { runs: 1, reached }
    }

    /// Adds what another has reached.
    pub fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        for (name, runs) in &other.reached {
            *self.reached.entry(name.clone()).or_default() += runs;
        }
    }

    /// Everything that is to be reached, with the share of runs that did, in percent.
    pub fn shares(&self) -> Vec<(String, f64)> {
        let share = |name: String| {
            let runs = self.reached.get(&name).copied().unwrap_or_default();
            let percent = 100.0 * runs as f64 / self.runs.max(1) as f64;
            (name, percent)
        };
        goals().map(share).collect()
    }
}

/// The types of packets of which a case may lose one. Those of associations are drawn apart.
pub(super) const PACKET_TYPES: [PacketType; 30] = {
    let types = PacketType::ALL.first_chunk();
    *types.expect("associations are last among the types")
};
const _: () = assert!(PACKET_TYPES[29] as u8 + 1 == PacketType::Association as u8);

/// Everything that a swarm must reach.
fn goals() -> impl Iterator<Item = String> {
    let packets = PacketType::ALL.map(|packet_type| format!("packet {packet_type}"));
    let faults = FaultKind::ALL.iter().map(|kind| format!("fault {kind:?}"));
    let moves = Move::ALL.iter().map(|made| format!("attack {made:?}"));
    let others = ["none", "block", "padme"].map(|name| format!("padding {name}"));
    let events = Events::NAMES.map(str::to_owned);
    packets.into_iter().chain(faults).chain(moves).chain(others).chain(events)
}
