// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is looked at when a case is over: what is left, what goes on, which sessions ended, and what a bystander got.

use std::time::Duration;

use smt_wire::SessionIndex;

use super::Run;
use crate::check::Checker;
use crate::packet::HostId;
use crate::world::Host;

impl Run<'_> {
    /// Without messages nothing is held, and nothing happens.
    pub(super) fn check_nothing_is_left(&mut self) {
        self.run_until(self.world.network.now() + FORGETTING);
        let mut left = Vec::new();
        for (id, host) in self.hosts().enumerate() {
            let (held, live) = (
                host.endpoint.memory() + host.endpoint.replies_memory(),
                host.application.live(&host.endpoint),
            );
            if held + live > 0 {
                left.push(format!("host {id} holds {held} bytes, {live} messages"));
            }
        }
        for text in left {
            self.fail(Checker::Memory, text);
        }
        let end = self.world.network.now() + QUIET;
        let most = QUIET_STEPS * self.case.hosts() * self.case.hosts();
        let mut steps = 0;
        while steps <= most
            && let Some(host) = self.world.step(end)
        {
            steps += 1;
            // Nobody sends: whatever is delivered now was before.
            self.take_reports(host);
        }
        if steps > most {
            let text = format!("{steps} things happened in {QUIET:?} without a message");
            self.fail(Checker::Quiet, text);
        }
        let next = self.hosts().filter_map(Host::next_timeout).min();
        if let Some(next) = next.filter(|next| *next <= end + QUIET) {
            let text = format!("without a message, a timer is due at {next:?}");
            self.fail(Checker::Quiet, text);
        }
    }

    /// No session ends but between hosts of which a fault was grave for one.
    pub(super) fn check_sessions(&mut self) {
        let ends = self.hosts().flat_map(|host| {
            let own = host.id();
            let ends = host.application.ends.iter();
            ends.map(move |(peer, end)| (own, *peer, end))
        });
        let found: Vec<String> = ends
            .filter(|(own, peer, _)| !self.case.may_end.contains(*own, *peer))
            .map(|(own, peer, end)| format!("{own:?} with {peer:?}: {end}"))
            .collect();
        if let Some(first) = found.first() {
            let text = format!("{} sessions ended; the first: {first}", found.len());
            self.fail(Checker::Sessions, text);
        }
    }

    /// A bystander gets at most three times what was sent in its name (SPEC §6.2).
    pub(super) fn check_amplification(&mut self) {
        let bystander = HostId(self.case.hosts());
        let spoofed = self.spoofed.borrow();
        // Each attempt by itself: most are refused, and would make up for one that is answered too well.
        let too_much: Vec<String> = self
            .trace
            .borrow()
            .bytes_to(bystander)
            .filter_map(|(index, sent)| {
                // VERSION names no attempt, and answers any.
                let for_it = match index {
                    SessionIndex(0) => spoofed.values().sum(),
                    _ => spoofed.get(&index).copied().unwrap_or_default(),
                };
                let most = 3 * for_it;
                let text =
                    format!("{sent} bytes went to a bystander for {index}, more than {most}");
                (sent > most).then_some(text)
            })
            .collect();
        drop(spoofed);
        too_much
            .into_iter()
            .for_each(|text| self.fail(Checker::Amplification, text));
    }
}

/// A reply whose acknowledgement does not come is forgotten after about 12 s (SPEC §9.4).
const FORGETTING: Duration = Duration::from_secs(30);
/// How long nothing may happen.
const QUIET: Duration = Duration::from_secs(100);
/// For each pair of hosts: a probe round after a black hole (SPEC §9.8) is 6 sizes, 3 times, on two sides.
const QUIET_STEPS: u32 = 300;
