// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A way on which each message of one host comes at a rate of its own: its packets arrive later, in
//! their order.

use std::collections::BTreeMap;
use std::time::Duration;

use smt_proto::Time;
use smt_sim::net::{HostId, LinkRule, Packet};
use smt_wire::{MessageId, SessionIndex};

pub(crate) struct Slow {
    from: HostId,
    bytes_per_milli: u64,
    /// When the next packet of a message may arrive.
    free: BTreeMap<(SessionIndex, MessageId), Time>,
}

impl Slow {
    pub(crate) fn new(from: HostId, bytes_per_milli: u64) -> Self {
        Self { from, bytes_per_milli, free: BTreeMap::new() }
    }
}

impl LinkRule for Slow {
    fn pass(&mut self, now: Time, packet: Packet, out: &mut Vec<(Packet, u64)>) {
        let parsed = smt_wire::parse(smt_wire::VERSION, &packet.bytes);
        let mut later = 0;
        if let Ok((smt_wire::Packet::Data(data), _)) = parsed
            && packet.from == self.from
        {
            let message = (data.header.session, data.header.id);
            let free = self.free.entry(message).or_insert(now);
            let start = now.max(*free);
            let takes = data.payload.len() as u64 * 1_000_000 / self.bytes_per_milli;
            later = start.since(now).as_nanos() as u64;
            *free = start + Duration::from_nanos(takes);
        }
        out.push((packet, later));
    }
}
