// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long a message takes that is alone: measured, in the same network with the same transport.

use std::collections::BTreeMap;
use std::time::Duration;

use smt_proto::Time;

use super::cannot_run::CannotRun;
use super::messenger::Messenger;
use crate::net::network::Network;
use crate::net::packet::HostId;
use crate::net::topology::Topology;
use crate::net::world::World;
use crate::random::Random;

/// Times of lone messages by length, within a rack and across racks.
#[derive(Clone, Debug, Default)]
pub(super) struct Unloaded {
    within: BTreeMap<u32, Duration>,
    across: BTreeMap<u32, Duration>,
}

impl Unloaded {
    /// Measures these lengths, one message at a time.
    pub(super) fn measure<M: Messenger>(
        topology: &Topology,
        lengths: &[u32],
        mut host: impl FnMut(HostId) -> M,
    ) -> Result<Self, CannotRun> {
        let small = Topology { racks: topology.racks.min(2), hosts_per_rack: 2, ..*topology };
        let hosts = small.hosts();
        let network = Network::new(&small, &mut Random::new(1));
        let mut world = World::new(network, (0..hosts).map(|id| host(HostId(id))).collect());
        for id in (0..hosts).map(HostId) {
            let others: Vec<HostId> = (0..hosts).map(HostId).filter(|to| *to != id).collect();
            world.change(id, |host, now| host.prepare(now, &others));
        }
        world.run_until(Time::default() + SETUP);
        let pause = PAUSE_MIN.max(4 * small.round_trip());
        let mut times = Self::default();
        for length in lengths {
            let mut alone = |to| {
                let began = world.network.now() + pause;
                world.run_until(began);
                time_alone(&mut world, HostId(to), *length)
            };
            times.within.insert(*length, alone(1)?);
            if hosts > 2 {
                let across = alone(2)?;
                times.across.insert(*length, across);
            }
        }
        Ok(times)
    }

    /// How long a message of this length takes.
    ///
    /// # Panics
    /// If the length was not measured.
    pub(super) fn time(&self, length: u32, is_within_rack: bool) -> Duration {
        let times = if is_within_rack { &self.within } else { &self.across };
        times[&length]
    }
}

/// A message from host 0, and nothing else in the network.
fn time_alone<M: Messenger>(
    world: &mut World<M>,
    to: HostId,
    length: u32,
) -> Result<Duration, CannotRun> {
    let began = world.network.now();
    world.change(HostId(0), |host, now| host.send(now, to, length));
    let mut arrived = Vec::new();
    while arrived.is_empty() {
        let Some(host) = world.step(began + ARRIVAL_MAX) else {
            break;
        };
        if host == to {
            world.peek(to, |host| host.take_arrivals(&mut arrived));
        }
    }
    match arrived.is_empty() {
        true => Err(CannotRun::LoneMessage { length }),
        false => Ok(world.network.now() - began),
    }
}

/// Sessions begin, and the size of datagrams is found.
const SETUP: Duration = Duration::from_secs(1);
/// Between two messages, so that acknowledgements have passed: at least this, or four round trips.
const PAUSE_MIN: Duration = Duration::from_millis(2);
/// 30 MB at 10 Gb/s take 25 ms.
const ARRIVAL_MAX: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::super::{Pattern, Scenario, Transport, run};
    use super::*;
    use crate::lab::workload::Workload;

    /// How much longer than its payload on the link a lone message of 1 MiB takes.
    fn ratio(transport: Transport, gbps: u64) -> f64 {
        let giga = 1_000_000_000;
        let topology = Topology {
            racks: 2,
            hosts_per_rack: 2,
            ..Topology::datacenter(gbps * giga, 4 * gbps * giga)
        };
        let scenario = Scenario {
            topology,
            workload: Workload::Fixed(1 << 20),
            pattern: Pattern::Uniform { load: 0.1 },
            transport,
            duration: Duration::from_nanos(1),
            warm_up: Duration::ZERO,
            peers: 3,
            seed: 1,
        };
        let [alone] = run(&scenario).unwrap().alone[..] else { panic!("there is one length") };
        let best = f64::from(alone.length) * 8.0 / gbps as f64;
        alone.took.as_nanos() as f64 / best
    }

    #[test]
    fn a_lone_message_fills_links_of_any_rate() {
        for gbps in [10, 25, 100, 400] {
            for transport in ["smt", "ndp"] {
                let ratio = ratio(transport.parse().unwrap(), gbps);
                assert!(ratio < 1.25, "{transport} at {gbps} Gb/s: {ratio}");
            }
        }
    }
}
