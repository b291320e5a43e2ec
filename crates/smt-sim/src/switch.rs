// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a switch does with a packet: which port, and what if the buffer is full.

use std::time::Duration;

use crate::link::Port;
use crate::packet::Packet;
use crate::random::{Random, mix};

/// A port's number in a network.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PortId(pub(crate) u32);

/// How a switch behaves.
#[derive(Clone, Copy, Debug)]
pub struct SwitchPolicy {
    /// What a packet spends in it, beside its queue.
    pub delay: Duration,
    /// Bytes of all its queues together.
    pub buffer: u64,
    /// A queue longer than this marks what enters it (ECN).
    pub mark_above: Option<u64>,
    /// A queue longer than this, the highest priority not counted, cuts what enters it to [`TRIMMED_LEN`] bytes at the
    /// highest priority (NDP). What has that priority already is control and headers, and is not cut.
    pub trim_above: Option<u64>,
    /// How equal paths are chosen.
    pub spreading: Spreading,
}

impl Default for SwitchPolicy {
    /// 12 MB as in the switches of the SIGCOMM 2018 testbed's generation; per-packet spreading as Homa wants it.
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            buffer: 12_000_000,
            mark_above: None,
            trim_above: None,
            spreading: Spreading::ByPacket,
        }
    }
}

/// How one of several equal paths is chosen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Spreading {
    /// At random for each packet.
    ByPacket,
    /// The same for packets of one entropy: a message, or a connection.
    ByEntropy,
}

/// The ports that lead to a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    pub(crate) first: PortId,
    /// Consecutive ports, all equal.
    pub(crate) count: u32,
}

/// A switch.
#[derive(Debug)]
pub(crate) struct Switch {
    pub(crate) policy: SwitchPolicy,
    /// By destination.
    pub(crate) routes: Vec<Route>,
    pub(crate) buffered: u64,
    random: Random,
}

/// What becomes of a packet at its port.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Admission {
    Admitted,
    Dropped,
}

impl Switch {
    pub(crate) fn new(policy: SwitchPolicy, routes: Vec<Route>, random: Random) -> Self {
        Self {
            policy,
            routes,
            buffered: 0,
            random,
        }
    }

    /// Where a packet leaves. `None`: nobody has this address.
    pub(crate) fn route(&mut self, packet: &Packet) -> Option<PortId> {
        let route = self.routes.get(packet.to.0 as usize)?;
        if route.count == 1 {
            return Some(route.first);
        }
        let choice = match self.policy.spreading {
            Spreading::ByPacket => self.random.below(u64::from(route.count)),
            Spreading::ByEntropy => mix(packet.entropy) % u64::from(route.count),
        };
        Some(PortId(route.first.0 + choice as u32))
    }

    /// Puts a packet into a port's queue, marks, cuts or drops it.
    pub(crate) fn admit(&mut self, mut packet: Packet, port: &mut Port) -> Admission {
        let queued = port.queued();
        let is_over = |limit: Option<u64>| limit.is_some_and(|limit| queued > limit);
        if is_over(self.policy.mark_above) {
            packet.is_marked = true;
            port.statistics.marked += 1;
        }
        let is_data = packet.priority < HIGHEST && packet.bytes.len() > TRIMMED_LEN;
        let waiting = port.queued_below();
        if is_data && self.policy.trim_above.is_some_and(|limit| waiting > limit) {
            packet.bytes.truncate(TRIMMED_LEN);
            packet.is_trimmed = true;
            packet.priority = HIGHEST;
            port.statistics.trimmed += 1;
        }
        if self.buffered + packet.wire_len() > self.policy.buffer {
            port.statistics.dropped += 1;
            return Admission::Dropped;
        }
        self.buffered += packet.wire_len();
        port.enqueue(packet);
        Admission::Admitted
    }
}

/// The highest priority.
const HIGHEST: u8 = 7;
/// What is left of a trimmed packet: the DATA header (SPEC §3.3), so that the receiver knows what it missed.
pub const TRIMMED_LEN: usize = 36;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{Link, Node};
    use crate::packet::HostId;
    use bytes::Bytes;

    fn port() -> Port {
        let link = Link {
            rate: 1_000_000_000,
            delay: Duration::ZERO,
            payload_max: 1_472,
        };
        Port::new(link, Node::Switch(0), Some(0))
    }

    fn switch(policy: SwitchPolicy) -> Switch {
        let routes = vec![Route {
            first: PortId(3),
            count: 4,
        }];
        Switch::new(policy, routes, Random::new(1))
    }

    fn packet(length: usize, entropy: u64) -> Packet {
        Packet {
            from: HostId(1),
            to: HostId(0),
            bytes: Bytes::from(vec![0; length]),
            priority: 2,
            is_marked: false,
            is_trimmed: false,
            entropy,
        }
    }

    #[test]
    fn packets_of_one_entropy_stay_together_and_others_spread() {
        let mut switch = switch(SwitchPolicy {
            spreading: Spreading::ByEntropy,
            ..SwitchPolicy::default()
        });
        let mut port = |entropy| switch.route(&packet(10, entropy)).unwrap().0;
        assert!((0..10).all(|_| port(5) == port(5)));
        let mut used: Vec<u32> = (0..100).map(&mut port).collect();
        used.sort_unstable();
        used.dedup();
        assert_eq!(used, [3, 4, 5, 6]);
    }

    #[test]
    fn a_full_buffer_drops() {
        let mut switch = switch(SwitchPolicy {
            buffer: 2_000,
            ..SwitchPolicy::default()
        });
        let mut port = port();
        assert_eq!(
            switch.admit(packet(1_000, 0), &mut port),
            Admission::Admitted
        );
        assert_eq!(
            switch.admit(packet(1_000, 0), &mut port),
            Admission::Dropped
        );
        assert_eq!(port.statistics.dropped, 1);
    }

    #[test]
    fn a_long_queue_marks_or_trims() {
        let mut switch = switch(SwitchPolicy {
            mark_above: Some(500),
            trim_above: Some(1_500),
            ..SwitchPolicy::default()
        });
        let mut port = port();
        (0..3).for_each(|_| {
            switch.admit(packet(1_000, 0), &mut port);
        });
        let left: Vec<Packet> = std::iter::from_fn(|| port.start(Time::default()))
            .map(|(packet, _)| packet)
            .collect();
        let trimmed = &left[0];
        assert!(trimmed.is_trimmed && trimmed.bytes.len() == TRIMMED_LEN);
        assert!(!left[1].is_marked && !left[1].is_trimmed);
        assert!(left[2].is_marked && !left[2].is_trimmed);
    }

    #[test]
    fn headers_and_control_packets_are_not_cut_and_do_not_count() {
        let mut switch = switch(SwitchPolicy {
            trim_above: Some(1_500),
            ..SwitchPolicy::default()
        });
        let mut port = port();
        let urgent = Packet {
            priority: 7,
            ..packet(1_000, 0)
        };
        (0..5).for_each(|_| {
            switch.admit(urgent.clone(), &mut port);
        });
        (0..2).for_each(|_| {
            switch.admit(packet(1_000, 0), &mut port);
        });
        assert_eq!(port.statistics.trimmed, 0);
        switch.admit(packet(1_000, 0), &mut port);
        assert_eq!(port.statistics.trimmed, 1);
        switch.admit(urgent, &mut port);
        assert_eq!(port.statistics.trimmed, 1);
    }

    use smt_proto::Time;
}
