// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The case that a seed gives: hosts, configurations, messages, faults.

mod allowances;
mod faults;
mod hosts;
mod nics;
mod parts;
mod plan;
mod sealed_packets;

use std::collections::BTreeSet;
use std::time::Duration;

use smt_carrier::Capabilities;
use smt_proto::{Config, PullOrder, Time};
use smt_record::Suite;

use crate::net::fault::{FaultKind, LinkFault};
use crate::net::link::Link;
use crate::net::nic_port::NicChoices;
use crate::net::packet::{HostId, wire_len};
use crate::random::Random;
use crate::swarm::check::Sent;
use crate::swarm::host_pairs::HostPairs;
use faults::{GRAVE, GRAVE_ALONE};
use hosts::{config, link, suites};

pub(super) use faults::SMALL_MEMORY_MAX;

/// A case.
#[derive(Clone, Debug)]
pub struct Case {
    /// The seed from which the case was made.
    pub seed: u64,
    /// All cables.
    pub link: Link,
    /// One for each host.
    pub configs: Vec<Config>,
    /// Cipher suites of each host, preferred first.
    pub suites: Vec<Vec<Suite>>,
    /// The actions of the applications.
    pub plan: Vec<Planned>,
    /// Faults of the cables; all are over at `heals`.
    pub link_faults: Vec<LinkFault>,
    /// Faults of hosts, in the order of their times.
    pub host_faults: Vec<HostFault>,
    /// When all faults are over.
    pub heals: Time,
    /// Bytes that certificates have beyond need, so that a server's flight is more than three times
    /// a client's.
    pub certificates_longer_by: usize,
    /// Whether a host's limits are small enough to be reached.
    pub has_small_memory: bool,
    /// Whether hosts pull and the switch trims (NDP), and from how many bytes of a queue on.
    pub trims_above: Option<u64>,
    /// How each host pulls, if it does.
    pub pulls: Vec<Option<Pulls>>,
    /// The abilities of each host's carrier; `None`: those of a UDP socket.
    pub capabilities: Vec<Option<Capabilities>>,
    /// The NIC of each host, if the host has one that seals records.
    pub nics: Vec<Option<NicChoices>>,
    /// Whether there is an attacker on the path, and a bystander who has a cable and nothing to do
    /// with it.
    pub has_adversary: bool,
    /// Hosts between which a fault is so grave, or the plan so, that sessions may end.
    pub may_end: HostPairs,
}

/// How a host pulls.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pulls {
    /// Bits a second.
    pub rate: u64,
    /// Bytes of a message on their way.
    pub window: u32,
    /// Whose turn it is.
    pub order: PullOrder,
}

/// Something that an application is to do.
#[derive(Clone, Debug)]
pub struct Planned {
    /// When the application acts.
    pub at: Time,
    /// The host of the application.
    pub host: HostId,
    /// The action.
    pub action: Action,
}

/// An action of an application.
#[derive(Clone, Debug)]
pub enum Action {
    /// Send a message; give it up after a while, or when a deadline has passed.
    Send {
        /// The message.
        sent: Sent,
        /// The deadline that the endpoint is told.
        deadline: Option<Duration>,
        /// When the application changes its mind.
        cancel_after: Option<Duration>,
    },
    /// Close the session with a host.
    Close(HostId),
}

/// A fault of a host.
#[derive(Clone, Copy, Debug)]
pub struct HostFault {
    /// When the fault begins.
    pub at: Time,
    /// The host with the fault.
    pub host: HostId,
    /// The kind of the fault.
    pub kind: HostFaultKind,
}

/// A kind of fault of a host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HostFaultKind {
    /// It is gone. With `keeps`, its boot counter and reset key are still there when it is back.
    Crash {
        /// Whether it has durable state.
        keeps: bool,
    },
    /// A standby has its address from now on; it goes on to send.
    TakeOver,
    /// It takes no client and no request any more, until it is gone.
    ShutDown,
    /// It closes all of its sessions.
    CloseAll,
    /// It begins anew.
    Restart,
    /// It does nothing.
    Pause,
    /// It goes on.
    Resume,
    /// Its clock jumps ahead.
    Step(Duration),
    /// Its clock runs faster, in millionths.
    Drift(i32),
    /// Its socket takes nothing for this long.
    Refuse(Duration),
    /// Its socket takes parts of batches only.
    Short,
    /// Its NIC replaces the older one of its keys of PSP.
    RotateDeviceKey,
}

impl Case {
    /// Draws a case.
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let hosts = random.between(2, 4) as u32;
        let heals = Time::from_nanos(random.between(100_000_000, 800_000_000));
        let link = link(&mut random);
        let mut case = Self {
            seed,
            link,
            configs: (0..hosts).map(|_| config(&mut random)).collect(),
            suites: (0..hosts).map(|_| suites(&mut random)).collect(),
            plan: Vec::new(),
            link_faults: Vec::new(),
            host_faults: Vec::new(),
            heals,
            certificates_longer_by: 0,
            has_small_memory: false,
            trims_above: None,
            pulls: vec![None; hosts as usize],
            capabilities: vec![None; hosts as usize],
            nics: vec![None; hosts as usize],
            has_adversary: false,
            may_end: HostPairs::default(),
        };
        case.draw_plan(&mut random);
        let mut kinds = FaultKind::ALL.to_vec();
        kinds.retain(|kind| !DRAWN_APART.contains(kind));
        let faults = random.between(0, 5);
        let grave = if faults == 1 { GRAVE_ALONE } else { GRAVE };
        for _ in 0..faults {
            let kind = kinds.swap_remove(random.below(kinds.len() as u64) as usize);
            case.draw_fault(kind, grave, &mut random);
        }
        // By generators of their own, so that seeds without them are the cases that they were.
        let mut random = Random::new(seed ^ CERTIFICATES);
        if random.chance(250_000) {
            case.certificates_longer_by = random.between(1_000, 8_000) as usize;
        }
        let mut random = Random::new(seed ^ BUNDLES);
        for config in &mut case.configs {
            config.bundles = random.chance(850_000);
        }
        if random.chance(500_000) {
            case.draw_bursts(&mut random);
        }
        let mut random = Random::new(seed ^ NDP);
        if random.chance(250_000) {
            case.draw_pulls(&mut random);
        }
        let mut random = Random::new(seed ^ CIPHER_TABLES);
        for config in &mut case.configs {
            config.cipher_cache_sessions = *random.pick(&[1_024, 1_024, 1, 0]);
        }
        let mut random = Random::new(seed ^ MEMORY);
        case.draw_memory(&mut random);
        let mut random = Random::new(seed ^ PRESSURE);
        if case.has_small_memory {
            case.draw_pressure(&mut random);
        }
        case.draw_changes_of_hosts();
        case.draw_limit(&mut Random::new(seed ^ LIMITS));
        case.draw_parts(&mut Random::new(seed ^ PARTS));
        case.draw_one_sided(&mut Random::new(seed ^ ONE_SIDED));
        case.draw_carriers(&mut Random::new(seed ^ CARRIERS));
        case.draw_nics(&mut Random::new(seed ^ NICS));
        case.draw_sealed_packets(&mut Random::new(seed ^ SEALED_PACKETS));
        case.host_faults.sort_by_key(|fault| fault.at);
        case.allow_for_long_waits();
        case.allow_for_lost_confirms();
        case.allow_for_adversary();
        case
    }

    /// Draws a host that shuts down, and one that a standby follows, in a tenth of the cases each.
    fn draw_changes_of_hosts(&mut self) {
        for (kind, apart) in [(FaultKind::ShutDown, SHUT_DOWN), (FaultKind::TakeOver, TAKE_OVER)] {
            let mut random = Random::new(self.seed ^ apart);
            if random.chance(100_000) {
                self.draw_fault(kind, GRAVE, &mut random);
            }
        }
    }

    /// Hosts that have less memory for messages than production has.
    pub(super) fn small_memories(&self) -> impl Iterator<Item = HostId> + '_ {
        let hosts = (0..).map(HostId).zip(&self.configs);
        let small = hosts.filter(|(_, config)| config.memory_max < Config::default().memory_max);
        small.map(|(host, _)| host)
    }

    /// How many hosts there are.
    pub fn hosts(&self) -> u32 {
        self.configs.len() as u32
    }

    /// Hosts that do nothing for a while, and for how long.
    fn pauses(&self) -> Vec<(HostId, Duration)> {
        let of = |kind: HostFaultKind| {
            let faults = self.host_faults.iter();
            faults.filter(move |fault| fault.kind == kind)
        };
        // There is one at most.
        of(HostFaultKind::Pause)
            .zip(of(HostFaultKind::Resume))
            .map(|(goes, returns)| (goes.host, returns.at.since(goes.at)))
            .collect()
    }

    /// Hosts that may give up replies: those with little memory, if an attacker keeps back for
    /// seconds what they send (SPEC §10).
    pub fn forgetful(&self) -> BTreeSet<HostId> {
        let hosts = (0..self.hosts()).map(HostId);
        let is_small = |host: &HostId| self.configs[host.0 as usize].memory_max <= SMALL_MEMORY_MAX;
        hosts.filter(|host| self.has_adversary && is_small(host)).collect()
    }

    /// The delay with which the application of a host accepts messages; most are told of each at
    /// once.
    pub fn accept_delay(&self, host: HostId) -> Option<Duration> {
        // Apart from the draws of the case, so that most cases stay as they were.
        let mut random = Random::new(self.seed ^ ACCEPT ^ u64::from(host.0));
        let delays = random.below(8) == 0;
        delays.then(|| Duration::from_micros(random.below(2_000)))
    }

    /// Hosts that accept messages some time after they have come.
    pub fn accept_late(&self) -> BTreeSet<HostId> {
        let hosts = (0..self.hosts()).map(HostId);
        hosts.filter(|host| self.accept_delay(*host).is_some()).collect()
    }

    /// Hosts whose clock steps or drifts: a deadline passes there at another time.
    pub fn odd_clocks(&self) -> impl Iterator<Item = HostId> + '_ {
        let is_of_clock = |fault: &&HostFault| {
            matches!(fault.kind, HostFaultKind::Step(_) | HostFaultKind::Drift(_))
        };
        let faults = self.host_faults.iter().filter(is_of_clock);
        faults.map(|fault| fault.host)
    }

    /// The longest message that a host takes.
    pub fn limit_of(&self, host: HostId) -> u32 {
        self.configs[host.0 as usize].message_limit
    }

    /// The longest message or reply that is planned for a host and not too long for it.
    pub fn longest_to(&self, host: HostId) -> u32 {
        let lengths = self.plan.iter().filter_map(|planned| match &planned.action {
            Action::Send { sent, .. } if sent.to == host => Some(sent.content.length),
            Action::Send { sent, .. } if sent.from == host => Some(sent.content.reply_length),
            _ => None,
        });
        let limit = self.limit_of(host);
        lengths.filter(|length| *length <= limit).max().unwrap_or_default()
    }

    /// Hosts have less memory than production has: more than all that is planned for a host at most
    /// times, and little enough to be exceeded by what grows.
    fn draw_memory(&mut self, random: &mut Random) {
        for config in &mut self.configs {
            if config.memory_max > SMALL_MEMORY_MAX && random.chance(500_000) {
                config.memory_max = random.between(4, 16) as usize * 1_000_000;
            }
        }
    }

    /// Draws long losses in one direction, or of messages' ends.
    fn draw_one_sided(&mut self, random: &mut Random) {
        for kind in [FaultKind::HalfPartition, FaultKind::EndLoss] {
            if random.chance(80_000) {
                self.draw_fault(kind, GRAVE, random);
            }
        }
    }

    /// A switch that trims, and hosts of which most pull; the others ask when their timers say so.
    fn draw_pulls(&mut self, random: &mut Random) {
        let packets = random.between(1, 8);
        self.trims_above = Some(packets * wire_len(self.link.payload_max.min(8_972)));
        for pulls in &mut self.pulls {
            *pulls = random.chance(800_000).then(|| Pulls {
                rate: self.link.rate * random.between(50, 100) / 100,
                window: *random.pick(&[1, 1_436, 10_000, 60_000]),
                order: *random.pick(&[PullOrder::RoundRobin, PullOrder::ShortestFirst]),
            });
        }
    }

    fn moment(&self, random: &mut Random) -> Time {
        Time::from_nanos(random.below(self.heals.as_nanos()))
    }

    fn two_hosts(&self, random: &mut Random) -> (HostId, HostId) {
        let one = HostId(random.below(self.configs.len() as u64) as u32);
        (one, self.other_than(one, random))
    }

    fn other_than(&self, one: HostId, random: &mut Random) -> HostId {
        let hosts = self.configs.len() as u64;
        HostId(((u64::from(one.0) + random.between(1, hosts - 1)) % hosts) as u32)
    }
}

/// Keeps what carriers are able to apart from the rest.
const CARRIERS: u64 = 0xCA77;
/// Keeps which hosts have NICs apart from the rest.
const NICS: u64 = 0x21C5;
/// Keeps which NICs seal whole packets apart from the rest.
const SEALED_PACKETS: u64 = 0x959;
/// Keeps which calls come in parts apart from the rest.
const PARTS: u64 = 0x9A27;
/// Keeps what certificates draw apart from the rest.
const CERTIFICATES: u64 = 0xCE27;
/// Keeps what bundles draw apart from the rest.
const BUNDLES: u64 = 0xB0D1;
/// Keeps what is drawn of ciphers' tables apart from the rest.
const CIPHER_TABLES: u64 = 0x3A93;
/// Keeps how much memory hosts have apart from the rest.
const MEMORY: u64 = 0x3E30;
/// Keeps what fills a small memory apart from the rest.
const PRESSURE: u64 = 0x9E55;
/// Keeps what is drawn of hosts that shut down apart from the rest.
const SHUT_DOWN: u64 = 0x5D0F;
/// The same for standbys.
const TAKE_OVER: u64 = 0x7A0E;
/// Keeps what is lost in one direction, or of a message's end, apart from the rest.
const ONE_SIDED: u64 = 0x051D;
/// Faults that have generators of their own.
const DRAWN_APART: [FaultKind; 5] = [
    FaultKind::DeviceKey,
    FaultKind::EndLoss,
    FaultKind::HalfPartition,
    FaultKind::ShutDown,
    FaultKind::TakeOver,
];
/// Keeps what is drawn of a host's limit apart from the rest.
const LIMITS: u64 = 0x117;
/// Keeps what NDP draws apart from the rest.
const NDP: u64 = 0x1D9;
/// Keeps the delays of applications apart from what else is drawn.
const ACCEPT: u64 = 0xACC << 32;
