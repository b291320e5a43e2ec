// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The policy of a switch for a packet: which port it takes, and its fate if the buffer is full.

use std::time::Duration;

use crate::net::link::Port;
use crate::net::packet::Packet;
use crate::random::{Random, mix};

/// A port's number in a network.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PortId(pub(crate) u32);

/// How a switch behaves.
#[derive(Clone, Copy, Debug)]
pub struct SwitchPolicy {
    /// The time that a packet spends in the switch, beside its queue.
    pub delay: Duration,
    /// Bytes of all its queues together.
    pub buffer: u64,
    /// A queue longer than this marks what enters it (ECN).
    pub mark_above: Option<u64>,
    /// A queue longer than this, the highest priority not counted, trims what enters it to
    /// [`TRIMMED_LEN`] bytes at the highest priority (NDP). Packets that have that priority already
    /// are control and headers, and are not trimmed.
    pub trim_above: Option<u64>,
    /// How equal paths are chosen.
    pub spreading: Spreading,
}

impl Default for SwitchPolicy {
    /// 12 MB as in the switches of the SIGCOMM 2018 testbed's generation; per-packet spreading as
    /// Homa wants it.
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

/// The fate of a packet at its port.
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
        let route = self.routes.get(packet.to.cable().0 as usize)?;
        if route.count == 1 {
            return Some(route.first);
        }
        let choice = match self.policy.spreading {
            Spreading::ByPacket => self.random.below(u64::from(route.count)),
            Spreading::ByEntropy => mix(packet.entropy) % u64::from(route.count),
        };
        Some(PortId(route.first.0 + choice as u32))
    }

    /// Whether a packet may wait at a port, and what of it: it marks, trims or refuses it.
    pub(crate) fn admit(&mut self, packet: &mut Packet, port: &mut Port) -> Admission {
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
        Admission::Admitted
    }
}

/// The highest priority.
const HIGHEST: u8 = 7;
/// Length of a trimmed packet: the DATA header is left of it (SPEC §3.3), so that the receiver
/// knows what it missed.
pub const TRIMMED_LEN: usize = 36;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::link::{Link, Node};
    use crate::net::packet::HostId;
    use crate::net::packet_pool::PacketPool;
    use bytes::Bytes;
    use smt_proto::Time;

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

    /// Lets a packet in if there is room for it; what has become of it.
    fn offered(mut packet: Packet, switch: &mut Switch, port: &mut Port) -> (Admission, Packet) {
        let admission = switch.admit(&mut packet, port);
        if admission == Admission::Admitted {
            let handle = PacketPool::default().insert(packet.clone());
            port.enqueue(handle, packet.priority);
        }
        (admission, packet)
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
        let mut offer = || offered(packet(1_000, 0), &mut switch, &mut port).0;
        assert_eq!(offer(), Admission::Admitted);
        assert_eq!(offer(), Admission::Dropped);
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
        let [first, second, third] =
            [(); 3].map(|()| offered(packet(1_000, 0), &mut switch, &mut port).1);
        assert!(!first.is_marked && !first.is_trimmed);
        assert!(second.is_marked && !second.is_trimmed);
        assert!(third.is_trimmed && third.bytes.len() == TRIMMED_LEN);
        let (leaves, _) = port.start(Time::default()).unwrap();
        assert_eq!(u64::from(leaves.length), third.wire_len());
    }

    #[test]
    fn headers_and_control_packets_are_not_trimmed_and_do_not_count() {
        let mut switch = switch(SwitchPolicy {
            trim_above: Some(1_500),
            ..SwitchPolicy::default()
        });
        let mut port = port();
        let urgent = Packet {
            priority: 7,
            ..packet(1_000, 0)
        };
        let data = packet(1_000, 0);
        let mut trimmed = |packet: &Packet, times: usize| {
            (0..times).for_each(|_| {
                offered(packet.clone(), &mut switch, &mut port);
            });
            port.statistics.trimmed
        };
        assert_eq!((trimmed(&urgent, 5), trimmed(&data, 2)), (0, 0));
        assert_eq!((trimmed(&data, 1), trimmed(&urgent, 1)), (1, 1));
    }
}
