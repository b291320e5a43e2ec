// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Nodes with logs that are killed, and go on where the log ends.

use smt_attestation::{SigningKey, Start};
use smt_attestor::{OutlivingDevice, OwnDevice};
use smt_journal::{ModelDisk, SnapshotLog};

use crate::sim::history::Violation;
use crate::sim::host::Host;
use crate::sim::keys::secret;
use crate::sim::system::System;
use crate::sim::world::{Happening, World};

impl<S: System> World<S> {
    /// Plans kills of any one, and of all at once.
    pub(super) fn plan_kills(&mut self) {
        let all: Vec<u32> = (0..self.conditions.nodes).collect();
        for _ in 0..1 + self.kills.below(5) {
            let killed = match self.kills.chance(40) {
                true => all.clone(),
                false => vec![all[self.kills.below(all.len() as u64) as usize]],
            };
            let at = 100 + self.kills.below(self.conditions.course.honest);
            for node in &killed {
                let until = at + 1 + self.kills.below(400);
                self.schedule.at(until, Happening::Resume(*node));
            }
            self.schedule.at(at, Happening::Kill(killed));
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
        let Host::Logged(mut logged) = std::mem::replace(host, Host::Down) else {
            return;
        };
        if self.kills.chance(70) {
            logged.tick();
            logged.fail_next_sync();
            // The last block is written, and not durable.
            if logged.commit().is_err() {
                self.note("UnsyncedWrite");
            }
        }
        self.crash_disk(node, logged.into_disk());
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
        if !self.kills.chance(8) {
            return;
        }
        let mut disk = ModelDisk::default();
        disk.fails_after = self.kills.chance(30).then(|| self.kills.below(5) as u32);
        disk.loses_syncs = self.conditions.replaces_before_sync;
        let Ok(old) = logged.move_to(disk) else {
            // The old log goes on.
            return;
        };
        logged.heal_disk();
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
