// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The trace of what hosts have sent: a hash of every packet, and how often each type was there.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use smt_proto::Time;
use smt_wire::SessionIndex;
use xxhash_rust::xxh3::Xxh3;

use crate::net::network::Tap;
use crate::net::packet::{HostId, Packet, packets_of};

/// The facts that are known of all packets.
pub(super) struct Trace {
    hash: Xxh3,
    pub(super) packet_types: [u64; 256],
    pub(super) packets: u64,
    /// UDP payload by receiver and session index.
    bytes: BTreeMap<(HostId, SessionIndex), u64>,
}

impl Trace {
    pub(super) fn new() -> Self {
        Self { hash: Xxh3::new(), packet_types: [0; 256], packets: 0, bytes: BTreeMap::new() }
    }

    /// The hash so far.
    pub(super) fn hash(&self) -> u128 {
        self.hash.digest128()
    }

    /// UDP payload that was sent to a host, by the session index of the packet (0 if it has none).
    pub(super) fn bytes_to(&self, host: HostId) -> impl Iterator<Item = (SessionIndex, u64)> + '_ {
        let indices = SessionIndex(0)..=SessionIndex(u64::MAX);
        let all = (host, *indices.start())..=(host, *indices.end());
        self.bytes.range(all).map(|((_, index), bytes)| (*index, *bytes))
    }

    fn note(&mut self, now: Time, packet: &Packet) {
        self.packets += 1;
        let index = packet.bytes.get(INDEX).and_then(|index| index.try_into().ok());
        let index = SessionIndex(index.map_or(0, u64::from_be_bytes));
        *self.bytes.entry((packet.to, index)).or_default() += packet.bytes.len() as u64;
        self.hash.update(&now.as_nanos().to_be_bytes());
        self.hash.update(&packet.from.0.to_be_bytes());
        self.hash.update(&packet.to.0.to_be_bytes());
        self.hash.update(&packet.bytes);
        for (of, _) in packets_of(&packet.bytes) {
            self.packet_types[of as usize] += 1;
        }
    }
}

/// The receiver's session index, in all packets but VERSION (SPEC §3).
const INDEX: Range<usize> = 12..20;

/// Watches a network into a [`Trace`].
pub(super) struct TraceTap(pub(super) Rc<RefCell<Trace>>);

impl Tap for TraceTap {
    fn departed(&mut self, now: Time, packet: &Packet) {
        self.0.borrow_mut().note(now, packet);
    }

    fn arrived(&mut self, _now: Time, _packet: &Packet) {}
}
