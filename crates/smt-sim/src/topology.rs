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
    /// Host to rack switch.
    pub edge: Link,
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
            core: edge,
            switch: SwitchPolicy::default(),
        }
    }

    /// The Homa papers' datacenter: 9 racks of 16 hosts, 4 spines, `edge` and four times as fast `core` links
    /// (SIGCOMM 2018 §5.2: 10 and 40 Gb/s, 250 ns of switch delay, 1.5 us of host delay).
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
            edge: link(edge_rate, SWITCH_DELAY),
            core: link(core_rate, SWITCH_DELAY),
            switch: SwitchPolicy::default(),
        }
    }

    /// All hosts.
    pub fn hosts(&self) -> u32 {
        self.racks * self.hosts_per_rack
    }

    /// Cables and switches of the plan. The first ports are the hosts', in their order.
    pub(crate) fn build(&self, random: &mut Random) -> (Vec<Port>, Vec<Switch>) {
        let hosts = self.hosts();
        let rack_of = |host: u32| host / self.hosts_per_rack;
        let to_rack =
            (0..hosts).map(|host| Port::new(self.edge, Node::Switch(rack_of(host)), None));
        let mut ports: Vec<Port> = to_rack.collect();
        let mut switches = Vec::new();
        for rack in 0..self.racks {
            let first = ports.len() as u32;
            let own = rack * self.hosts_per_rack..(rack + 1) * self.hosts_per_rack;
            ports.extend(
                own.clone()
                    .map(|host| Port::new(self.edge, Node::Host(HostId(host)), Some(rack))),
            );
            let up = ports.len() as u32;
            ports.extend(
                (0..self.spines).map(|spine| {
                    Port::new(self.core, Node::Switch(self.racks + spine), Some(rack))
                }),
            );
            let route = |host: u32| match own.contains(&host) {
                true => one(first + host - own.start),
                false => Route {
                    first: PortId(up),
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
                (0..self.racks).map(|rack| Port::new(self.core, Node::Switch(rack), number)),
            );
            let routes = (0..hosts).map(|host| one(first + rack_of(host))).collect();
            switches.push(Switch::new(self.switch, routes, random.fork()));
        }
        (ports, switches)
    }
}

fn one(port: u32) -> Route {
    Route {
        first: PortId(port),
        count: 1,
    }
}

/// Nanoseconds that a packet spends in a switch beside its queue (SIGCOMM 2018 §5.2).
const SWITCH_DELAY: u64 = 250;
