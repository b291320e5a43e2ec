// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The policy of a switch for a packet: which port it takes, and its fate if the buffer is full.

use std::time::Duration;

use smt_switch::{Addresses, Balancer, DataHeader, MessageName, trimmed_bytes};

use crate::net::link::Port;
use crate::net::packet::{HostId, Packet, Protocol};
use crate::net::port_queues::Scheduler;
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
    /// A queue longer than this, the highest priority not counted, trims the DATA packet of SMT
    /// that enters it to its header at the highest priority (NDP). Packets that have that priority
    /// already are control and headers, and are not trimmed; those of other protocols pass whole.
    pub trim_above: Option<u64>,
    /// How equal paths are chosen.
    pub spreading: Spreading,
    /// Which packet leaves a port first.
    pub scheduler: Scheduler,
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
            scheduler: Scheduler::Priority,
        }
    }
}

/// How one of several equal paths is chosen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Spreading {
    /// At random for each packet.
    ByPacket,
    /// The same for all packets of a message, by SMT's clear header, and of a connection, by its
    /// entropy.
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
        Self { policy, routes, buffered: 0, random }
    }

    /// Where a packet leaves. `None`: nobody has this address.
    pub(crate) fn route(&mut self, packet: &Packet) -> Option<PortId> {
        let route = self.routes.get(packet.to.cable().0 as usize)?;
        if route.count == 1 {
            return Some(route.first);
        }
        let choice = match self.policy.spreading {
            Spreading::ByPacket => self.random.below(u64::from(route.count)),
            Spreading::ByEntropy => kept_together(packet, route.count).into(),
        };
        Some(PortId(route.first.0 + choice as u32))
    }

    /// Whether a packet may wait at a port, and what of it: it marks, trims or refuses it.
    pub(crate) fn admit(&mut self, packet: &mut Packet, port: &mut Port) -> Admission {
        let waiting = port.waiting(packet.protocol);
        let is_over = |limit: Option<u64>, bytes| limit.is_some_and(|limit| bytes > limit);
        if is_over(self.policy.mark_above, waiting.bytes) {
            packet.is_marked = true;
            port.statistics.marked += 1;
        }
        if is_over(self.policy.trim_above, waiting.below())
            && packet.protocol == Protocol::Smt
            && packet.priority < HIGHEST
            && let Some(length) = trimmed_bytes(&packet.bytes)
        {
            packet.bytes.truncate(length);
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

/// Which of so many paths a packet takes that stays with its message or connection.
fn kept_together(packet: &Packet, paths: u32) -> u32 {
    match (packet.protocol, DataHeader::read(&packet.bytes)) {
        (Protocol::Smt, Some(DataHeader { session, id, .. })) => {
            let addresses = ends(packet);
            let name = MessageName { addresses, session, id };
            BALANCER.path_of_message(&name, paths)
        }
        (Protocol::Smt, None) | (Protocol::Psp, _) => BALANCER.path_of_ends(&ends(packet), paths),
        (Protocol::Tcp, _) => (mix(packet.entropy) % u64::from(paths)) as u32,
    }
}

/// The two ends as a switch reads them behind IP.
pub(crate) fn ends(packet: &Packet) -> Addresses {
    let address = |host: HostId| {
        let mut address = [0; 16];
        address[12..].copy_from_slice(&host.ip());
        address
    };
    Addresses { source: address(packet.from), destination: address(packet.to) }
}

/// Only a packet's first switch has several paths: one seed is enough.
const BALANCER: Balancer = Balancer::new(0);
/// The highest priority.
const HIGHEST: u8 = 7;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::link::{Link, Node};
    use crate::net::packet::HostId;
    use crate::net::packet_pool::PacketPool;
    use bytes::Bytes;
    use smt_proto::Time;

    fn port() -> Port {
        let link = Link { rate: 1_000_000_000, delay: Duration::ZERO, payload_max: 1_472 };
        Port::new(link, Node::Switch(0), Some(0))
    }

    fn switch(policy: SwitchPolicy) -> Switch {
        let routes = vec![Route { first: PortId(3), count: 4 }];
        Switch::new(policy, routes, Random::new(1))
    }

    /// A DATA packet of a message, or a packet of a connection.
    fn packet(length: usize, entropy: u64) -> Packet {
        let mut bytes = vec![0; length.max(40)];
        (bytes[0], bytes[1], bytes[4]) = (1, 0x01, 0xB0);
        bytes[20..28].copy_from_slice(&entropy.to_be_bytes());
        Packet {
            from: HostId(1),
            to: HostId(0),
            bytes: Bytes::from(bytes),
            priority: 2,
            is_marked: false,
            is_trimmed: false,
            entropy,
            protocol: Protocol::Smt,
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
    fn packets_of_one_message_or_connection_stay_together_and_others_spread() {
        let mut switch =
            switch(SwitchPolicy { spreading: Spreading::ByEntropy, ..SwitchPolicy::default() });
        for protocol in [Protocol::Smt, Protocol::Tcp] {
            let mut port = |of, length, offset| {
                let mut packet = packet(length, of);
                let mut bytes = packet.bytes.to_vec();
                bytes[32] = offset;
                packet.bytes = bytes.into();
                packet.protocol = protocol;
                switch.route(&packet).unwrap().0
            };
            let first = port(5, 100, 0);
            assert!((0..10).all(|offset| port(5, 1_000, offset) == first));
            let mut used: Vec<u32> = (0..100).map(|of| port(of, 50, 0)).collect();
            used.sort_unstable();
            used.dedup();
            assert_eq!(used, [3, 4, 5, 6]);
        }
    }

    #[test]
    fn packets_of_tcp_and_control_packets_are_not_trimmed() {
        let mut switch =
            switch(SwitchPolicy { trim_above: Some(1_500), ..SwitchPolicy::default() });
        let mut port = port();
        (0..3).for_each(|_| drop(offered(packet(1_000, 0), &mut switch, &mut port)));
        let mut tcp = packet(1_000, 0);
        tcp.protocol = Protocol::Tcp;
        let mut control = packet(100, 0);
        control.bytes = [&[1, 0x24, 0, 0, 0x50, 0, 0, 100][..], &[0; 92]].concat().into();
        for whole in [tcp, control] {
            let (_, after) = offered(whole.clone(), &mut switch, &mut port);
            assert!(!after.is_trimmed && after.bytes == whole.bytes);
        }
        assert_eq!(port.statistics.trimmed, 1);
    }

    #[test]
    fn a_full_buffer_drops() {
        let mut switch = switch(SwitchPolicy { buffer: 2_000, ..SwitchPolicy::default() });
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
        assert!(third.is_trimmed && third.bytes.len() == 36);
        let (leaves, _) = port.start(Time::default()).unwrap();
        assert_eq!(u64::from(leaves.length), third.wire_len());
    }

    #[test]
    fn headers_and_control_packets_are_not_trimmed_and_do_not_count() {
        let mut switch =
            switch(SwitchPolicy { trim_above: Some(1_500), ..SwitchPolicy::default() });
        let mut port = port();
        let urgent = Packet { priority: 7, ..packet(1_000, 0) };
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
