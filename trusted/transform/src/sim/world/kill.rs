// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Kills of nodes that have logs.

use crate::sim::world::{Compared, HONEST, Happening, Host, Violation, World};

impl World<'_> {
    /// Plans kills of any one, and of all at once.
    pub(super) fn plan_kills(&mut self) {
        let all: Vec<u32> = (0..self.scenario.nodes).collect();
        for _ in 0..1 + self.kills.below(5) {
            let killed = match self.kills.chance(40) {
                true => all.clone(),
                false => vec![all[self.kills.below(all.len() as u64) as usize]],
            };
            let at = 100 + self.kills.below(HONEST);
            for node in &killed {
                let until = at + 1 + self.kills.below(400);
                self.schedule.at(until, Happening::Resume(*node));
            }
            self.schedule.at(at, Happening::Kill(killed));
        }
    }

    /// Kills nodes that have logs, often in the middle of a write.
    pub(super) fn kill(&mut self, nodes: &[u32]) {
        let mut count = 0;
        for node in nodes {
            if let Host::Correct(it) = &mut self.hosts[*node as usize]
                && let Some(is_unsynced) = it.kill()
            {
                count += 1;
                self.events.insert("Kill".to_owned());
                self.events.extend(is_unsynced.then(|| "UnsyncedWrite".to_owned()));
                self.compared[*node as usize] = Compared::default();
            }
        }
        if count > 1 {
            self.events.insert("KillOfAll".to_owned());
        }
    }

    /// Nodes that were killed go on.
    pub(super) fn resume(&mut self, node: u32) {
        if let Host::Correct(it) = &mut self.hosts[node as usize] {
            if !it.resume() {
                self.violations.push(Violation::LogRefused(node));
            }
            self.look(node as usize);
        }
    }
}
