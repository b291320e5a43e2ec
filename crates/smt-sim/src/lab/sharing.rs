// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SMT beside TCP on shared links and queues: who gets what, by scheduler and priority.
//!
//! Each sender keeps long messages under way by either transport, without a pause, and begins short
//! ones at random times. They share the way to one receiver, or the links between two racks. TCP is
//! the byte stream of `baseline`, with DCTCP's control and several connections, so that a short
//! message need not wait behind a long one of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use smt_proto::{PullOrder, Time};

use super::cannot_run::CannotRun;
use super::message_watch::MessageWatch;
use super::messenger::Arrival;
use super::poisson;
use super::scenario::Transport;
use super::shared_host::SharedHost;
use super::smt_messenger::SmtMessenger;
use super::stream_messenger::StreamMessenger;
use crate::baseline::{Pooling, StreamOptions};
use crate::net::event_queue::EventQueue;
use crate::net::network::Network;
use crate::net::packet::{HostId, Protocol};
use crate::net::port_queues::Scheduler;
use crate::net::switch::{Spreading, SwitchPolicy};
use crate::net::topology::Topology;
use crate::net::world::World;
use crate::random::Random;

/// A run of both transports on shared links.
#[derive(Clone, Copy, Debug)]
pub struct Sharing {
    /// The links that are shared.
    pub bottleneck: Bottleneck,
    /// Which packet leaves a switch first.
    pub scheduler: Scheduler,
    /// The priority of TCP's packets. SMT has its own: 0 to 3 for what is granted, 4 to 6 for what
    /// is not, 7 for control.
    pub tcp_priority: u8,
    /// The transports that send.
    pub senders: Senders,
    /// How the racks' switches choose among paths.
    pub spreading: Spreading,
    /// Whether receivers pull, and switches queue eight packets a port and trim what comes beyond
    /// (SPEC §9.10).
    pub trims: bool,
    /// Messages begin and are counted during this time.
    pub duration: Duration,
    /// The seed of all random numbers.
    pub seed: u64,
}

/// The links that transports share.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Bottleneck {
    /// All send to one host of their rack.
    Receiver,
    /// Each sends to a host of its own in another rack, by so many links of a host's rate.
    Paths(u32),
}

/// The transports that send.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Senders {
    /// Both.
    Both,
    /// One of them, for comparison.
    Alone(Protocol),
}

/// The outcome for both.
#[derive(Clone, Debug, Default)]
pub struct Shares {
    /// SMT's.
    pub smt: Share,
    /// TCP's.
    pub tcp: Share,
    /// Packets that switches have dropped.
    pub dropped: u64,
    /// Packets that switches have trimmed.
    pub trimmed: u64,
    /// Packets that switches have marked.
    pub marked: u64,
    /// Questions of SMT for missing bytes: because a trimmed packet told of them, and by timers.
    pub asked: [u64; 2],
    /// The longest queue of a switch, in bytes.
    pub queue_max: u64,
    /// Messages of SMT that began on each path.
    pub begun_on_paths: Vec<u64>,
    /// Messages of SMT whose packets took more than one path.
    pub changed_paths: u64,
    /// Messages of SMT between racks of which switches have counted other than their hosts have
    /// sent; as many as lost packets there, if any were dropped.
    pub miscounted: u64,
}

/// The share of a transport.
#[derive(Clone, Debug, Default)]
pub struct Share {
    /// Bits a second of messages that became whole.
    pub goodput: f64,
    /// Times of short messages, ascending.
    pub short: Vec<Duration>,
    /// Short messages that were not whole at the end.
    pub short_unfinished: usize,
}

impl Share {
    /// A percentile of the times of short messages.
    #[must_use]
    pub fn percentile(&self, percent: usize) -> Option<Duration> {
        let last = self.short.len().checked_sub(1)?;
        self.short.get(last * percent / 100).copied()
    }
}

impl Default for Sharing {
    /// The way to a receiver, strict priority, TCP at 0, 20 ms.
    fn default() -> Self {
        Self {
            bottleneck: Bottleneck::Receiver,
            scheduler: Scheduler::Priority,
            tcp_priority: 0,
            senders: Senders::Both,
            spreading: Spreading::ByEntropy,
            trims: false,
            duration: Duration::from_millis(20),
            seed: 1,
        }
    }
}

impl Sharing {
    /// Lets it run.
    ///
    /// # Errors
    /// Sessions did not begin.
    pub fn run(&self) -> Result<Shares, CannotRun> {
        let mut run = Run::new(self);
        run.set_up()?;
        run.play();
        Ok(run.finish())
    }

    fn topology(&self) -> Topology {
        let papers = Topology::datacenter(RATE, RATE);
        let (racks, hosts_per_rack, spines) = match self.bottleneck {
            Bottleneck::Receiver => (1, SENDERS + 1, 0),
            Bottleneck::Paths(paths) => (2, SENDERS, paths),
        };
        let mut topology = Topology { racks, hosts_per_rack, spines, ..papers };
        topology.switch = SwitchPolicy {
            mark_above: Transport::Stream(Pooling::OnePerPair).suits(&topology).mark_above,
            trim_above: match self.trims {
                true => Transport::Ndp(PullOrder::RoundRobin).suits(&topology).trim_above,
                false => None,
            },
            spreading: self.spreading,
            scheduler: self.scheduler,
            ..papers.switch
        };
        topology
    }

    fn receiver(&self, sender: u32) -> HostId {
        match self.bottleneck {
            Bottleneck::Receiver => HostId(SENDERS),
            Bottleneck::Paths(_) => HostId(SENDERS + sender),
        }
    }

    fn protocols(&self) -> Vec<Protocol> {
        match self.senders {
            Senders::Both => vec![Protocol::Smt, Protocol::Tcp],
            Senders::Alone(protocol) => vec![protocol],
        }
    }
}

/// A message under way.
struct Sent {
    at: Time,
    length: u32,
}

struct Run<'a> {
    sharing: &'a Sharing,
    world: World<SharedHost>,
    watch: MessageWatch,
    random: Random,
    /// When the next short message of a sender begins: its number, and twice that by protocol.
    due: EventQueue,
    /// By protocol (TCP is true), sender and name.
    sent: BTreeMap<(bool, HostId, u64), Sent>,
    began: Time,
    shares: Shares,
}

impl<'a> Run<'a> {
    fn new(sharing: &'a Sharing) -> Self {
        let topology = sharing.topology();
        let mut random = Random::new(sharing.seed);
        let zeros = Bytes::from(vec![0; LONG as usize]);
        let mut config = SmtMessenger::config(&topology);
        if sharing.trims {
            // A trimmed packet tells where it begins: packets are full.
            config.batch_max = topology.edge.payload_max;
        }
        let options = StreamOptions {
            pooling: Pooling::Pool(CONNECTIONS),
            round_trip: topology.round_trip(),
            priority: sharing.tcp_priority,
            ..StreamOptions::default()
        };
        let host = |id| {
            let mut smt = SmtMessenger::new(id, config.clone(), zeros.clone());
            if sharing.trims {
                smt = smt.pulling(topology.edge, PullOrder::RoundRobin);
            }
            SharedHost::new(smt, StreamMessenger::new(id, topology.hosts(), options))
        };
        let hosts = (0..topology.hosts()).map(|id| host(HostId(id))).collect();
        let mut network = Network::new(&topology, &mut random);
        let watch = MessageWatch::default();
        network.add_tap(watch.tap());
        Self {
            sharing,
            world: World::new(network, hosts),
            watch,
            random,
            due: EventQueue::default(),
            sent: BTreeMap::new(),
            began: Time::default(),
            shares: Shares::default(),
        }
    }

    fn set_up(&mut self) -> Result<(), CannotRun> {
        let pairs: Vec<_> =
            (0..SENDERS).map(|sender| [HostId(sender), self.sharing.receiver(sender)]).collect();
        let mut peers: BTreeMap<HostId, Vec<HostId>> = BTreeMap::new();
        for [sender, receiver] in pairs {
            peers.entry(sender).or_default().push(receiver);
            peers.entry(receiver).or_default().push(sender);
        }
        for (host, peers) in &peers {
            let prepare = |host: &mut SharedHost, now| host.prepare(now, peers);
            self.world.change(*host, prepare);
        }
        let end = self.world.network.now() + SETUP;
        self.world.run_until(end);
        let hosts = self.world.hosts().len();
        let ready = self.world.hosts().iter().filter(|host| host.is_ready());
        let ready = ready.count();
        self.began = self.world.network.now();
        match ready < hosts {
            true => Err(CannotRun::Sessions { ready, hosts }),
            false => Ok(()),
        }
    }

    fn play(&mut self) {
        for sender in 0..SENDERS {
            for protocol in self.sharing.protocols() {
                (0..LONG_AT_ONCE).for_each(|_| self.send(HostId(sender), protocol, LONG));
                self.plan_short(sender, protocol);
            }
        }
        let end = self.began + self.sharing.duration;
        while let Some((at, code)) = self.due.pop(end) {
            self.run_until(at);
            let protocol = match code % 2 {
                0 => Protocol::Smt,
                _ => Protocol::Tcp,
            };
            self.send(HostId(code / 2), protocol, SHORT);
            self.plan_short(code / 2, protocol);
        }
        self.run_until(end);
    }

    fn plan_short(&mut self, sender: u32, protocol: Protocol) {
        let wait = poisson::interval(&mut self.random, SHORT_INTERVAL.as_nanos() as f64);
        let at = self.world.network.now() + Duration::from_nanos(wait);
        let code = 2 * sender + u32::from(protocol == Protocol::Tcp);
        self.due.push(at, code);
    }

    fn send(&mut self, from: HostId, protocol: Protocol, length: u32) {
        let to = self.sharing.receiver(from.0);
        let send = |host: &mut SharedHost, now| host.send(now, protocol, to, length);
        if let Some(name) = self.world.change(from, send) {
            let at = self.world.network.now();
            let key = (protocol == Protocol::Tcp, from, name);
            self.sent.insert(key, Sent { at, length });
        }
    }

    fn run_until(&mut self, end: Time) {
        let mut arrivals = Vec::new();
        while let Some(host) = self.world.step(end) {
            self.world.peek(host, |host| host.take_arrivals(&mut arrivals));
            for (protocol, arrival) in arrivals.drain(..) {
                self.arrived(protocol, &arrival);
            }
        }
    }

    fn arrived(&mut self, protocol: Protocol, arrival: &Arrival) {
        let key = (protocol == Protocol::Tcp, arrival.from, arrival.name);
        let Some(sent) = self.sent.remove(&key) else {
            return;
        };
        assert_eq!(sent.length, arrival.length, "a message has another length");
        let now = self.world.network.now();
        let seconds = self.sharing.duration.as_secs_f64();
        let share = self.share(protocol);
        share.goodput += f64::from(sent.length) * 8.0 / seconds;
        match sent.length {
            LONG => self.send(arrival.from, protocol, LONG),
            _ => share.short.push(now - sent.at),
        }
    }

    fn share(&mut self, protocol: Protocol) -> &mut Share {
        match protocol {
            Protocol::Smt | Protocol::Psp => &mut self.shares.smt,
            Protocol::Tcp => &mut self.shares.tcp,
        }
    }

    fn finish(mut self) -> Shares {
        // A message that arrives later is unknown: it is not counted, and no other follows it.
        for ((is_tcp, ..), sent) in std::mem::take(&mut self.sent) {
            let protocol = if is_tcp { Protocol::Tcp } else { Protocol::Smt };
            self.share(protocol).short_unfinished += usize::from(sent.length == SHORT);
        }
        self.run_until(self.world.network.now() + REST);
        for port in self.world.network.port_statistics() {
            self.shares.dropped += port.dropped;
            self.shares.trimmed += port.trimmed;
            self.shares.marked += port.marked;
            self.shares.queue_max = self.shares.queue_max.max(port.queue_max);
        }
        for [trimmed, timers] in self.world.hosts().iter().map(SharedHost::asked) {
            self.shares.asked[0] += trimmed;
            self.shares.asked[1] += timers;
        }
        self.shares.smt.short.sort_unstable();
        self.shares.tcp.short.sort_unstable();
        self.tell_paths();
        self.shares
    }

    fn tell_paths(&mut self) {
        let shares = &mut self.shares;
        self.watch.look(|seen| {
            shares.begun_on_paths = seen.begun.values().copied().collect();
            let changed = seen.paths.values().filter(|paths| paths.len() > 1);
            shares.changed_paths = changed.count() as u64;
            let counted = |name| seen.counters.of(name).map(|counts| counts.packets);
            let wrong = seen.sent.iter();
            let wrong = wrong.filter(|(name, sent)| counted(name) != Some(**sent));
            shares.miscounted = match self.sharing.bottleneck {
                Bottleneck::Receiver => 0,
                Bottleneck::Paths(_) => wrong.count() as u64,
            };
        });
    }
}

const RATE: u64 = 10_000_000_000;
const SENDERS: u32 = 4;
/// Connections of TCP between two hosts: two for long messages, and two more.
const CONNECTIONS: u16 = 4;
/// Long messages of a sender and transport at once.
const LONG_AT_ONCE: u32 = 2;
const LONG: u32 = 250_000;
const SHORT: u32 = 1_000;
/// Between two short messages of a sender and transport.
const SHORT_INTERVAL: Duration = Duration::from_micros(100);
/// Sessions begin, and the size of datagrams is found.
const SETUP: Duration = Duration::from_secs(1);
/// When time is up, what is under way still arrives, and is not counted.
const REST: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    fn run(sharing: Sharing) -> Shares {
        sharing.run().unwrap()
    }

    fn short() -> Sharing {
        Sharing { duration: Duration::from_millis(5), ..Sharing::default() }
    }

    #[test]
    fn the_scheduler_and_the_priority_of_tcp_decide_who_starves() {
        let with = |scheduler, tcp_priority| {
            let shares = run(Sharing { scheduler, tcp_priority, ..short() });
            [shares.smt.goodput / 1e9, shares.tcp.goodput / 1e9]
        };
        let [smt, tcp] = with(Scheduler::Priority, 7);
        assert!(smt < tcp / 4.0, "TCP above all: {smt} {tcp}");
        let [smt, tcp] = with(Scheduler::Fair, 7);
        assert!(smt > 3.0 && tcp > 3.0, "halves: {smt} {tcp}");
        let [smt, tcp] = with(Scheduler::Priority, 0);
        assert!(tcp < smt / 4.0, "SMT above TCP: {smt} {tcp}");
    }

    #[test]
    fn a_message_keeps_its_path_while_messages_spread_and_counts_are_true() {
        let shares = run(Sharing { bottleneck: Bottleneck::Paths(4), ..short() });
        assert_eq!((shares.changed_paths, shares.miscounted), (0, 0));
        let [least, most] = [Iterator::min, Iterator::max]
            .map(|end: fn(_) -> _| end(shares.begun_on_paths.iter().copied()).unwrap());
        assert_eq!(shares.begun_on_paths.len(), 4);
        assert!(most < 2 * least, "{:?}", shares.begun_on_paths);
        let by_packet = run(Sharing {
            bottleneck: Bottleneck::Paths(4),
            spreading: Spreading::ByPacket,
            ..short()
        });
        assert!(by_packet.changed_paths > 20, "{}", by_packet.changed_paths);
    }

    #[test]
    fn trimmed_packets_are_asked_for_at_once_and_those_of_tcp_pass_whole() {
        let smt = run(Sharing { trims: true, senders: Senders::Alone(Protocol::Smt), ..short() });
        assert!(smt.trimmed > 10 && smt.dropped == 0, "{}", smt.trimmed);
        assert!(smt.asked[0] > 10, "{:?}", smt.asked);
        // A lost packet would be asked for after 5 ms (SPEC §9.3), which is the whole run.
        let slowest = smt.smt.percentile(100).unwrap();
        assert!(slowest < Duration::from_millis(2), "{slowest:?}");
        let tcp = run(Sharing { trims: true, senders: Senders::Alone(Protocol::Tcp), ..short() });
        let (queue, goodput) = (tcp.queue_max, tcp.tcp.goodput / 1e9);
        assert!(queue > 8 * 1_538 && goodput > 4.0, "{queue} {goodput}");
        assert_eq!((tcp.trimmed, tcp.dropped), (0, 0));
    }

    #[test]
    fn the_same_seed_has_the_same_outcome() {
        let [one, other] = [(); 2].map(|()| run(short()));
        assert_eq!(one.smt.short, other.smt.short);
        assert_eq!(one.tcp.short, other.tcp.short);
    }
}
