// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lets a scenario run.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::time::Duration;

use bytes::Bytes;
use smt_proto::Time;

use super::cannot_run::CannotRun;
use super::messenger::{Arrival, Messenger};
use super::peers::Peers;
use super::poisson;
use super::results::{LoneTime, Results, Sample};
use super::round;
use super::scenario::{Pattern, Scenario, Transport};
use super::smt_messenger::SmtMessenger;
use super::stream_messenger::StreamMessenger;
use super::unloaded::Unloaded;
use super::watch::{Standing, Watch};
use super::wire_bytes::WireBytes;
use crate::baseline::StreamOptions;
use crate::net::event_queue::EventQueue;
use crate::net::network::Network;
use crate::net::packet::HostId;
use crate::net::world::World;
use crate::random::{Random, mix};

/// Lets it run to its end.
///
/// # Errors
/// Its network does not carry what is to be measured.
pub fn run(scenario: &Scenario) -> Result<Results, CannotRun> {
    run_watched(scenario, Watch::default())
}

/// The same with somebody who looks on.
///
/// # Errors
/// As for [`run`].
pub fn run_watched<'a>(scenario: &'a Scenario, watch: Watch<'a>) -> Result<Results, CannotRun> {
    Ok(match scenario.transport {
        Transport::Smt => {
            let zeros = Bytes::from(vec![0; scenario.workload.quantile(1.0) as usize]);
            let config = SmtMessenger::config(&scenario.topology);
            let host = |id| SmtMessenger::new(id, config.clone(), zeros.clone());
            Run::new(scenario, watch, host)?.play()
        }
        Transport::Ndp(order) => {
            let zeros = Bytes::from(vec![0; scenario.workload.quantile(1.0) as usize]);
            let link = scenario.topology.edge;
            let mut config = SmtMessenger::config(&scenario.topology);
            // A trimmed packet tells where it begins: packets are full, and end where the next
            // begins.
            config.batch_max = link.payload_max;
            let host = |id| {
                let host = SmtMessenger::new(id, config.clone(), zeros.clone());
                host.pulling(link, order)
            };
            Run::new(scenario, watch, host)?.play()
        }
        Transport::Stream(pooling) => {
            let options = StreamOptions {
                pooling,
                round_trip: scenario.topology.round_trip(),
                ..StreamOptions::default()
            };
            let of = |hosts| move |id| StreamMessenger::new(id, hosts, options);
            // The lone message's network is smaller than the scenario's.
            let hosts = scenario.topology.hosts().max(4);
            Run::new(scenario, watch, of(hosts))?.play()
        }
    })
}

struct Run<'a, M> {
    scenario: &'a Scenario,
    world: World<M>,
    unloaded: Unloaded,
    random: Random,
    peers: Peers,
    /// Hosts whose next message is due, by time.
    due: EventQueue,
    /// Messages under way: sender, receiver, name.
    sent: HashMap<(HostId, HostId, u64), Sent, BuildHasherDefault<Mixed>>,
    /// Nanoseconds between two messages of a host.
    interval: f64,
    began: Time,
    /// When the next sample is due.
    sample_due: Time,
    results: Results,
    messages: Vec<(u32, f32)>,
    /// Counted messages that the transport did not take: sender, receiver.
    refused: Vec<(HostId, HostId, Sent)>,
    /// Counted messages that have not arrived yet.
    awaited: u64,
    /// Payload that arrived in the counted time.
    arrived_bytes: u64,
    /// Payload that arrived and that no sample has counted yet.
    arrived_lately: u64,
    /// The bytes that links had carried at the last sample.
    carried: u64,
    /// The packets that switches had dropped, trimmed and marked when messages began.
    before: [u64; 3],
    tell: Option<&'a mut dyn FnMut(Standing)>,
}

struct Sent {
    at: Time,
    length: u32,
}

/// A hash of numbers that nobody chooses to do harm.
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mix(self.0.rotate_left(5) ^ number);
    }
}

impl<'a, M: Messenger> Run<'a, M> {
    fn new(
        scenario: &'a Scenario,
        Watch { tap, tell }: Watch<'a>,
        mut host: impl FnMut(HostId) -> M,
    ) -> Result<Self, CannotRun> {
        let mut random = Random::new(scenario.seed);
        let topology = &scenario.topology;
        let unloaded = Unloaded::measure(topology, &scenario.workload.sizes(), &mut host)?;
        let mut network = Network::new(topology, &mut random);
        tap.into_iter().for_each(|tap| network.add_tap(tap));
        let hosts = (0..topology.hosts()).map(|id| host(HostId(id))).collect();
        let peers = Peers::of(scenario, &mut random);
        let mut run = Self {
            scenario,
            world: World::new(network, hosts),
            unloaded,
            random,
            peers,
            due: EventQueue::default(),
            sent: HashMap::default(),
            interval: 0.0,
            began: Time::default(),
            sample_due: Time::default(),
            results: Results::default(),
            messages: Vec::new(),
            refused: Vec::new(),
            awaited: 0,
            arrived_bytes: 0,
            arrived_lately: 0,
            carried: 0,
            before: [0; 3],
            tell,
        };
        run.results.alone = run.lone_times();
        run.set_up()?;
        Ok(run)
    }

    /// The shortest, the median and the longest message, each alone.
    fn lone_times(&self) -> Vec<LoneTime> {
        let mut lengths =
            [0.0, 0.5, 1.0].map(|share| self.scenario.workload.quantile(share)).to_vec();
        lengths.dedup();
        let is_one_rack = self.scenario.topology.racks == 1;
        let time = |length| LoneTime { length, took: self.unloaded.time(length, is_one_rack) };
        lengths.into_iter().map(time).collect()
    }

    /// Sessions begin, a rack's worth of hosts at a time.
    fn set_up(&mut self) -> Result<(), CannotRun> {
        for host in 0..self.scenario.topology.hosts() {
            let sessions = &self.peers.sessions[host as usize];
            let prepare = |host: &mut M, now| host.prepare(now, sessions);
            self.world.change(HostId(host), prepare);
            let end = self.world.network.now() + STAGGER;
            self.world.run_until(end);
        }
        let end = self.world.network.now() + SETUP;
        self.world.run_until(end);
        let (hosts, ready) = (self.world.hosts().len(), self.world.hosts().iter());
        let ready = ready.filter(|host| host.is_ready()).count();
        if ready < hosts {
            return Err(CannotRun::Sessions { ready, hosts });
        }
        self.began = self.world.network.now();
        self.world.network.take_queue_peak();
        self.carried = self.carried();
        self.before = self.interfered();
        Ok(())
    }

    fn play(mut self) -> Results {
        self.plan();
        self.sample_due = self.began + self.sample_interval();
        // A message that begins with the counted time belongs to it.
        if !self.scenario.warm_up.is_zero() {
            self.send_until(self.counted());
        }
        let used_before = self.used();
        let ends = self.began + self.scenario.duration;
        self.send_until(ends);
        let used = self.used() - used_before;
        let counted = self.scenario.duration - self.scenario.warm_up;
        let seconds = counted.as_secs_f64() * self.hosts();
        self.results.used = used as f64 * 8.0 / seconds / self.scenario.topology.edge.rate as f64;
        self.results.goodput = self.arrived_bytes as f64 * 8.0 / seconds;
        self.wait_for_the_rest(ends);
        self.finish()
    }

    /// Lets time pass until all counted messages have arrived. Others go on being sent: whoever is
    /// not through yet is not to have the network for itself. Neither are they counted, nor is
    /// anything sampled. After the rounds of an incast nothing comes.
    fn wait_for_the_rest(&mut self, ends: Time) {
        self.sample_due = NEVER;
        if let Pattern::Incast { .. } = self.scenario.pattern {
            self.due = EventQueue::default();
        }
        let patience = ends + UNFINISHED_AFTER;
        while self.awaited > 0 && self.world.network.now() < patience {
            self.send_until(self.world.network.now() + LOOK_EVERY);
            self.tell();
        }
    }

    fn tell(&mut self) {
        let at = self.world.network.now() - self.began;
        let awaited = self.awaited;
        if let Some(tell) = &mut self.tell {
            tell(Standing { at, awaited });
        }
    }

    /// Begins the messages that are due until then, and lets the time pass.
    fn send_until(&mut self, end: Time) {
        while let Some((at, host)) = self.due.pop(end) {
            self.run_and_sample(at);
            self.send_message(at, HostId(host));
        }
        self.run_and_sample(end);
    }

    /// When each host begins its first message.
    fn plan(&mut self) {
        match self.scenario.pattern {
            Pattern::Uniform { load } => {
                let rate = self.scenario.topology.edge.rate as f64 / 8e9;
                self.interval = self.mean_wire_bytes() / (rate * load);
                for host in 0..self.scenario.topology.hosts() {
                    let wait = poisson::interval(&mut self.random, self.interval);
                    self.due.push(self.began + Duration::from_nanos(wait), host);
                }
            }
            Pattern::Incast { senders, .. } => {
                for host in 1..=senders.min(self.scenario.topology.hosts() - 1) {
                    self.due.push(self.began, host);
                }
            }
        }
    }

    fn send_message(&mut self, now: Time, from: HostId) {
        let to = match self.scenario.pattern {
            Pattern::Uniform { .. } => {
                let wait = poisson::interval(&mut self.random, self.interval);
                self.due.push(now + Duration::from_nanos(wait), from.0);
                *self.random.pick(&self.peers.sends_to[from.0 as usize])
            }
            Pattern::Incast { every, .. } => {
                self.due.push(now + every, from.0);
                HostId(0)
            }
        };
        let length = self.scenario.workload.size(self.random.any());
        let name = self.world.change(from, |host, now| host.send(now, to, length));
        match name {
            Some(name) => {
                self.awaited += u64::from(self.is_counted(now));
                if let Pattern::Incast { .. } = self.scenario.pattern {
                    let rate = self.scenario.topology.edge.rate;
                    round::join(&mut self.results.rounds, now - self.began, length, rate);
                }
                self.sent.insert((from, to, name), Sent { at: now, length });
            }
            None if self.is_counted(now) => {
                self.refused.push((from, to, Sent { at: now, length }));
            }
            None => {}
        }
    }

    /// Lets time pass, and looks at queues and goodput now and then.
    fn run_and_sample(&mut self, end: Time) {
        while self.sample_due <= end {
            self.run_until(self.sample_due);
            let (before, queue_longest) = (self.carried, self.world.network.take_queue_peak());
            self.carried = self.carried();
            self.results.queue_max = self.results.queue_max.max(queue_longest);
            self.results.samples.push(Sample {
                at: self.sample_due - self.began,
                queue_longest,
                carried: self.carried - before,
                queued: self.world.network.switch_bytes(),
                arrived: std::mem::take(&mut self.arrived_lately),
            });
            self.sample_due = self.sample_due + self.sample_interval();
            self.tell();
        }
        self.run_until(end);
    }

    fn sample_interval(&self) -> Duration {
        let interval = self.scenario.duration / Results::SAMPLES_MAX;
        interval.max(SAMPLE_INTERVAL_MIN)
    }

    fn run_until(&mut self, end: Time) {
        let mut arrivals: Vec<Arrival> = Vec::new();
        while let Some(host) = self.world.step(end) {
            self.world.peek(host, |host| host.take_arrivals(&mut arrivals));
            for arrival in arrivals.drain(..) {
                self.arrived(host, arrival);
            }
        }
    }

    fn arrived(&mut self, at: HostId, arrival: Arrival) {
        let Some(sent) = self.sent.remove(&(arrival.from, at, arrival.name)) else {
            return;
        };
        assert_eq!(sent.length, arrival.length, "a message arrived with another length");
        let now = self.world.network.now();
        let ends = self.began + self.scenario.duration;
        if sent.at <= ends {
            self.results.lasted = now - self.began;
        }
        if now <= ends {
            if now >= self.counted() {
                self.arrived_bytes += u64::from(sent.length);
            }
            self.arrived_lately += u64::from(sent.length);
        }
        let (began, took) = (sent.at - self.began, now - sent.at);
        round::leave(&mut self.results.rounds, began, took);
        if self.is_counted(sent.at) {
            self.awaited -= 1;
            let slowdown = self.slowdown(&sent, arrival.from, at, now);
            self.messages.push((sent.length, slowdown));
        }
    }

    /// How much longer than alone a message has taken until now.
    fn slowdown(&self, sent: &Sent, from: HostId, to: HostId, now: Time) -> f32 {
        let per_rack = self.scenario.topology.hosts_per_rack;
        let is_within = from.0 / per_rack == to.0 / per_rack;
        let alone = self.unloaded.time(sent.length, is_within);
        ((now - sent.at).as_nanos() as f64 / alone.as_nanos() as f64) as f32
    }

    /// Counted messages that have not arrived or were refused, with what their slowdown is at
    /// least.
    fn missing(&self) -> Vec<(u32, f32)> {
        let now = self.world.network.now();
        let left = self.sent.iter().map(|((from, to, _), sent)| (*from, *to, sent));
        let refused = self.refused.iter().map(|(from, to, sent)| (*from, *to, sent));
        let missing = left.chain(refused).filter(|(.., sent)| self.is_counted(sent.at));
        missing.map(|(from, to, sent)| (sent.length, self.slowdown(sent, from, to, now))).collect()
    }

    fn finish(mut self) -> Results {
        let (messages, missing) = (std::mem::take(&mut self.messages), self.missing());
        self.results.refused = self.refused.len() as u64;
        self.results.unfinished = self.awaited;
        self.results.set_messages(messages, missing);
        self.results.counts = self.world.network.counts();
        self.results.simulated = self.world.network.now() - Time::default();
        let last_peak = self.world.network.take_queue_peak();
        self.results.queue_max = self.results.queue_max.max(last_peak);
        let interfered = self.interfered();
        let since = |what: usize| interfered[what] - self.before[what];
        self.results.dropped = since(0);
        self.results.trimmed = since(1);
        self.results.marked = since(2);
        for statistics in self.world.hosts().iter().filter_map(Messenger::statistics) {
            self.results.asked_by_timer += statistics.resends_asked;
            self.results.asked_by_trimmed += statistics.trimmed_asked;
        }
        self.results
    }

    /// Messages count that begin from then on.
    fn counted(&self) -> Time {
        self.began + self.scenario.warm_up
    }

    /// Whether a message counts that begins at this time.
    fn is_counted(&self, at: Time) -> bool {
        self.counted() <= at && at <= self.began + self.scenario.duration
    }

    /// Packets that switches have dropped, trimmed and marked.
    fn interfered(&self) -> [u64; 3] {
        let ports = self.world.network.port_statistics();
        ports.fold([0; 3], |[dropped, trimmed, marked], port| {
            [dropped + port.dropped, trimmed + port.trimmed, marked + port.marked]
        })
    }

    /// Bytes that links have carried to hosts.
    fn carried(&self) -> u64 {
        let receiver = match self.scenario.pattern {
            Pattern::Uniform { .. } => None,
            Pattern::Incast { .. } => Some(HostId(0)),
        };
        self.world.network.bytes_to(receiver)
    }

    /// Bytes that the hosts' links have carried.
    fn used(&self) -> u64 {
        self.world.network.host_bytes()
    }

    fn hosts(&self) -> f64 {
        f64::from(self.scenario.topology.hosts())
    }

    /// Bytes on the wire for a message of the workload.
    fn mean_wire_bytes(&self) -> f64 {
        let wire = WireBytes::new(&self.scenario.topology);
        let workload = &self.scenario.workload;
        workload.mean_of(|length| wire.of(length) as f64)
    }
}

/// Between the beginnings of two hosts' sessions.
const STAGGER: Duration = Duration::from_micros(200);
/// Sessions begin, and the size of datagrams is found.
const SETUP: Duration = Duration::from_secs(1);
/// A full frame at 10 Gb/s takes 1.2 us: shorter intervals would show single packets.
const SAMPLE_INTERVAL_MIN: Duration = Duration::from_micros(2);
/// After the duration, between looks whether all that is counted has arrived.
const LOOK_EVERY: Duration = Duration::from_micros(100);
/// No more samples.
const NEVER: Time = Time::from_nanos(u64::MAX);
/// Messages that take longer count as unfinished.
const UNFINISHED_AFTER: Duration = Duration::from_millis(500);
