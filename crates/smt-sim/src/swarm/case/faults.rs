// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The faults of a case: each kind of fault, drawn.

use std::time::Duration;

use smt_proto::Time;

use super::{Case, HostFault, HostFaultKind};
use crate::net::fault::{FaultKind, LinkFault};
use crate::net::packet::HostId;
use crate::random::Random;
use crate::swarm::coverage::PACKET_TYPES;

impl Case {
    /// Draws a fault; sessions may end by an absence of `grave` or more.
    pub(super) fn draw_fault(&mut self, kind: FaultKind, grave: Duration, random: &mut Random) {
        use FaultKind as K;
        let micros = |micros: u64| micros * 1_000;
        match kind {
            K::Loss | K::Corrupt | K::Truncate => self.link_fault(kind, 100_000, 0, random),
            K::BurstLoss => self.link_fault(kind, 5_000, 60, random),
            K::OneTypeLoss => {
                let packet_type = *random.pick(&PACKET_TYPES) as u64;
                self.link_fault(kind, 900_000, packet_type, random);
            }
            K::Duplicate | K::Replay | K::Forge => {
                self.link_fault(kind, 300_000, micros(2_000), random);
            }
            K::Reorder | K::Delay => self.link_fault(kind, 400_000, micros(5_000), random),
            K::Partition => self.partition(grave, random),
            K::HalfPartition => self.half_partition(random),
            K::EndLoss => self.end_loss(random),
            K::Shrink => {
                let extent = random.between(1_200, 1_471);
                self.link_fault(kind, 0, extent, random);
            }
            K::CrashKeeping | K::CrashLosing => {
                let keeps = kind == K::CrashKeeping;
                let ends = [HostFaultKind::Crash { keeps }, HostFaultKind::Restart];
                let (host, _) = self.absence(ends, grave, random);
                self.may_end.add_all_of(host, self.hosts());
            }
            K::Pause => {
                let ends = [HostFaultKind::Pause, HostFaultKind::Resume];
                let (host, time) = self.absence(ends, grave, random);
                if time >= grave {
                    self.may_end.add_all_of(host, self.hosts());
                }
            }
            K::ClockStep => self.clock_step(random),
            K::ClockDrift => {
                let drift = random.between(1, 1_000) as i32;
                let drift = if random.chance(500_000) { drift } else { -drift };
                self.host_fault(HostFaultKind::Drift(drift), random);
            }
            K::SendRefused => {
                let time = Duration::from_micros(random.between(10, 100_000));
                self.host_fault(HostFaultKind::Refuse(time), random);
            }
            K::SendShort => {
                self.host_fault(HostFaultKind::Short, random);
            }
            K::MemoryLimit => {
                let host = random.below(self.configs.len() as u64) as usize;
                let config = &mut self.configs[host];
                config.memory_max = random.between(20_000, SMALL_MEMORY_MAX as u64) as usize;
                config.window = 64;
                self.has_small_memory = true;
            }
            K::Adversary => self.has_adversary = true,
            K::DeviceKey => {
                self.host_fault(HostFaultKind::RotateDeviceKey, random);
            }
            K::ShutDown => self.shut_down(random),
            K::TakeOver => {
                let host = self.host_fault(HostFaultKind::TakeOver, random);
                self.may_end.add_all_of(host, self.hosts());
            }
        }
    }

    fn clock_step(&mut self, random: &mut Random) {
        let step = Duration::from_millis(random.between(1, 3_000));
        let host = self.host_fault(HostFaultKind::Step(step), random);
        if step >= GRAVE {
            self.may_end.add_all_of(host, self.hosts());
        }
    }

    pub(super) fn link_fault(
        &mut self,
        kind: FaultKind,
        chance: u64,
        extent: u64,
        random: &mut Random,
    ) {
        let ends = [self.moment(random), self.moment(random)];
        let pair = random.chance(300_000).then(|| self.two_hosts(random));
        self.link_faults.push(LinkFault {
            kind,
            from: ends[0].min(ends[1]),
            until: ends[0].max(ends[1]),
            pair,
            chance: random.between(1, chance.max(1)) as u32,
            extent,
        });
    }

    fn partition(&mut self, grave: Duration, random: &mut Random) {
        let from = self.absence_start(grave, random);
        let time = match random.chance(600_000) {
            true => nearly_silent(random),
            false => Duration::from_millis(random.between(1, 400)),
        };
        let until = from + time;
        self.heals = self.heals.max(until);
        let pair = random.chance(500_000).then(|| self.two_hosts(random));
        if time >= grave {
            self.may_end.add_either(pair, self.hosts());
        }
        self.link_faults.push(LinkFault {
            kind: FaultKind::Partition,
            from,
            until,
            pair,
            chance: 1_000_000,
            extent: 0,
        });
    }

    /// One host does not hear another, which hears it. Where that takes CONFIRMs for long, sessions
    /// may end.
    fn half_partition(&mut self, random: &mut Random) {
        let from = self.moment(random);
        let time = match random.chance(500_000) {
            true => Duration::from_millis(random.between(1, 5_000)),
            false => nearly_silent(random),
        };
        let until = from + time;
        self.heals = self.heals.max(until);
        let (receiver, sender) = self.two_hosts(random);
        self.link_faults.push(LinkFault {
            kind: FaultKind::HalfPartition,
            from,
            until,
            pair: Some((sender, receiver)),
            chance: 1_000_000,
            extent: 0,
        });
    }

    /// Messages begin and do not end for a while, but for the short ones. No host falls silent by
    /// that.
    fn end_loss(&mut self, random: &mut Random) {
        let from = self.moment(random);
        let until = from + Duration::from_millis(random.between(100, 5_000));
        self.heals = self.heals.max(until);
        let pair = random.chance(700_000).then(|| self.two_hosts(random));
        // Record 0 leaves in a packet at offset 0, and so does all that fits that packet.
        let extent = *random.pick(&[1, 1, 1_200, 20_000]);
        self.link_faults.push(LinkFault {
            kind: FaultKind::EndLoss,
            from,
            until,
            pair,
            chance: 1_000_000,
            extent,
        });
    }

    /// When an absence begins. One that is to be survived begins when sessions have been live for
    /// long: the four repetitions of a CONFIRM are over in 0.75 s, and then its attempt is given up
    /// (SPEC §6.5).
    fn absence_start(&self, grave: Duration, random: &mut Random) -> Time {
        let moment = self.moment(random);
        match grave == GRAVE_ALONE {
            true => Time::from_nanos((self.heals.as_nanos() + moment.as_nanos()) / 2),
            false => moment,
        }
    }

    /// A host is away for a while: which, and for how long.
    fn absence(
        &mut self,
        [goes, returns]: [HostFaultKind; 2],
        grave: Duration,
        random: &mut Random,
    ) -> (HostId, Duration) {
        let host = HostId(random.below(self.configs.len() as u64) as u32);
        let at = self.absence_start(grave, random);
        let time = match random.chance(500_000) {
            true => nearly_silent(random),
            false => Duration::from_millis(random.between(1, 3_000)),
        };
        let back = at + time;
        self.heals = self.heals.max(back);
        for (at, kind) in [(at, goes), (back, returns)] {
            self.host_faults.push(HostFault { at, host, kind });
        }
        (host, time)
    }

    /// A host ends in order, and begins anew at once.
    fn shut_down(&mut self, random: &mut Random) {
        use HostFaultKind as K;
        let host = HostId(random.below(self.configs.len() as u64) as u32);
        let at = self.moment(random);
        let half = Duration::from_micros(random.between(500, 100_000));
        let (closes, gone) = (at + half, at + half * 2);
        self.heals = self.heals.max(gone);
        self.may_end.add_all_of(host, self.hosts());
        let last = K::Crash { keeps: true };
        let steps = [(at, K::ShutDown), (closes, K::CloseAll), (gone, last), (gone, K::Restart)];
        let faults = steps.map(|(at, kind)| HostFault { at, host, kind });
        self.host_faults.extend(faults);
    }

    /// Something happens to a host: to which.
    fn host_fault(&mut self, kind: HostFaultKind, random: &mut Random) -> HostId {
        let host = HostId(random.below(self.configs.len() as u64) as u32);
        let at = self.moment(random);
        self.host_faults.push(HostFault { at, host, kind });
        host
    }
}

/// From a second on PINGs are sent (SPEC §9.9), mostly before other questions, which have backed
/// off, are asked again: then the answer is a PONG. After two it is too late.
fn nearly_silent(random: &mut Random) -> Duration {
    Duration::from_millis(match random.chance(700_000) {
        true => random.between(1_000, 1_200),
        false => random.between(1_200, 2_500),
    })
}

/// Absence of this length may end a session: the silence limit is 2 s (SPEC §9.9), questions take
/// time, and other faults take some of them.
pub(super) const GRAVE: Duration = Duration::from_millis(900);
/// The same if nothing else goes wrong: questions that have backed off to 500 ms, a PING, and its
/// answer still come in time.
pub(super) const GRAVE_ALONE: Duration = Duration::from_millis(1_300);
/// The most memory of a host that has little.
pub(in crate::swarm) const SMALL_MEMORY_MAX: usize = 200_000;
