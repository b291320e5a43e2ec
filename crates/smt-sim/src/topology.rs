// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How hosts are wired: two of them, one rack, or leaves and spines.

use std::time::Duration;

use crate::link::{Link, Node, Port};
use crate::packet::HostId;
use crate::random::Random;
use crate::switch::{PortId, Route, Switch, SwitchPolicy};

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
    /// What a host adds to a packet's way, besides the cable: software and network card, out and in.
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

    /// The Homa papers' datacenter: 9 racks of 16 hosts, 4 spines; 10 and 40 Gb/s there. 250 ns in each switch,
    /// 1 us in a host on the way out and 0.5 us on the way in (docs/WORKLOADS.md).
    pub fn datacenter(edge_rate: u64, core_rate: u64) -> Self {
        let link = |rate, delay| Link {
            rate,
            delay: Duration::from_nanos(delay),
            payload_max: 1_472,
        };
        Self {
            racks: 9,
            hosts_per_rack: 16,
            spines: 4,
            edge: link(edge_rate, 0),
            host_delay: [Duration::from_nanos(1_000), Duration::from_nanos(500)],
            core: link(core_rate, 0),
            switch: SwitchPolicy {
                delay: Duration::from_nanos(250),
                ..SwitchPolicy::default()
            },
        }
    }

    /// All hosts.
    pub fn hosts(&self) -> u32 {
        self.racks * self.hosts_per_rack
    }

    /// Cables and switches of the plan. The first ports are the hosts', in their order.
    pub(crate) fn build(&self, random: &mut Random) -> (Vec<Port>, Vec<Switch>) {
        let hosts = self.hosts();
        let up = self.edge_link(self.host_delay[0] + self.switch.delay);
        let down = self.edge_link(self.host_delay[1]);
        let core = |to_switch: Link| Link {
            delay: to_switch.delay + self.switch.delay,
            ..to_switch
        };
        let rack_of = |host: u32| host / self.hosts_per_rack;
        let to_rack = (0..hosts).map(|host| Port::new(up, Node::Switch(rack_of(host)), None));
        let mut ports: Vec<Port> = to_rack.collect();
        let mut switches = Vec::new();
        for rack in 0..self.racks {
            let first = ports.len() as u32;
            let own = rack * self.hosts_per_rack..(rack + 1) * self.hosts_per_rack;
            ports.extend(
                own.clone()
                    .map(|host| Port::new(down, Node::Host(HostId(host)), Some(rack))),
            );
            let first_up = ports.len() as u32;
            ports.extend((0..self.spines).map(|spine| {
                Port::new(
                    core(self.core),
                    Node::Switch(self.racks + spine),
                    Some(rack),
                )
            }));
            let route = |host: u32| match own.contains(&host) {
                true => one(first + host - own.start),
                false => Route {
                    first: PortId(first_up),
                    count: self.spines,
                },
            };
            let routes = (0..hosts).map(route).collect();
            switches.push(Switch::new(self.switch, routes, random.fork()));
        }
        for spine in 0..self.spines {
            let number = Some(self.racks + spine);
            let first = ports.len() as u32;
            ports.extend(
                (0..self.racks).map(|rack| Port::new(core(self.core), Node::Switch(rack), number)),
            );
            let routes = (0..hosts).map(|host| one(first + rack_of(host))).collect();
            switches.push(Switch::new(self.switch, routes, random.fork()));
        }
        (ports, switches)
    }
}

impl Topology {
    fn edge_link(&self, more: Duration) -> Link {
        Link {
            delay: self.edge.delay + more,
            ..self.edge
        }
    }
}

fn one(port: u32) -> Route {
    Route {
        first: PortId(port),
        count: 1,
    }
}
