// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Several servers that serve alike: a message goes to one of those that are up.
//!
//! 1. Two servers are drawn, and the one with fewer messages in progress is chosen ("the power of
//!    two choices").
//! 2. A drawn server without a session, or one that is silent, is passed over: the best of all
//!    others is chosen. An attempt to reach it begins meanwhile, unless one has failed just now
//!    ([`super::backoff`]): attempts are probes, and no message waits for them.
//! 3. While no server is up, messages wait for the attempts at all of them.

use std::hash::{BuildHasher, RandomState};
use std::task::Poll;
use std::time::Duration;

use smt_proto::{ConnectError, Endpoint, Time};
use smt_wire::SessionIndex;

use super::{Caller, Failure, ServerChoice, ServerId, Servers};

/// The servers of a pool.
pub(super) struct Pool {
    members: Vec<ServerId>,
    random: Random,
}

/// How much a server has to do, the least first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Load {
    /// It has not answered a question for some time, and may be gone.
    is_silent: bool,
    /// Messages in progress.
    messages: usize,
}

impl Servers {
    /// Adds servers that serve alike. Callers name them as one server.
    pub(crate) fn add_pool(&mut self, choices: Vec<ServerChoice>) -> ServerId {
        let members = choices.into_iter().map(|choice| self.add(choice)).collect();
        let id = self.next_id();
        let random = Random::new(RandomState::new().hash_one(id.0));
        self.pools.insert(id, Pool { members, random });
        id
    }

    /// The servers behind an id: those of a pool, or one.
    pub(super) fn members(&self, server: ServerId) -> Vec<ServerId> {
        let pool = self.pools.get(&server);
        pool.map_or_else(|| vec![server], |pool| pool.members.clone())
    }

    /// The live session with a server of a pool; attempts begin where there is none.
    pub(super) fn poll_pool(
        &mut self,
        now: Time,
        endpoint: &mut Endpoint,
        caller: Caller<'_>,
    ) -> Poll<Result<SessionIndex, Failure>> {
        let Some(pool) = self.pools.get_mut(&caller.server) else {
            return Poll::Ready(Err(Failure::of(ConnectError::ShutDown)));
        };
        let drawn = pool.random.two_below(pool.members.len());
        let drawn = drawn.map(|at| pool.members[at]);
        let two = drawn.map(|server| self.up(now, server, endpoint));
        if let [Some(first), Some(second)] = two
            && !first.0.is_silent
            && !second.0.is_silent
        {
            let (_, session) = if second.0 < first.0 { second } else { first };
            return Poll::Ready(Ok(session));
        }
        self.poll_others(now, endpoint, caller, drawn[0])
    }

    /// The same where one that was drawn is not up.
    fn poll_others(
        &mut self,
        now: Time,
        endpoint: &mut Endpoint,
        caller: Caller<'_>,
        drawn: ServerId,
    ) -> Poll<Result<SessionIndex, Failure>> {
        let mut members = self.members(caller.server);
        // The first of several that are equal is chosen.
        let first = members.iter().position(|server| *server == drawn);
        members.rotate_left(first.unwrap_or_default());
        let is_first = caller.attempt.is_none();
        for server in &members {
            self.probe(now, *server, endpoint, caller.is_urgent && is_first);
        }
        let up = members.iter().filter_map(|server| self.up(now, *server, endpoint));
        if let Some((_, session)) = up.min_by_key(|(load, _)| *load) {
            return Poll::Ready(Ok(session));
        }
        // Each server has failed the caller when as many further attempts have begun.
        let of_all = || members.iter().filter_map(|server| self.of.get(server));
        let begun: u64 = of_all().map(|server| server.attempts()).sum();
        let most = *caller.attempt.get_or_insert(begun + members.len() as u64);
        let is_pending = begun < most && of_all().any(|server| server.is_attempting());
        if !is_pending {
            return Poll::Ready(Err(most_telling(
                of_all().filter_map(|server| server.last_failure()),
            )));
        }
        for server in &members {
            if let Some(server) = self.of.get_mut(server) {
                server.wait(caller.waker);
            }
        }
        Poll::Pending
    }

    /// Begins an attempt at a server without a session, unless one runs, or has failed just now.
    fn probe(&mut self, now: Time, server: ServerId, endpoint: &mut Endpoint, is_urgent: bool) {
        let Some(of) = self.of.get_mut(&server) else {
            return;
        };
        let is_down = of.live(endpoint).is_none() && !of.is_closed() && !of.is_attempting();
        if is_down && (is_urgent || !of.is_held(now)) {
            let step = of.attempt(now, endpoint);
            self.after(server, step);
        }
    }

    /// The session with a server that is up, and how much it has to do.
    fn up(&self, now: Time, server: ServerId, endpoint: &Endpoint) -> Option<(Load, SessionIndex)> {
        let server = self.of.get(&server).filter(|server| !server.is_closed())?;
        let session = server.live(endpoint)?;
        let facts = endpoint.session(session)?;
        let is_late = |since: Time| now.since(since) > SILENT_AFTER;
        let load =
            Load { is_silent: facts.asked_since.is_some_and(is_late), messages: facts.calls };
        Some((load, session))
    }
}

/// The failure that another attempt mends least; one of the servers being shut down, if none has
/// failed.
fn most_telling(failures: impl Iterator<Item = Failure>) -> Failure {
    let last = failures.min_by_key(|failure| failure.kind.is_transient());
    last.unwrap_or_else(|| Failure::of(ConnectError::ShutDown))
}

/// Random numbers for choices that need not be secret (xorshift64*).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    /// Two different numbers below this, or the same twice if there is one alone.
    fn two_below(&mut self, most: usize) -> [usize; 2] {
        let most = most as u64;
        let first = self.next() % most;
        let distance = match most {
            1 => 0,
            _ => 1 + self.next() % (most - 1),
        };
        [first, (first + distance) % most].map(|number| number as usize)
    }
}

/// A server that has not answered for this time gets no further messages while others do. Answers
/// take a fraction of a millisecond in a datacenter, and a session is given up after seconds only.
const SILENT_AFTER: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use smt_proto::Unavailability;

    use super::*;

    #[test]
    fn two_servers_are_drawn_that_differ_and_each_pair_is() {
        let mut random = Random::new(7);
        let mut drawn = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let [first, second] = random.two_below(3);
            assert_ne!(first, second);
            drawn.insert([first, second]);
        }
        assert_eq!(drawn.len(), 6);
        assert_eq!(random.two_below(1), [0, 0]);
    }

    #[test]
    fn a_server_that_is_silent_is_worse_than_any_that_is_not() {
        let load = |is_silent, messages| Load { is_silent, messages };
        assert!(load(false, 900) < load(true, 0));
        assert!(load(false, 1) < load(false, 2));
    }

    #[test]
    fn the_failure_is_told_that_another_attempt_does_not_mend() {
        let transient = Failure::of(ConnectError::NoServer);
        let lasting = Failure::of(ConnectError::Unavailable(Unavailability::NothingInCommon));
        assert!(!lasting.kind.is_transient());
        let failures = [transient.clone(), lasting.clone(), transient];
        assert_eq!(most_telling(failures.into_iter()), lasting);
    }
}
