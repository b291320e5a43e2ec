// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How hosts are wired: two of them, one rack, or leaves and spines.

use std::time::Duration;

use crate::net::link::{Link, Node, Port};
use crate::net::packet::{HostId, wire_len};
use crate::net::switch::{PortId, Route, Switch, SwitchPolicy};
use crate::random::Random;

/// A wiring plan.
#[derive(Clone, Copy, Debug)]
pub struct Topology {
    /// Racks; one rack has no spine.
    pub racks: u32,
    /// Hosts of each rack.
    pub hosts_per_rack: u32,
    /// Spine switches, each wired to each rack's.
    pub spines: u32,
    /// Between hosts and their rack switch.
    pub edge: Link,
    /// The delay that a host adds to a packet's way, besides the cable: software and network card,
    /// out and in.
    pub host_delay: [Duration; 2],
    /// Rack switch to spine.
    pub core: Link,
    /// All switches.
    pub switch: SwitchPolicy,
}

impl Topology {
    /// One switch, these hosts.
    pub fn rack(hosts: u32, edge: Link) -> Self {
        Self {
            racks: 1,
            hosts_per_rack: hosts,
            spines: 0,
            edge,
            host_delay: [Duration::ZERO; 2],
            core: edge,
            switch: SwitchPolicy::default(),
        }
    }

    /// The Homa papers' datacenter: 9 racks of 16 hosts, 4 spines; 10 and 40 Gb/s there. 250 ns in
    /// each switch, 1 us in a host on the way out and 0.5 us on the way in (docs/WORKLOADS.md).
    pub fn datacenter(edge_rate: u64, core_rate: u64) -> Self {
        let link =
            |rate, delay| Link { rate, delay: Duration::from_nanos(delay), payload_max: 1_472 };
        Self {
            racks: 9,
            hosts_per_rack: 16,
            spines: 4,
            edge: link(edge_rate, 0),
            host_delay: [Duration::from_nanos(1_000), Duration::from_nanos(500)],
            core: link(core_rate, 0),
            switch: SwitchPolicy { delay: Duration::from_nanos(250), ..SwitchPolicy::default() },
        }
    }

    /// All hosts.
    pub fn hosts(&self) -> u32 {
        self.racks * self.hosts_per_rack
    }

    /// Bytes that keep the longest path busy: what a host's link carries from the first byte of a
    /// full packet until the grant for it is back, without queues. To the nearest 1,000, so that
    /// the Homa papers' datacenter has their 10,000: what rounding takes away is less than what is
    /// sent to the end of a record (SPEC §5.3).
    ///
    /// At least 3,000, which hold the longest first record.
    pub fn round_trip_bytes(&self) -> u32 {
        let bytes = self.round_trip().as_nanos() * u128::from(self.edge.rate) / 8_000_000_000;
        let rounded = (bytes + 500) / 1_000 * 1_000;
        u32::try_from(rounded).map_or(ROUND_TRIP_MAX, |bytes| bytes.clamp(3_000, ROUND_TRIP_MAX))
    }

    /// How long a full packet takes there by the longest path, and a grant back.
    pub(crate) fn round_trip(&self) -> Duration {
        let (full, grant) = (wire_len(self.edge.payload_max), wire_len(GRANT_LEN));
        self.one_way(full) + self.one_way(grant)
    }

    /// From host to host by the longest path: each switch passes a packet on when it has all of it.
    fn one_way(&self, bytes: u64) -> Duration {
        let over =
            |link: Link| link.delay + Duration::from_nanos(bytes * 8_000_000_000 / link.rate);
        let [out, into] = self.host_delay;
        let edges = out + over(self.edge) + self.switch.delay + over(self.edge) + into;
        match self.racks {
            1 => edges,
            _ => edges + 2 * (over(self.core) + self.switch.delay),
        }
    }

    /// Cables and switches of the plan. The first ports are the hosts', in their order.
    pub(crate) fn build(&self, random: &mut Random) -> (Vec<Port>, Vec<Switch>) {
        let hosts = self.hosts();
        let up = self.edge_link(self.host_delay[0] + self.switch.delay);
        let down = self.edge_link(self.host_delay[1]);
        let core =
            |to_switch: Link| Link { delay: to_switch.delay + self.switch.delay, ..to_switch };
        let switched = |port: Port| port.scheduled(self.switch.scheduler);
        let rack_of = |host: u32| host / self.hosts_per_rack;
        let to_rack = (0..hosts).map(|host| Port::new(up, Node::Switch(rack_of(host)), None));
        let mut ports: Vec<Port> = to_rack.collect();
        let mut switches = Vec::new();
        for rack in 0..self.racks {
            let first = ports.len() as u32;
            let own = rack * self.hosts_per_rack..(rack + 1) * self.hosts_per_rack;
            ports.extend(
                own.clone()
                    .map(|host| switched(Port::new(down, Node::Host(HostId(host)), Some(rack)))),
            );
            let first_up = ports.len() as u32;
            ports.extend((0..self.spines).map(|spine| {
                let to = Node::Switch(self.racks + spine);
                switched(Port::new(core(self.core), to, Some(rack)))
            }));
            let route = |host: u32| match own.contains(&host) {
                true => one(first + host - own.start),
                false => Route { first: PortId(first_up), count: self.spines },
            };
            let routes = (0..hosts).map(route).collect();
            switches.push(Switch::new(self.switch, routes, random.fork()));
        }
        for spine in 0..self.spines {
            let number = Some(self.racks + spine);
            let first = ports.len() as u32;
            ports.extend(
                (0..self.racks)
                    .map(|rack| switched(Port::new(core(self.core), Node::Switch(rack), number))),
            );
            let routes = (0..hosts).map(|host| one(first + rack_of(host))).collect();
            switches.push(Switch::new(self.switch, routes, random.fork()));
        }
        (ports, switches)
    }
}

impl Topology {
    fn edge_link(&self, more: Duration) -> Link {
        Link { delay: self.edge.delay + more, ..self.edge }
    }
}

fn one(port: u32) -> Route {
    Route { first: PortId(port), count: 1 }
}

/// A control packet with one grant (SPEC §3.4, §8).
pub(crate) const GRANT_LEN: usize = 68;
/// 16 MB: what 100 Gb/s carry in 1.3 ms, and seven windows of it are a number.
const ROUND_TRIP_MAX: u32 = 16_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const GIGA: u64 = 1_000_000_000;

    #[test]
    fn the_homa_papers_round_trip_is_10_000_bytes() {
        let papers = Topology::datacenter(10 * GIGA, 40 * GIGA);
        assert_eq!(papers.round_trip_bytes(), 10_000);
    }

    #[test]
    fn a_round_trip_follows_rates_delays_and_the_size_of_packets() {
        let rack = |rate, delay, payload_max| {
            let delay = Duration::from_nanos(delay);
            let link = Link { rate, delay, payload_max };
            Topology::rack(4, link).round_trip_bytes()
        };
        // Two frames of 1,538 and two of 134 bytes, and 4 us.
        assert_eq!(rack(10 * GIGA, 1_000, 1_472), 8_000);
        assert_eq!(rack(100 * GIGA, 1_000, 1_472), 53_000);
        assert_eq!(rack(100 * GIGA, 1_000, 8_972), 68_000);
        assert_eq!(rack(GIGA, 0, 1_472), 3_000);
        assert_eq!(rack(400 * GIGA, 10_000_000, 1_472), 16_000_000);
        // 4.5 us in hosts and switches, and 0.31 for the bytes.
        let fast = Topology::datacenter(100 * GIGA, 400 * GIGA);
        assert_eq!(fast.round_trip_bytes(), 60_000);
    }
}
