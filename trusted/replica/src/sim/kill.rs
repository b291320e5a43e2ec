// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Nodes with logs that are killed, and go on where the log ends.

use smt_attestation::{SigningKey, Start};
use smt_attestor::{OutlivingDevice, OwnDevice};
use smt_journal::{ModelDisk, SnapshotLog};
use smt_simulation::Random;

use crate::sim::history::Violation;
use crate::sim::host::Host;
use crate::sim::keys::secret;
use crate::sim::system::System;
use crate::sim::world::{Happening, World};
use crate::{Logged, Node};

/// A kill of one node, or of all at once.
#[derive(Clone, Debug)]
pub struct Kill {
    /// When it happens.
    pub at: u64,
    /// The nodes, each with the time at which it goes on.
    pub nodes: Vec<(u32, u64)>,
}

impl Kill {
    /// Draws one to five kills of a group of `nodes`, up to 100 after the time `honest`.
    pub fn draw(nodes: u32, honest: u64, kills: &mut Random) -> Vec<Self> {
        let count = 1 + kills.below(5);
        let draw = |_| {
            let killed = match kills.chance(40) {
                true => 0..nodes,
                false => {
                    let one = kills.below(nodes.into()) as u32;
                    one..one + 1
                }
            };
            let at = 100 + kills.below(honest);
            let nodes = killed.map(|it| (it, at + 1 + kills.below(400))).collect();
            Self { at, nodes }
        };
        (0..count).map(draw).collect()
    }
}

/// The disk of a node that is killed, often in the middle of a write, and whether a block was
/// written and is not durable.
pub fn disk_of_killed<N: Node>(
    mut logged: Logged<N, ModelDisk>,
    kills: &mut Random,
) -> (ModelDisk, bool) {
    let mut is_unsynced = false;
    if kills.chance(70) {
        logged.tick();
        logged.fail_next_sync();
        is_unsynced = logged.commit().is_err();
    }
    (logged.into_disk(), is_unsynced)
}

/// Begins the log of a node anew now and then, on a disk that fails at times. Returns the disk of
/// the log before; none if that log goes on.
pub fn begin_anew<N: Node>(
    logged: &mut Logged<N, ModelDisk>,
    loses_syncs: bool,
    kills: &mut Random,
) -> Option<ModelDisk> {
    if !kills.chance(8) {
        return None;
    }
    let fails_after = kills.chance(30).then(|| kills.below(5) as u32);
    let mut disk = ModelDisk::default();
    (disk.fails_after, disk.loses_syncs) = (fails_after, loses_syncs);
    let old = logged.move_to(disk).ok()?;
    logged.heal_disk();
    Some(old)
}

impl<S: System> World<S> {
    /// Plans kills of any one, and of all at once.
    pub(super) fn plan_kills(&mut self) {
        let conditions = &self.conditions;
        for kill in Kill::draw(conditions.nodes, conditions.course.honest, &mut self.kills) {
            for (node, until) in &kill.nodes {
                self.schedule.at(*until, Happening::Resume(*node));
            }
            let nodes = kill.nodes.into_iter().map(|it| it.0).collect();
            self.schedule.at(kill.at, Happening::Kill(nodes));
        }
    }

    /// The device of a node with a log. In every second run devices are processes of their own, and
    /// are not killed.
    pub fn device(&mut self, start: Start) -> OwnDevice {
        if self.conditions.seed.is_multiple_of(2) {
            return OwnDevice::Library { secret: secret(), start, signing_key: None };
        }
        let key = (start.device.0, start.epoch.0);
        let device = self
            .devices
            .entry(key)
            .or_insert_with(|| OutlivingDevice::start(start, secret(), SigningKey::new(&[5; 32])));
        device.own_device()
    }

    /// A node with a log: new, or as it was when its disk crashed.
    pub fn logged(&mut self, node: u32, disk: ModelDisk) -> Host<S> {
        match S::open(self, node, disk) {
            Ok(logged) => Host::Logged(Box::new(logged)),
            Err(_) => {
                self.history.violate(Violation::LogRefused(node));
                Host::Down
            }
        }
    }

    /// Kills a node, if it has a log and runs: often in the middle of a write.
    pub(super) fn kill(&mut self, node: u32) {
        let host = &mut self.hosts[node as usize];
        if !matches!(host, Host::Logged(_)) {
            return;
        }
        let Host::Logged(logged) = std::mem::replace(host, Host::Down) else {
            return;
        };
        let (disk, is_unsynced) = disk_of_killed(*logged, &mut self.kills);
        if is_unsynced {
            self.note("UnsyncedWrite");
        }
        self.crash_disk(node, disk);
    }

    /// A node is gone, and its disk has what a crash leaves.
    fn crash_disk(&mut self, node: u32, disk: ModelDisk) {
        let kills = &mut self.kills;
        let disk = disk.crashed(|| kills.chance(50));
        self.hosts[node as usize] = Host::Killed(disk);
        self.seen[node as usize] = 0;
        self.note("Kill");
        if self.hosts.iter().all(|it| matches!(it, Host::Killed(_)) || it.is_faulty()) {
            self.note("KillOfAll");
        }
    }

    /// Begins the log of a node anew now and then, on a disk that fails at times. The node may be
    /// killed before or after the new log has the place of the old one.
    pub(super) fn begin_log_anew(&mut self, node: u32) {
        // A node that is had from the new log does not execute again what came before.
        self.look(node as usize);
        let Host::Logged(logged) = &mut self.hosts[node as usize] else {
            return;
        };
        let loses_syncs = self.conditions.replaces_before_sync;
        let Some(old) = begin_anew(logged, loses_syncs, &mut self.kills) else {
            return;
        };
        self.note("NewLog");
        let now = self.schedule.now();
        if now < self.conditions.course.honest && self.kills.chance(30) {
            self.note("KillAtNewLog");
            match self.kills.chance(50) {
                true => self.crash_disk(node, old),
                false => self.kill(node),
            }
            self.schedule.at(now + 1 + self.kills.below(400), Happening::Resume(node));
        }
    }

    /// A killed node goes on where its log ends.
    pub(super) fn resume(&mut self, node: u32) {
        let host = &mut self.hosts[node as usize];
        if let Host::Killed(disk) = host {
            let disk = std::mem::take(disk);
            self.hosts[node as usize] = self.logged(node, disk);
            self.look(node as usize);
        }
    }
}
