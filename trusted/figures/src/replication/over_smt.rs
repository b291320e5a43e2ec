// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A system over SMT on the loopback: a thread for each replica and one for all clients, each with
//! an endpoint of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use smt_loopback::{Places, Running, for_client, send};
use smt_mesh::{Arrival, Member, Mesh, messages};

use super::device::Devices;
use super::requester::Requester;
use super::system::{Place, System};
use super::{REPLICAS, cpu};
use crate::Failure;
use crate::times::Times;

/// Between two ticks of a replica, or of a client to which nothing comes.
pub(super) const TICK: Duration = Duration::from_millis(10);
/// Without any answer for so long, a run has failed.
const DEADLINE: Duration = Duration::from_secs(60);

/// How many requests are in progress, and how many are counted in all.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) in_progress: u32,
    pub(crate) requests: u64,
}

/// The results of a run.
pub(crate) struct Measured {
    /// Requests in a second.
    pub(crate) rate: f64,
    /// From a request to its answer.
    pub(crate) latency: Times,
    /// Microseconds of a processor for each request: this process and the devices'.
    pub(crate) cpu: f64,
}

/// Measures a system in its first view, without failures.
pub(crate) fn measure(system: &System, load: Load) -> Result<Measured, Failure> {
    let devices = Devices::start(system.attesting, REPLICAS)?;
    let place = system.place(&devices, load.in_progress)?;
    let places = Places::make(REPLICAS)?;
    let start = |own| {
        let place = place.clone();
        Running::start(&places.replica(own), TICK, move || place.machine(own))
    };
    let replicas: Vec<Running<Failure>> = (0..REPLICAS).map(start).collect::<Result<_, _>>()?;
    let clients = Clients::open(&place, &places, load.in_progress)?;
    let measured = measure_clients(clients, load, &devices);
    // The reason of a replica that has ended by itself comes before that of a client in vain.
    let is_over = measured.is_ok();
    for replica in replicas.into_iter().filter(|it| is_over || it.has_ended()) {
        replica.end().map_err(|it| it.to_string())?;
    }
    measured
}

/// Measures the requests of all clients.
fn measure_clients(
    mut clients: Clients,
    load: Load,
    devices: &Devices,
) -> Result<Measured, Failure> {
    // Sessions, and what is made at its first use.
    clients.run(u64::from(load.in_progress) + load.requests / 10)?;
    clients.times = Times::of_batches(1);
    let cpu_of = || Ok::<_, Failure>(cpu::seconds_of(std::process::id())? + devices.cpu_seconds()?);
    let (begin, cpu_before) = (Instant::now(), cpu_of()?);
    clients.run(load.requests)?;
    let (seconds, cpu) = (begin.elapsed().as_secs_f64(), cpu_of()? - cpu_before);
    clients.mesh.close(Duration::from_millis(100));
    let requests = load.requests as f64;
    Ok(Measured { rate: requests / seconds, latency: clients.times, cpu: cpu * 1e6 / requests })
}

/// All clients, which share an endpoint.
pub(super) struct Clients {
    mesh: Mesh,
    requesters: Vec<Box<dyn Requester>>,
    /// When each request in progress began, by client and number.
    began: BTreeMap<(usize, u64), Instant>,
    in_progress: u32,
    times: Times,
}

impl Clients {
    pub(super) fn open(place: &Place, places: &Places, in_progress: u32) -> Result<Self, Failure> {
        let mut mesh = Mesh::open(&places.clients())?;
        // Replicas reply in the session in which a client spoke last: all must know one.
        mesh.to_replicas(&[]);
        let requesters = place.requesters(in_progress);
        let (began, times) = (BTreeMap::new(), Times::of_batches(1));
        Ok(Self { mesh, requesters, began, in_progress, times })
    }

    /// Makes so many requests.
    pub(super) fn run(&mut self, requests: u64) -> Result<(), Failure> {
        let (mut begun, mut answered) = (0, 0);
        for request in 0..self.in_progress as usize {
            begun += u64::from(begun < requests && self.submit(request % self.requesters.len()));
        }
        self.send();
        let mut last = Instant::now();
        while answered < requests {
            let (from, packet) = match self.mesh.next(TICK) {
                Arrival::Packet(Member::Replica(from), packet) => (from, packet),
                Arrival::Nothing if last.elapsed() < DEADLINE => {
                    self.tick();
                    continue;
                }
                _ => return Err("the replicas give no answer".into()),
            };
            last = Instant::now();
            for message in messages(&packet) {
                let Some((client, bytes)) = for_client(message) else {
                    continue;
                };
                let client = client as usize;
                if self.receive(client, from, bytes) {
                    answered += 1;
                    begun += u64::from(begun < requests && self.submit(client));
                }
            }
            // Requests that were begun together go together.
            self.send();
        }
        Ok(())
    }

    /// Nothing has come for the time of a tick: clients that wait repeat their requests after some.
    fn tick(&mut self) {
        let waiting: BTreeSet<usize> = self.began.keys().map(|it| it.0).collect();
        waiting.into_iter().for_each(|it| self.requesters[it].tick());
        self.send();
    }

    fn send(&mut self) {
        for requester in &mut self.requesters {
            requester.outputs().into_iter().for_each(|it| send(&mut self.mesh, it));
        }
    }

    /// Begins a client's next request.
    fn submit(&mut self, client: usize) -> bool {
        let number = self.requesters[client].submit();
        self.began.insert((client, number), Instant::now());
        true
    }

    /// Whether a request of a client has its answer now.
    fn receive(&mut self, client: usize, from: u32, bytes: &[u8]) -> bool {
        let requester = self.requesters.get_mut(client);
        let ended = requester.and_then(|it| it.receive(from, bytes));
        let began = ended.and_then(|number| self.began.remove(&(client, number)));
        if let Some(began) = began {
            self.times.add(began.elapsed());
        }
        began.is_some()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::replication::device::Attesting;
    use crate::replication::system::Kind;

    #[test]
    fn each_system_answers_all_requests_of_several_clients_over_smt() {
        let kinds = [
            Kind::Bft { batch: 8 },
            Kind::Chain,
            Kind::PeerReview { is_audited: true },
            Kind::Raft { batch: 8 },
            Kind::CrashTolerantChain,
        ];
        for kind in kinds {
            let system = System { kind, attesting: Attesting::Library };
            let load = Load { in_progress: 3, requests: 30 };
            let measured = measure(&system, load).unwrap();
            assert!(measured.rate > 0.0, "{kind:?}");
        }
    }
}
