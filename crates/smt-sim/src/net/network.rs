// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ports, switches and what is under way between them.
//!
//! 1. [`Network::send`] puts a host's packet into the queue of its port.
//! 2. [`Network::next`] moves packets from port to port until one reaches a host, or a host's alarm
//!    rings.
//!
//! No faults here but those that a network has by itself: full buffers and links that are too
//! small. Others are put on links as a [`LinkRule`].

use smt_proto::Time;

use crate::net::event_queue::EventQueue;
use crate::net::link::{Node, Port, PortStatistics};
use crate::net::packet::{HostId, Packet};
use crate::net::packet_pool::{PacketHandle, PacketPool};
use crate::net::switch::{Admission, PortId, Switch};
use crate::net::topology::Topology;
use crate::random::Random;

/// Decides what becomes of each packet that a host has put on its cable.
pub trait LinkRule {
    /// Appends what arrives instead, and how much later than it would have (nanoseconds). Nothing:
    /// it is lost.
    fn pass(&mut self, now: Time, packet: Packet, out: &mut Vec<(Packet, u64)>);
}

/// Sees every packet that leaves or reaches a host, or passes from switch to switch.
pub trait Tap {
    /// A host puts it on its cable; faults come after.
    fn departed(&mut self, now: Time, packet: &Packet);
    /// It is handed to its host.
    fn arrived(&mut self, now: Time, packet: &Packet);
    /// A switch puts it on its cable to another. Racks' switches are numbered first, then spines.
    fn crossed(&mut self, _now: Time, _switches: [u32; 2], _packet: &Packet) {}
}

/// A network in virtual time.
pub struct Network {
    now: Time,
    /// The packets that wait or are under way at the ports.
    packets: PacketPool,
    ports: Vec<Port>,
    switches: Vec<Switch>,
    hosts: u32,
    queue: EventQueue,
    rule: Option<Box<dyn LinkRule>>,
    taps: Vec<Box<dyn Tap>>,
    passed: Vec<(Packet, u64)>,
    /// Packets that a rule has delayed, by place; free places.
    late: Vec<Option<(PacketHandle, Node)>>,
    free: Vec<u32>,
    counts: Counts,
    /// Longest queue of a switch since it was asked for.
    queue_peak: u64,
}

/// Counts of all that moved.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Packets over one cable each.
    pub hops: u64,
    /// Packets that reached a host.
    pub delivered: u64,
}

#[derive(Clone, Copy)]
enum Happening {
    /// The first packet under way from this port arrives.
    Arrival(PortId),
    /// This port's cable is free, and something waits for it.
    Free(PortId),
    /// A packet that a rule has delayed arrives.
    Late(u32),
    Alarm(HostId),
}

impl Happening {
    /// For the queue: two bits say what, and the others whose.
    fn code(self) -> u32 {
        let (kind, number) = match self {
            Self::Arrival(PortId(port)) => (0, port),
            Self::Free(PortId(port)) => (1, port),
            Self::Late(place) => (2, place),
            Self::Alarm(HostId(host)) => (3, host),
        };
        number << 2 | kind
    }

    fn of(code: u32) -> Self {
        let number = code >> 2;
        match code & 3 {
            0 => Self::Arrival(PortId(number)),
            1 => Self::Free(PortId(number)),
            2 => Self::Late(number),
            _ => Self::Alarm(HostId(number)),
        }
    }
}

/// An occurrence of which a host has to know.
#[derive(Debug)]
pub enum Occurrence {
    /// A packet is there.
    Packet(HostId, Packet),
    /// Its cable is free again.
    Writable(HostId),
    /// The time that it asked for has come.
    Alarm(HostId),
}

impl Network {
    /// A network of this plan, at time 0.
    pub fn new(topology: &Topology, random: &mut Random) -> Self {
        let (ports, switches) = topology.build(random);
        Self {
            now: Time::default(),
            packets: PacketPool::default(),
            ports,
            switches,
            hosts: topology.hosts(),
            queue: EventQueue::default(),
            rule: None,
            taps: Vec::new(),
            passed: Vec::new(),
            late: Vec::new(),
            free: Vec::new(),
            counts: Counts::default(),
            queue_peak: 0,
        }
    }

    /// Puts a rule on all hosts' cables.
    pub fn set_rule(&mut self, rule: Box<dyn LinkRule>) {
        self.rule = Some(rule);
    }

    /// Watches the hosts' cables; several may.
    pub fn add_tap(&mut self, tap: Box<dyn Tap>) {
        self.taps.push(tap);
    }

    /// How many hosts it has cables for.
    pub fn hosts(&self) -> u32 {
        self.hosts
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Bytes that wait at a host's cable.
    pub fn queued_at(&self, host: HostId) -> u64 {
        self.ports[host.0 as usize].queued()
    }

    /// Bytes that the hosts' cables have carried away from them.
    pub fn host_bytes(&self) -> u64 {
        let ports = self.ports.iter().take(self.hosts as usize);
        ports.map(|port| port.statistics.bytes).sum()
    }

    /// Returns the counts of the switches' ports; the hosts' own are not among them.
    pub fn port_statistics(&self) -> impl Iterator<Item = PortStatistics> + '_ {
        let ports = self.ports.iter().skip(self.hosts as usize);
        ports.map(|port| port.statistics)
    }

    /// Bytes that wait in all queues of switches now.
    pub fn switch_bytes(&self) -> u64 {
        self.switches.iter().map(|switch| switch.buffered).sum()
    }

    /// The longest queue that a port of a switch has had since the last call.
    pub fn take_queue_peak(&mut self) -> u64 {
        let ports = self.ports.iter().skip(self.hosts as usize);
        // The next time begins with what waits now, even if it only becomes less.
        let longest = ports.map(Port::queued).max().unwrap_or_default();
        std::mem::replace(&mut self.queue_peak, longest)
    }

    /// Bytes that links have carried to this host, or to all.
    pub fn bytes_to(&self, host: Option<HostId>) -> u64 {
        let is_meant = |port: &&Port| match port.to {
            Node::Host(to) => host.is_none_or(|host| host == to),
            Node::Switch(_) => false,
        };
        let ports = self.ports.iter().filter(is_meant);
        ports.map(|port| port.statistics.bytes).sum()
    }

    /// Plans an alarm for a host.
    pub fn alarm(&mut self, at: Time, host: HostId) {
        self.plan(at, Happening::Alarm(host));
    }

    /// A host puts a packet on its cable.
    pub fn send(&mut self, packet: Packet) {
        let port = PortId(packet.from.cable().0);
        let state = &mut self.ports[port.0 as usize];
        if packet.bytes.len() > state.link.payload_max {
            state.statistics.too_large += 1;
            return;
        }
        let priority = packet.priority;
        state.enqueue(self.packets.insert(packet), priority);
        self.run_port(port);
    }

    /// Puts a packet into the network as if a host's cable had carried it.
    pub fn inject(&mut self, packet: Packet, after: u64) {
        if let Some(port) = self.ports.get(packet.from.cable().0 as usize) {
            let (at, to) = (self.now.as_nanos() + after, port.to);
            self.delay(packet, Time::from_nanos(at), to);
        }
    }

    /// Lets time pass until a host has to know something, at most until `end`.
    pub fn next(&mut self, end: Time) -> Option<Occurrence> {
        loop {
            let Some((at, code)) = self.queue.pop(end) else {
                self.now = self.now.max(end);
                return None;
            };
            self.now = at;
            let occurrence = match Happening::of(code) {
                Happening::Arrival(port) => {
                    let state = &mut self.ports[port.0 as usize];
                    let to = state.to;
                    state.arrive().and_then(|(handle, next)| {
                        if let Some(next) = next {
                            self.plan(next, Happening::Arrival(port));
                        }
                        self.arrived(handle, to)
                    })
                }
                Happening::Late(place) => {
                    self.free.push(place);
                    self.late[place as usize]
                        .take()
                        .and_then(|(handle, to)| self.arrived(handle, to))
                }
                Happening::Free(port) => {
                    self.ports[port.0 as usize].is_woken = false;
                    self.run_port(port);
                    (port.0 < self.hosts).then(|| Occurrence::Writable(HostId(port.0)))
                }
                Happening::Alarm(host) => Some(Occurrence::Alarm(host)),
            };
            if occurrence.is_some() {
                return occurrence;
            }
        }
    }

    fn plan(&mut self, at: Time, happening: Happening) {
        self.queue.push(at, happening.code());
    }

    fn arrived(&mut self, handle: PacketHandle, to: Node) -> Option<Occurrence> {
        match to {
            Node::Host(host) => {
                let packet = self.packets.take(handle)?;
                self.counts.delivered += 1;
                for tap in &mut self.taps {
                    tap.arrived(self.now, &packet);
                }
                Some(Occurrence::Packet(host, packet))
            }
            Node::Switch(number) => {
                match self.switched(handle, number) {
                    Some(port) => self.run_port(port),
                    None => drop(self.packets.take(handle)),
                }
                None
            }
        }
    }

    /// A packet has arrived at a switch, which puts it into the queue of a port or drops it. Which
    /// port it was for.
    fn switched(&mut self, handle: PacketHandle, switch: u32) -> Option<PortId> {
        let packet = self.packets.get_mut(handle)?;
        let switch = &mut self.switches[switch as usize];
        let (port, state) =
            switch.route(packet).map(|port| (port, &mut self.ports[port.0 as usize]))?;
        if packet.bytes.len() > state.link.payload_max {
            state.statistics.too_large += 1;
            return None;
        }
        match switch.admit(packet, state) {
            Admission::Admitted => state.enqueue(handle.of(packet), packet.priority),
            Admission::Dropped => drop(self.packets.take(handle)),
        }
        self.queue_peak = self.queue_peak.max(state.queued());
        Some(port)
    }

    /// Sends what waits at a port if its cable is free; else sees to it that this is called when it
    /// is.
    fn run_port(&mut self, port: PortId) {
        let now = self.now;
        let state = &mut self.ports[port.0 as usize];
        if state.is_free(now)
            && let Some((handle, arrives)) = state.start(now)
        {
            self.depart(port, handle, arrives);
        }
        let state = &mut self.ports[port.0 as usize];
        // A host wants to know, since it fills its queue only then.
        let is_asked = port.0 < self.hosts && !state.is_free(now);
        if (!state.is_empty() || is_asked) && !state.is_woken {
            state.is_woken = true;
            let free = state.free();
            self.plan(free, Happening::Free(port));
        }
    }

    /// A packet leaves a port.
    fn depart(&mut self, port: PortId, handle: PacketHandle, arrives: Time) {
        self.counts.hops += 1;
        let state = &mut self.ports[port.0 as usize];
        if let Some(switch) = state.switch {
            self.switches[switch as usize].buffered -= u64::from(handle.length);
            if let Node::Switch(to) = state.to
                && !self.taps.is_empty()
                && let Some(packet) = self.packets.get_mut(handle)
            {
                let taps = self.taps.iter_mut();
                taps.for_each(|tap| tap.crossed(self.now, [switch, to], packet));
            }
        } else if self.rule.is_some() || !self.taps.is_empty() {
            self.watch(port, handle, arrives);
            return;
        }
        let state = &mut self.ports[port.0 as usize];
        // One event for each port, not for each packet: the queue of events stays short.
        if state.launch(handle, arrives) {
            self.plan(arrives, Happening::Arrival(port));
        }
    }

    /// A packet leaves a host, and somebody looks at it or has rules for it.
    fn watch(&mut self, port: PortId, handle: PacketHandle, arrives: Time) {
        let state = &mut self.ports[port.0 as usize];
        if let Some(packet) = self.packets.get_mut(handle) {
            for tap in &mut self.taps {
                tap.departed(self.now, packet);
            }
        }
        let Some(rule) = &mut self.rule else {
            if state.launch(handle, arrives) {
                self.plan(arrives, Happening::Arrival(port));
            }
            return;
        };
        let Some(packet) = self.packets.take(handle) else {
            return;
        };
        let to = state.to;
        let mut passed = std::mem::take(&mut self.passed);
        rule.pass(self.now, packet, &mut passed);
        for (packet, later) in passed.drain(..) {
            self.delay(packet, Time::from_nanos(arrives.as_nanos() + later), to);
        }
        self.passed = passed;
    }

    /// A packet arrives at some time of its own.
    fn delay(&mut self, packet: Packet, at: Time, to: Node) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.late.push(None);
            (self.late.len() - 1) as u32
        });
        self.late[place as usize] = Some((self.packets.insert(packet), to));
        self.plan(at, Happening::Late(place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::link::Link;
    use crate::net::packet::Protocol;
    use crate::random::Random;
    use bytes::Bytes;
    use std::time::Duration;

    fn packet(from: u32, to: u32, length: usize) -> Packet {
        Packet {
            from: HostId(from),
            to: HostId(to),
            bytes: Bytes::from(vec![0; length]),
            priority: 0,
            is_marked: false,
            is_trimmed: false,
            entropy: 0,
            protocol: Protocol::Smt,
        }
    }

    fn rack() -> Network {
        let edge =
            Link { rate: 10_000_000_000, delay: Duration::from_nanos(100), payload_max: 1_472 };
        Network::new(&Topology::rack(3, edge), &mut Random::new(1))
    }

    fn arrivals(network: &mut Network) -> Vec<(u64, u32)> {
        let end = Time::from_nanos(1_000_000);
        std::iter::from_fn(|| {
            network.next(end).map(|occurrence| (network.now().as_nanos(), occurrence))
        })
        .filter_map(|(at, occurrence)| match occurrence {
            Occurrence::Packet(host, _) => Some((at, host.0)),
            _ => None,
        })
        .collect()
    }

    #[test]
    fn a_packet_crosses_a_switch() {
        let mut network = rack();
        network.send(packet(0, 1, 1_472));
        // Twice 1,230.4 ns on a cable and 100 ns of delay.
        assert_eq!(arrivals(&mut network), [(2 * 1_331, 1)]);
    }

    #[test]
    fn two_senders_share_the_way_to_one_receiver() {
        let mut network = rack();
        network.send(packet(0, 2, 1_472));
        network.send(packet(1, 2, 1_472));
        let arrivals = arrivals(&mut network);
        assert_eq!(arrivals[0], (2_662, 2));
        assert_eq!(arrivals[1].0 - arrivals[0].0, 1_230);
    }

    #[test]
    fn a_queue_s_peak_is_that_of_the_time_since_the_last_look() {
        let mut network = rack();
        (0..4).for_each(|_| network.send(packet(0, 2, 1_472)));
        (0..4).for_each(|_| network.send(packet(1, 2, 1_472)));
        // From 1,331 ns on two arrive every 1,231 ns, and one leaves: at 5,022 ns there are 5
        // before the fourth leaves.
        let mut look = |at| {
            while network.next(Time::from_nanos(at)).is_some() {}
            (network.take_queue_peak() / 1_538, network.switch_bytes() / 1_538)
        };
        assert_eq!(look(1_000), (0, 0));
        assert_eq!(look(6_000), (5, 4));
        // Nothing enters any more, but so much was there.
        assert_eq!(look(9_000), (4, 1));
        assert_eq!(look(20_000), (1, 0));
        assert_eq!(network.bytes_to(Some(HostId(2))), 8 * 1_538);
        assert_eq!(network.bytes_to(Some(HostId(1))), 0);
        assert_eq!(network.bytes_to(None), 8 * 1_538);
    }

    #[test]
    fn packet_larger_than_the_link_permits_is_lost() {
        let mut network = rack();
        network.send(packet(0, 1, 1_473));
        assert!(arrivals(&mut network).is_empty());
    }

    #[test]
    fn every_host_of_a_datacenter_reaches_every_other() {
        let topology = Topology::datacenter(10_000_000_000, 40_000_000_000);
        let mut network = Network::new(&topology, &mut Random::new(1));
        for from in 0..144 {
            (0..144).filter(|to| *to != from).for_each(|to| network.send(packet(from, to, 100)));
        }
        let mut counts = [0; 144];
        let end = Time::from_nanos(1_000_000_000);
        while let Some(occurrence) = network.next(end) {
            if let Occurrence::Packet(host, packet) = occurrence {
                assert_eq!(packet.to, host);
                counts[host.0 as usize] += 1;
            }
        }
        assert!(counts.iter().all(|count| *count == 143));
    }
}
