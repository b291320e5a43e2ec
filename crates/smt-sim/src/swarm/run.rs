// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Plays a case.

mod endings;
mod host_faults;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use smt_proto::Time;
use smt_record::KeyLog;

use super::case::{Action, Case, SMALL_MEMORY_MAX};
use super::coverage::Coverage;
use super::events::Events;
use super::host_maker::HostMaker;
use super::player::Player;
use super::trace::{Trace, TraceTap};
use crate::net::adversary::{Adversary, Spoofed};
use crate::net::fault::{FaultKind, FaultyLinks, Strikes};
use crate::net::network::{Network, Tap};
use crate::net::packet::HostId;
use crate::net::smt_host::SmtHost;
use crate::net::topology::Topology;
use crate::net::world::World;
use crate::random::Random;
use crate::swarm::check::bounds::MemoryBound;
use crate::swarm::check::repetition::{Repetition, RepetitionTap};
use crate::swarm::check::sealed_packets::{SealedPackets, SealedPacketsTap};
use crate::swarm::check::{
    Checker, Content, Failure, InParts, Ledger, PART_LONGEST, SealBook, Sent, TINY,
};

/// The outcome of a case.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The case.
    pub seed: u64,
    /// XXH3 over every packet that a host has sent, with its time: the same for the same seed
    /// everywhere.
    pub trace: u128,
    /// The failures that the checkers found; empty if all is well.
    pub failures: Vec<Failure>,
    /// The coverage that the case has reached.
    pub coverage: Coverage,
    /// Messages delivered, and those of several records among them: at least 200 and 20 if all is
    /// well.
    pub messages: (u64, u64),
    /// Messages that were replied to, or delivered.
    pub succeeded: u64,
    /// Calls that were begun in parts, and the parts of all of them that were taken.
    pub parts: (u64, u64),
    /// Packets that hosts have sent.
    pub packets: u64,
}

/// Plays a case to its end, or to the first failure.
pub fn run(case: &Case) -> Verdict {
    run_observed(case, Observers::default())
}

/// The same with somebody who looks on, and changes nothing: the trace stays the same.
pub fn run_observed(case: &Case, observers: Observers) -> Verdict {
    let mut run = Run::new(case, observers);
    run.play();
    run.verdict()
}

/// The observers of a run.
#[derive(Default)]
pub struct Observers {
    /// Sees the packets of all hosts.
    pub tap: Option<Box<dyn Tap>>,
    /// Gets all hosts' keys.
    pub key_log: Option<Arc<dyn KeyLog>>,
}

struct Run<'a> {
    case: &'a Case,
    world: World<SmtHost<Player>>,
    maker: HostMaker<'a>,
    ledger: Ledger,
    strikes: Rc<RefCell<Strikes>>,
    /// The bytes that an attacker has sent in the bystander's name.
    spoofed: Rc<RefCell<Spoofed>>,
    trace: Rc<RefCell<Trace>>,
    repetition: Rc<RefCell<Repetition>>,
    sealed_packets: Rc<RefCell<SealedPackets>>,
    random: Random,
    failures: Vec<Failure>,
    steps: u64,
    /// For each host, how many faults keep it away now.
    absences: Vec<u32>,
    /// For each host, the longest message that comes to it, as long as padding and records make it.
    longest: Vec<usize>,
}

impl<'a> Run<'a> {
    fn new(case: &'a Case, observers: Observers) -> Self {
        let mut random = Random::new(case.seed ^ RUN);
        let strikes = Rc::new(RefCell::new(Strikes::default()));
        let trace = Rc::new(RefCell::new(Trace::new()));
        let bystander = HostId(case.hosts());
        let cables = case.hosts() + u32::from(case.has_adversary);
        let mut topology = Topology::rack(cables, case.link);
        topology.switch.trim_above = case.trims_above;
        let mut network = Network::new(&topology, &mut random);
        let links = FaultyLinks::new(case.link_faults.clone(), random.fork(), Rc::clone(&strikes));
        let spoofed = Rc::default();
        if case.has_adversary {
            let (strikes, spoofed) = (Rc::clone(&strikes), Rc::clone(&spoofed));
            let adversary = Adversary::new(links, random.fork(), bystander, strikes, spoofed);
            let adversary = match case.seals_packets() {
                true => adversary.unsealing(UNSEALING),
                false => adversary,
            };
            network.set_rule(Box::new(adversary.until(case.heals + ATTACKED)));
        } else {
            network.set_rule(Box::new(links));
        }
        network.add_tap(Box::new(TraceTap(Rc::clone(&trace))));
        let repetition = Rc::new(RefCell::new(Repetition::new(case.small_memories())));
        network.add_tap(Box::new(RepetitionTap(Rc::clone(&repetition))));
        let lasting = SealedPackets::new(case.hosts_of_lasting_spis());
        let sealed_packets = Rc::new(RefCell::new(lasting));
        network.add_tap(Box::new(SealedPacketsTap(Rc::clone(&sealed_packets))));
        observers.tap.into_iter().for_each(|tap| network.add_tap(tap));
        let mut run = Self {
            case,
            world: World::new(network, Vec::new()),
            maker: HostMaker::new(case, observers.key_log),
            ledger: Ledger::new(case.may_end.clone(), case.forgetful()),
            strikes,
            spoofed,
            trace,
            repetition,
            sealed_packets,
            random,
            failures: Vec::new(),
            steps: 0,
            absences: vec![0; case.hosts() as usize],
            longest: Vec::new(),
        };
        run.ledger.set_accept_late(case.accept_late());
        run.ledger.set_odd_clocks(case.odd_clocks().collect());
        for host in 0..case.hosts() {
            let longest = case.longest_to(HostId(host)) as usize;
            run.longest.push(longest + longest / 8 + PADDING_MAX);
            let host = run.maker.host(HostId(host), &mut run.random);
            run.world.add(host);
        }
        run
    }

    fn play(&mut self) {
        for fault in self.case.host_faults.clone() {
            self.run_until(fault.at);
            self.strike(fault);
        }
        self.run_until(self.case.heals);
        self.heal();
        let patience = self.case.heals + SETTLE;
        while self.world.network.now() < patience && !self.is_settled() {
            self.run_until(self.world.network.now() + Duration::from_millis(500));
        }
        self.ledger.check_all_ended();
        let unsent: u64 = self.hosts().map(|host| host.application.unsent).sum();
        if unsent > 0 {
            let text = format!("{unsent} messages could not be sent until {patience:?}");
            self.fail(Checker::Liveness, text);
        }
        if self.is_well() && !self.case.may_end.is_empty() {
            // A host may believe in a session that its peer has lost: the first call finds out.
            self.round(0, 1);
            self.ledger.check_all_ended();
        }
        if self.is_well() {
            self.last_round();
        }
        if self.is_well() {
            self.check_nothing_is_left();
        }
        self.check_sessions();
        self.check_amplification();
    }

    /// Lets time pass, and looks at what has happened after each step.
    fn run_until(&mut self, end: Time) {
        while self.is_well() {
            let Some(host) = self.world.step(end) else {
                return;
            };
            self.steps += 1;
            if self.steps > STEPS_MAX {
                let text = format!("{STEPS_MAX} things have happened and it goes on");
                self.fail(Checker::Liveness, text);
            }
            self.watch(host);
        }
    }

    fn watch(&mut self, id: HostId) {
        self.take_reports(id);
        let host = &self.world.hosts()[id.0 as usize];
        let config = &self.case.configs[id.0 as usize];
        let bound = MemoryBound {
            memory_max: config.memory_max,
            beginning: config.unscheduled as usize + RECORD_MAX,
            calls: host.application.calls(&host.endpoint),
            granted: (config.incoming_max as usize).max(GRANTED_AT_LEAST),
            longest: self.longest[id.0 as usize],
            sessions: host.endpoint.sessions_len(),
            part_readers: host.application.part_readers(),
            longest_part: PART_LONGEST as usize + PADDING_MAX + RECORD_MAX,
        };
        let early = host.endpoint.reordered_memory();
        let found = bound.check(id, host.endpoint.memory() - early, early);
        self.failures.extend(found);
    }

    fn take_reports(&mut self, id: HostId) {
        let ledger = &mut self.ledger;
        self.world.peek(id, |host| {
            let reports = host.application.reports.drain(..);
            reports.for_each(|report| ledger.take(report));
        });
    }

    /// Nothing is waited for any more, or in vain.
    fn is_settled(&self) -> bool {
        if !self.is_well() {
            return true;
        }
        let unsent: u64 = self.hosts().map(|host| host.application.unsent).sum();
        unsent == 0 && self.ledger.open_count() == 0
    }

    /// Every pair of hosts calls each other once more, and every call is answered; more often if
    /// little was delivered before.
    fn last_round(&mut self) {
        let before = self.ledger.succeeded_count();
        let (delivered, several) = self.ledger.delivered_counts(FIRST_RECORD_MAX);
        let missing = DELIVERED_LEAST.saturating_sub(delivered);
        // About half of what is called besides has several records.
        let missing = missing.max(3 * SEVERAL_LEAST.saturating_sub(several));
        let hosts = u64::from(self.case.hosts());
        let sent = self.round(1_000, missing.div_ceil(hosts * (hosts - 1)).max(1));
        self.ledger.check_all_ended();
        let answered = self.ledger.succeeded_count() - before;
        if answered < sent && self.is_well() {
            let text = format!("{answered} of {sent} calls were answered after all had healed");
            self.fail(Checker::Liveness, text);
        }
        let (delivered, several) = self.ledger.delivered_counts(FIRST_RECORD_MAX);
        if (delivered < DELIVERED_LEAST || several < SEVERAL_LEAST) && self.is_well() {
            let text =
                format!("only {delivered} messages were delivered, {several} of several records");
            self.fail(Checker::Liveness, text);
        }
    }

    /// Each host calls each other one, so often. Returns how many calls were made; their numbers
    /// end with `first` and on.
    fn round(&mut self, first: u64, times: u64) -> u64 {
        let hosts = self.case.hosts();
        let mut sent = 0;
        for from in 0..hosts {
            let others = (0..hosts).filter(|to| *to != from);
            for (to, time) in others.flat_map(|to| (0..times).map(move |time| (to, time))) {
                // Some need grants. Under an attacker's hands, who may still be there, those take
                // longer.
                let longest = match self.case.has_adversary {
                    _ if time > 0 => 3_000,
                    true => 20_000,
                    false => *self.random.pick(&[20_000, 20_000, 250_000]),
                };
                let (from, to) = (HostId(from), HostId(to));
                let content = Content {
                    number: u64::MAX - first - sent,
                    length: (self.random.between(12, longest) as u32).min(self.case.limit_of(to)),
                    reply_length: (self.random.between(0, longest) as u32)
                        .min(self.case.limit_of(from)),
                };
                sent += 1;
                let is_in_parts = content.length >= TINY && self.random.chance(250_000);
                let parts = match is_in_parts {
                    true => InParts::draw(&mut self.random),
                    false => InParts::default(),
                };
                let action = Action::Send {
                    sent: Sent {
                        content,
                        from,
                        to,
                        is_one_way: false,
                        may_be_given_up: false,
                        parts,
                    },
                    deadline: None,
                    cancel_after: None,
                };
                self.world.change(from, |host, now| {
                    host.application.is_last_round = true;
                    host.application.plan(host.clock.at(now), action);
                });
            }
        }
        let mut end = self.world.network.now() + LAST_ROUND;
        if self.case.has_adversary {
            end = end.max(self.case.heals + ATTACKED + LAST_ROUND);
        }
        while self.world.network.now() < end && !self.is_settled() {
            self.run_until(self.world.network.now() + Duration::from_millis(100));
        }
        let unsent: u64 = self.hosts().map(|host| host.application.unsent).sum();
        if unsent > 0 && self.is_well() {
            let text = format!("{unsent} calls could not be made until {end:?}");
            self.fail(Checker::Liveness, text);
        }
        sent
    }

    fn hosts(&self) -> impl Iterator<Item = &SmtHost<Player>> {
        self.world.hosts().iter()
    }

    fn fail(&mut self, checker: Checker, text: String) {
        self.failures.push(Failure::new(checker, text));
    }

    fn is_well(&self) -> bool {
        self.failures.is_empty()
            && self.ledger.failures().is_empty()
            && self.seals().is_well()
            && self.repetition.borrow().failure().is_none()
            && self.sealed_packets.borrow().failure().is_none()
    }

    fn seals(&self) -> MutexGuard<'_, SealBook> {
        let seals = self.maker.seals.lock();
        seals.unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes of the faults that only their hosts know whether they struck.
    fn note_sockets_and_memory(&mut self) {
        let configs = &self.case.configs;
        let mut strikes = self.strikes.borrow_mut();
        for (host, config) in self.world.hosts().iter().zip(configs) {
            let is_small = config.memory_max <= SMALL_MEMORY_MAX;
            let struck = [
                (FaultKind::SendRefused, host.socket.has_refused()),
                (FaultKind::SendShort, host.socket.has_cut()),
                (
                    FaultKind::MemoryLimit,
                    is_small && host.endpoint.statistics().memory_refusals > 0,
                ),
            ];
            let kinds = struck.into_iter().filter(|(_, has_struck)| *has_struck);
            kinds.for_each(|(kind, _)| strikes.note(kind));
        }
    }

    fn verdict(mut self) -> Verdict {
        self.failures.extend_from_slice(self.ledger.failures());
        self.failures.extend(self.repetition.borrow().failure().cloned());
        self.failures.extend(self.sealed_packets.borrow().failure().cloned());
        let of_seals = self.seals().failures().to_vec();
        self.failures.extend(of_seals);
        let events = Events::of(self.world.hosts());
        let paddings: Vec<_> = self.case.configs.iter().map(|config| config.padding).collect();
        self.note_sockets_and_memory();
        let trace = self.trace.borrow();
        Verdict {
            seed: self.case.seed,
            trace: trace.hash(),
            coverage: Coverage::failed(
                &trace.packet_types,
                &self.strikes.borrow(),
                &paddings,
                &events,
            ),
            messages: self.ledger.delivered_counts(FIRST_RECORD_MAX),
            succeeded: self.ledger.succeeded_count(),
            parts: self.ledger.part_counts(),
            packets: trace.packets,
            failures: self.failures.clone(),
        }
    }
}

/// Every case delivers so many messages, and so many of several records.
const DELIVERED_LEAST: u64 = 200;
const SEVERAL_LEAST: u64 = 20;
/// Inner bytes of the longest first record (SPEC §5.3): a message of more has several.
const FIRST_RECORD_MAX: u32 = 1_142;
/// How often an attacker makes a packet without a seal of one that has one, in millionths.
const UNSEALING: u32 = 50_000;
/// Keeps a run's generator apart from its case's.
const RUN: u64 = 0x5EED;
/// After healing, everything has ended within this time: silence is noticed after 2 s, a connect
/// may take 5.
const SETTLE: Duration = Duration::from_secs(120);
/// After healing, an attacker stays for so long. Some withhold or replace half of the packets, so
/// that a record of 15 opens only after many trials: what has not ended under their hands has to
/// end when they are gone.
const ATTACKED: Duration = Duration::from_secs(60);
/// The last calls are answered within this time, or so long after an attacker is gone.
const LAST_ROUND: Duration = Duration::from_secs(20);
/// A case has some ten thousand packets, and an attacker may make a hundred of each where a host
/// with little memory takes long: more than this, and something does not come to rest.
const STEPS_MAX: u64 = 5_000_000;
/// The most that padding adds to a message, in bytes, by blocks; Padmé adds an eighth, and records
/// less.
const PADDING_MAX: usize = 4_096;
/// The bytes that may be granted whatever the budget: two records to each of eight messages (SPEC
/// §9.2).
const GRANTED_AT_LEAST: usize = 8 * 32_812;
/// A record and its overhead.
const RECORD_MAX: usize = 16_406;
