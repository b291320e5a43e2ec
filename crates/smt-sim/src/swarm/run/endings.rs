// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The checks when a case is over: of what is left, of what goes on, of the sessions that ended,
//! and of what a bystander got.

use std::time::Duration;

use super::Run;
use crate::net::packet::HostId;
use crate::net::world::Host;
use crate::swarm::check::bounds::{self, QUIET};

impl Run<'_> {
    /// Without messages nothing is held, and nothing happens.
    pub(super) fn check_nothing_is_left(&mut self) {
        self.run_until(self.world.network.now() + FORGETTING);
        let left = self.hosts().filter_map(|host| {
            let held = host.endpoint.memory() + host.endpoint.replies_memory();
            bounds::left(host.id(), held, host.application.live(&host.endpoint))
        });
        let left: Vec<_> = left.collect();
        self.failures.extend(left);
        let calls = self.hosts().map(|host| (host.id(), host.application.part_calls()));
        let calls: Vec<_> = calls.filter_map(|(id, calls)| bounds::part_calls(id, calls)).collect();
        self.failures.extend(calls);
        let end = self.world.network.now() + QUIET;
        let hosts = self.case.hosts();
        let mut steps = 0;
        while steps <= bounds::quiet_steps(hosts)
            && let Some(host) = self.world.step(end)
        {
            steps += 1;
            // No host sends: a message that is delivered now was delivered before.
            self.take_reports(host);
        }
        let next = self.hosts().filter_map(Host::next_timeout).min();
        self.failures.extend(bounds::quiet(hosts, steps, end, next));
    }

    /// No session ends but between hosts of which a fault was grave for one.
    pub(super) fn check_sessions(&mut self) {
        let ends = self.hosts().flat_map(|host| {
            let own = host.id();
            let ends = host.application.ends.iter();
            ends.map(move |(peer, end)| (own, *peer, end))
        });
        let found = bounds::sessions(ends, &self.case.may_end);
        self.failures.extend(found);
    }

    /// A bystander gets little.
    pub(super) fn check_amplification(&mut self) {
        let bystander = HostId(self.case.hosts());
        let sent = self.trace.borrow();
        let found = bounds::amplification(sent.bytes_to(bystander), &self.spoofed.borrow());
        self.failures.extend(found);
    }
}

/// A reply whose acknowledgement does not come is forgotten after about 12 s (SPEC §9.4).
const FORGETTING: Duration = Duration::from_secs(30);
