// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replicas with logs that are killed, and go on where the log ends.

use smt_attestation::{DeviceId, Epoch, SigningKey, Start};
use smt_attestor::OutlivingDevice;
use smt_journal::{ModelDisk, SnapshotLog};
use smt_replica::AnyService;

use crate::replica::{Identity, Replica};
use crate::sim::group::{identity, reply_key, secret};
use crate::sim::report::Event;
use crate::sim::world::{Happening, Node, World};

impl World<'_> {
    /// Plans kills of any one, and of all at once.
    pub(super) fn plan_kills(&mut self) {
        let all: Vec<u32> = (0..self.scenario.replicas).collect();
        for _ in 0..1 + self.kills.below(5) {
            let killed = match self.kills.chance(40) {
                true => all.clone(),
                false => vec![all[self.kills.below(all.len() as u64) as usize]],
            };
            let at = 100 + self.kills.below(self.scenario.course.honest);
            for device in &killed {
                let until = at + 1 + self.kills.below(400);
                self.schedule.at(until, Happening::Resume(*device));
            }
            self.schedule.at(at, Happening::Kill(killed));
        }
    }

    /// A replica with a log: new, or as it was when its disk crashed.
    pub(super) fn durable(&mut self, device: u32, disk: ModelDisk) -> Node {
        let epoch = Epoch(self.epochs[device as usize]);
        let nonce = self.kills.nonce();
        let start = Start { device: DeviceId(device), epoch, nonce };
        let identity = self.identity_with_log(start);
        let service = AnyService::new(self.scenario.service);
        match Replica::open(self.group.clone(), identity, service, disk) {
            Ok(durable) => Node::Durable(Box::new(durable)),
            Err(_) => {
                self.history.log_refused(device);
                Node::Down
            }
        }
    }

    /// In every second run devices are processes of their own, and are not killed.
    fn identity_with_log(&mut self, start: Start) -> Identity {
        if self.scenario.seed.is_multiple_of(2) {
            return identity(start);
        }
        let key = (start.device.0, start.epoch.0);
        let device = self
            .devices
            .entry(key)
            .or_insert_with(|| OutlivingDevice::start(start, secret(), SigningKey::new(&[5; 32])));
        Identity { device: device.own_device(), reply_key: reply_key(start.device.0) }
    }

    /// Kills a replica, if it has a log and runs: often in the middle of a write.
    pub(super) fn kill(&mut self, device: u32) {
        let node = &mut self.nodes[device as usize];
        if !matches!(node, Node::Durable(_)) {
            return;
        }
        let Node::Durable(mut durable) = std::mem::replace(node, Node::Down) else {
            return;
        };
        if self.kills.chance(70) {
            durable.tick();
            durable.fail_next_sync();
            // The last block is written, and not durable.
            self.events.extend(durable.commit().is_err().then_some(Event::UnsyncedWrite));
        }
        self.crash_disk(device, durable.into_disk());
    }

    /// A replica is gone, and its disk has what a crash leaves.
    fn crash_disk(&mut self, device: u32, disk: ModelDisk) {
        let kills = &mut self.kills;
        let disk = disk.crashed(|| kills.chance(50));
        self.nodes[device as usize] = Node::Killed(disk);
        self.seen[device as usize] = 0;
        self.events.insert(Event::Kill);
        if self
            .nodes
            .iter()
            .all(|it| matches!(it, Node::Killed(_) | Node::Liar(_) | Node::Together))
        {
            self.events.insert(Event::KillOfAll);
        }
    }

    /// Begins the log of a replica anew now and then, on a disk that fails at times. The replica
    /// may be killed before or after the new log has the place of the old one.
    pub(super) fn begin_log_anew(&mut self, device: u32) {
        // A replica that is had from the new log does not execute again what came before.
        self.look(device as usize);
        let Node::Durable(durable) = &mut self.nodes[device as usize] else {
            return;
        };
        if !self.kills.chance(8) {
            return;
        }
        let mut disk = ModelDisk::default();
        disk.fails_after = self.kills.chance(30).then(|| self.kills.below(5) as u32);
        disk.loses_syncs = self.scenario.replaces_before_sync;
        let Ok(old) = durable.move_to(disk) else {
            // The old log goes on.
            return;
        };
        durable.heal_disk();
        self.events.insert(Event::NewLog);
        let now = self.schedule.now();
        if now < self.scenario.course.honest && self.kills.chance(30) {
            self.events.insert(Event::KillAtNewLog);
            match self.kills.chance(50) {
                true => self.crash_disk(device, old),
                false => self.kill(device),
            }
            self.schedule.at(now + 1 + self.kills.below(400), Happening::Resume(device));
        }
    }

    /// A killed replica goes on where its log ends.
    pub(super) fn resume(&mut self, device: u32) {
        let node = &mut self.nodes[device as usize];
        if let Node::Killed(disk) = node {
            let disk = std::mem::take(disk);
            self.nodes[device as usize] = self.durable(device, disk);
            self.look(device as usize);
        }
    }
}
