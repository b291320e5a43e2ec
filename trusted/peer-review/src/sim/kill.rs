// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Nodes with journals that are killed, and go on where the journal ends.

use smt_attestation::{DeviceId, Epoch, Start};
use smt_attestor::{OutlivingDevice, OwnDevice};
use smt_journal::ModelDisk;
use smt_replica::sim::{Kill, begin_anew, disk_of_killed};
use zeroize::Zeroizing;

use crate::logged::Identity;
use crate::node::Node;
use crate::sim::group::{device, secret, signing_key};
use crate::sim::host::Host;
use crate::sim::judge::Violation;
use crate::sim::scenario::DEGREE;
use crate::sim::world::{Happening, World};
use crate::tree::Tree;

impl World<'_> {
    /// Plans kills of any one, and of all at once.
    pub(super) fn plan_kills(&mut self) {
        let honest = self.scenario.course.honest;
        for kill in Kill::draw(self.scenario.nodes, honest, &mut self.kills) {
            for (node, until) in &kill.nodes {
                self.schedule.at(*until, Happening::Resume(*node));
            }
            let nodes = kill.nodes.into_iter().map(|it| it.0).collect();
            self.schedule.at(kill.at, Happening::Kill(nodes));
        }
    }

    /// The device of a node with a journal. In every second run devices are processes of their own,
    /// and are not killed.
    fn device(&mut self, node: u32) -> OwnDevice {
        if self.scenario.seed.is_multiple_of(2) {
            return device(&self.group, node);
        }
        let start = Start { device: DeviceId(node), epoch: Epoch(1), nonce: [0; 16] };
        let devices = self.devices.entry(node);
        let device =
            devices.or_insert_with(|| OutlivingDevice::start(start, secret(), signing_key(node)));
        device.own_device()
    }

    /// A node with a journal: new, or as it was when its disk crashed.
    pub(super) fn logged(&mut self, node: u32, disk: ModelDisk) -> Option<Host> {
        let nonces = Zeroizing::new([node as u8; 32]);
        let identity = Identity { device: self.device(node), nonces };
        let tree = Tree::new(self.scenario.nodes, DEGREE);
        let mut delivered = Vec::new();
        let deliver = |bytes| delivered.push(bytes);
        let opened = Node::open(self.group.clone(), identity, &tree, disk, deliver);
        delivered.into_iter().for_each(|it| self.deliver(node, &it));
        match opened {
            Ok(logged) => Some(Host::Logged(Box::new(logged))),
            Err(_) => {
                self.violate(Violation::JournalRefused(node));
                None
            }
        }
    }

    /// Kills a node, if it has a journal and runs: often in the middle of a write.
    pub(super) fn kill(&mut self, node: u32) {
        let host = &mut self.hosts[node as usize];
        if !matches!(host, Host::Logged(_)) {
            return;
        }
        let Host::Logged(logged) = std::mem::replace(host, Host::Killed(ModelDisk::default()))
        else {
            return;
        };
        let (disk, is_unsynced) = disk_of_killed(*logged, &mut self.kills);
        if is_unsynced {
            self.note("UnsyncedWrite");
        }
        self.crash_disk(node, &disk);
    }

    fn crash_disk(&mut self, node: u32, disk: &ModelDisk) {
        let kills = &mut self.kills;
        let disk = disk.crashed(|| kills.chance(50));
        self.hosts[node as usize] = Host::Killed(disk);
        self.note("Kill");
        if self.hosts.iter().all(|it| matches!(it, Host::Killed(_) | Host::Liar(_))) {
            self.note("KillOfAll");
        }
    }

    /// Begins the journal of a node anew now and then, on a disk that fails at times. The node may
    /// be killed before or after the new journal has the place of the old one.
    pub(super) fn begin_log_anew(&mut self, node: u32) {
        let Host::Logged(logged) = &mut self.hosts[node as usize] else {
            return;
        };
        let Some(old) = begin_anew(logged, false, &mut self.kills) else {
            return;
        };
        self.note("NewLog");
        let now = self.schedule.now();
        if now < self.scenario.course.honest && self.kills.chance(30) {
            self.note("KillAtNewLog");
            match self.kills.chance(50) {
                true => self.crash_disk(node, &old),
                false => self.kill(node),
            }
            self.schedule.at(now + 1 + self.kills.below(400), Happening::Resume(node));
        }
    }

    /// A killed node goes on where its journal ends. The host of the source goes on with the part
    /// of the stream that the node has not taken.
    pub(super) fn resume(&mut self, node: u32) {
        let Host::Killed(disk) = &mut self.hosts[node as usize] else {
            return;
        };
        let disk = std::mem::take(disk);
        let Some(host) = self.logged(node, disk) else {
            return;
        };
        if let (0, Some(source)) = (node, host.correct()) {
            let count = source.application().count();
            self.stream.truncate(usize::try_from(count).unwrap_or(usize::MAX));
        }
        self.hosts[node as usize] = host;
    }
}
