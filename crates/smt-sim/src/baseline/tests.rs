// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Streams over a network. Random tests print their seed; `SMT_SEED=` repeats it.

mod congestion;
mod delivery;
mod recovery;
mod repetition;

use std::time::Duration;

use smt_proto::Time;

use super::limits::HEADER_LEN;
use super::{Delivered, Pooling, StreamHost, StreamOptions};
use crate::net::link::Link;
use crate::net::network::{LinkRule, Network};
use crate::net::packet::{HostId, Packet};
use crate::net::topology::Topology;
use crate::net::world::World;
use crate::random::Random;

/// Hosts, and what has reached them.
struct Scene {
    world: World<StreamHost>,
    arrived: Vec<(HostId, Delivered)>,
    hosts: u32,
}

impl Scene {
    fn new(topology: &Topology, options: StreamOptions, seed: u64) -> Self {
        let network = Network::new(topology, &mut Random::new(seed));
        let hosts = topology.hosts();
        let all = (0..hosts).map(|id| StreamHost::new(HostId(id), hosts, options));
        Self { world: World::new(network, all.collect()), arrived: Vec::new(), hosts }
    }

    /// One switch, one connection per pair.
    fn rack(hosts: u32) -> Self {
        Self::new(&Topology::rack(hosts, EDGE), StreamOptions::default(), 1)
    }

    /// Sends what the rule lets pass: it sees each data segment and how many there were before.
    fn losing(mut self, is_lost: impl FnMut(&Packet, u64) -> bool + 'static) -> Self {
        self.world.network.set_rule(Box::new(Loss { is_lost, segments: 0 }));
        self
    }

    fn send(&mut self, from: u32, to: u32, message: u64, length: u32) {
        self.world.change(HostId(from), |host, now| {
            host.send(now, HostId(to), message, length);
        });
    }

    /// Lets time pass until a moment, and notes what arrives.
    fn run_until(&mut self, end: Duration) {
        self.world.run_until(Time::default() + end);
        for to in (0..self.hosts).map(HostId) {
            let delivered = self.world.change(to, |host, _| host.take_delivered());
            let delivered = delivered.into_iter().map(|delivered| (to, delivered));
            self.arrived.extend(delivered);
        }
    }

    fn host(&self, id: u32) -> &StreamHost {
        &self.world.hosts()[id as usize]
    }

    /// When a message arrived.
    fn arrival(&self, message: u64) -> Duration {
        let mut arrived = self.arrived.iter().map(|(_, delivered)| delivered);
        let found = arrived.find(|delivered| delivered.message == message);
        found.expect("the message arrived").at - Time::default()
    }
}

/// Loses data segments.
struct Loss<F> {
    is_lost: F,
    segments: u64,
}

impl<F: FnMut(&Packet, u64) -> bool> LinkRule for Loss<F> {
    fn pass(&mut self, _: Time, packet: Packet, out: &mut Vec<(Packet, u64)>) {
        let is_data = packet.bytes[0] == 0;
        if is_data && (self.is_lost)(&packet, self.segments) {
            self.segments += 1;
            return;
        }
        self.segments += u64::from(is_data);
        out.push((packet, 0));
    }
}

/// Where a data segment begins in its stream.
fn start_of(packet: &Packet) -> u64 {
    let place = packet.bytes[4..HEADER_LEN].try_into().unwrap();
    u64::from_be_bytes(place)
}

/// From `SMT_SEED`, or from the clock; prints it.
fn seed() -> u64 {
    let given = std::env::var("SMT_SEED").ok();
    let seed = given.map_or_else(
        || {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.expect("the clock is past 1970").as_nanos() as u64
        },
        |given| given.parse().expect("SMT_SEED is a number"),
    );
    println!("SMT_SEED={seed}");
    seed
}

/// A full segment takes 1,230.4 ns and 500 ns; to another host of the rack it takes twice that, and
/// an acknowledgement twice 67.2 ns and 500 ns back: 4.6 us.
const EDGE: Link =
    Link { rate: 10_000_000_000, delay: Duration::from_nanos(500), payload_max: 1_472 };
