// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bounds on what hosts hold, do without a message, end, and send to a bystander. They are judged
//! by numbers that the run has gathered.

use std::collections::BTreeMap;
use std::time::Duration;

use smt_proto::{SessionEnd, Time};
use smt_wire::SessionIndex;

use super::{Checker, Failure};
use crate::net::packet::HostId;
use crate::swarm::host_pairs::HostPairs;

/// The bound on what a host holds, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryBound {
    /// The bytes that the host is configured to hold.
    pub(crate) memory_max: usize,
    /// The unscheduled bytes of a message, and a record: the message that was let in last goes
    /// beyond the bound by that. Each reply that is waited for does so too, since replies come
    /// unscheduled.
    pub(crate) beginning: usize,
    /// Calls whose replies may begin.
    pub(crate) calls: usize,
    /// The bytes that are granted while there is room.
    pub(crate) granted: usize,
    /// The longest message, of which one of each session is granted to its end.
    pub(crate) longest: usize,
    /// Sessions, at least one.
    pub(crate) sessions: usize,
    /// Calls whose parts the application takes: the part that it waits for comes without room (SPEC
    /// §5.9).
    pub(crate) part_readers: usize,
    /// The longest part, with its padding and records.
    pub(crate) longest_part: usize,
}

impl MemoryBound {
    /// A host holds so much for messages, and so much that came before any record of its message.
    pub(crate) fn check(&self, host: HostId, held: usize, early: usize) -> Option<Failure> {
        if early > EARLY_MAX {
            let text =
                format!("{host:?} keeps {early} bytes of early packets, more than {EARLY_MAX}");
            return Some(Failure::new(Checker::Memory, text));
        }
        let beginnings = (self.calls + 1) * self.beginning;
        let longest = self.longest * self.sessions.max(1);
        let parts = self.part_readers * self.longest_part;
        let most = self.memory_max + beginnings + self.granted + longest + parts;
        // Buffers grow ahead of their bytes.
        let most = most + most / 4;
        (held > most).then(|| {
            let text = format!("{host:?} holds {held} bytes, more than {most}");
            Failure::new(Checker::Memory, text)
        })
    }
}

/// Judges the bytes and messages that are left when everything has ended and was forgotten.
pub(crate) fn left(host: HostId, held: usize, live: usize) -> Option<Failure> {
    (held + live > 0).then(|| {
        let text = format!("{host:?} holds {held} bytes, {live} messages");
        Failure::new(Checker::Memory, text)
    })
}

/// Judges the calls in parts of which an application was not told that they are over.
pub(crate) fn part_calls(host: HostId, calls: usize) -> Option<Failure> {
    (calls > 0).then(|| {
        let text = format!("{host:?} waits for {calls} calls in parts that are over");
        Failure::new(Checker::Parts, text)
    })
}

/// For so long nothing is to happen but what sessions do in idleness.
pub(crate) const QUIET: Duration = Duration::from_secs(100);

/// The most that may happen meanwhile between so many hosts, for each pair: a probe round after a
/// black hole (SPEC §9.8) is 6 sizes, 3 times, on two sides.
pub(crate) fn quiet_steps(hosts: u32) -> u32 {
    300 * hosts * hosts
}

/// Judges what has happened in the quiet that ended at `ended`, and which timer is due next.
pub(crate) fn quiet(hosts: u32, steps: u32, ended: Time, next: Option<Time>) -> Vec<Failure> {
    let mut found = Vec::new();
    if steps > quiet_steps(hosts) {
        found.push(format!("{steps} things happened in {QUIET:?} without a message"));
    }
    if let Some(next) = next.filter(|next| *next <= ended + QUIET) {
        found.push(format!("without a message, a timer is due at {next:?}"));
    }
    let failure = |text| Failure::new(Checker::Quiet, text);
    found.into_iter().map(failure).collect()
}

/// No session ends but between hosts of which a fault was grave for one.
pub(crate) fn sessions<'a>(
    ends: impl Iterator<Item = (HostId, HostId, &'a SessionEnd)>,
    may_end: &HostPairs,
) -> Option<Failure> {
    let found: Vec<String> = ends
        .filter(|(own, peer, _)| !may_end.contains(*own, *peer))
        .map(|(own, peer, end)| format!("{own:?} with {peer:?}: {end}"))
        .collect();
    found.first().map(|first| {
        let text = format!("{} sessions ended; the first: {first}", found.len());
        Failure::new(Checker::Sessions, text)
    })
}

/// A bystander gets at most three times what was sent in its name (SPEC §6.2), both in bytes by the
/// session index of the answer: each attempt by itself, since most are refused, and would make up
/// for one that is answered too well.
pub(crate) fn amplification(
    sent: impl Iterator<Item = (SessionIndex, u64)>,
    spoofed: &BTreeMap<SessionIndex, u64>,
) -> Vec<Failure> {
    sent.filter_map(|(index, sent)| {
        let most = 3 * spoofed.get(&index).copied().unwrap_or_default();
        (sent > most).then(|| {
            let text = format!("{sent} bytes went to a bystander for {index}, more than {most}");
            Failure::new(Checker::Amplification, text)
        })
    })
    .collect()
}

/// Packets that came before record 0 (SPEC §10).
const EARLY_MAX: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const A: HostId = HostId(0);
    const B: HostId = HostId(1);

    #[test]
    fn a_host_holds_what_its_bound_permits_and_no_byte_more() {
        let bound = MemoryBound {
            memory_max: 1_000,
            beginning: 100,
            calls: 2,
            granted: 500,
            longest: 50,
            sessions: 2,
            part_readers: 3,
            longest_part: 200,
        };
        // 1,000 + 3 * 100 + 500 + 2 * 50 + 3 * 200, and a quarter.
        assert_eq!(bound.check(A, 3_125, EARLY_MAX), None);
        let found = bound.check(A, 3_126, 0).unwrap();
        assert_eq!(found.checker, Checker::Memory);
        assert!(found.text.contains("3126 bytes, more than 3125"), "{found}");
        assert!(bound.check(A, 0, EARLY_MAX + 1).is_some());
    }

    #[test]
    fn a_byte_or_a_message_that_is_left_is_found() {
        assert_eq!(left(A, 0, 0), None);
        assert!(left(A, 1, 0).is_some() && left(A, 0, 1).is_some());
        assert!(part_calls(A, 0).is_none() && part_calls(A, 1).is_some());
    }

    #[test]
    fn quiet_is_broken_by_happenings_and_by_a_timer() {
        let ended = Time::from_nanos(1_000_000_000);
        let later = ended + QUIET + Duration::from_nanos(1);
        assert_eq!(quiet(2, 1_200, ended, Some(later)), []);
        assert_eq!(quiet(2, 1_201, ended, None).len(), 1);
        let due = quiet(2, 0, ended, Some(ended + QUIET));
        assert_eq!(due.len(), 1);
        assert_eq!(due[0].checker, Checker::Quiet);
    }

    #[test]
    fn a_session_ends_between_hosts_that_have_a_reason() {
        let end = SessionEnd::Silent(Duration::from_secs(2));
        let mut may_end = HostPairs::default();
        let ends = || [(A, B, &end)].into_iter();
        assert_eq!(sessions(ends(), &may_end).unwrap().checker, Checker::Sessions);
        may_end.add(A, B);
        assert_eq!(sessions(ends(), &may_end), None);
        assert_eq!(sessions([].into_iter(), &HostPairs::default()), None);
    }

    #[test]
    fn three_times_as_many_bytes_may_go_to_a_bystander_for_each_attempt() {
        let [one, other] = [7, 8].map(SessionIndex);
        let spoofed = BTreeMap::from([(one, 100), (other, 1_000)]);
        let found = |sent| amplification([(one, sent)].into_iter(), &spoofed);
        assert_eq!(found(300), []);
        assert_eq!(found(301)[0].checker, Checker::Amplification);
        let unasked = [(SessionIndex(0), 1)].into_iter();
        assert_eq!(amplification(unasked, &spoofed).len(), 1);
    }
}
