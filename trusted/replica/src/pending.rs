// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests of clients that wait to be executed.
//!
//! The places of a client are those that a correct one needs: [`SESSIONS_MAX`] sessions, each with
//! numbers that may be in progress together. Sessions have turns, as the flows of start-time fair
//! queueing (Goyal et al., SIGCOMM 1996): one with many requests keeps no other out, and one of
//! its requests is executed soon while any of them waits.
//!
//! A leader that is correct may have no place for a request that others hold, since a client that
//! lies has filled its places with others. Those who hold the request see them executed: one of
//! the same session, or some of eight other sessions. A request is therefore late when it has
//! waited for too long since then. A client that keeps to eight sessions is served within bounded
//! time, whatever a leader leaves out: a session has no more than [`IN_PROGRESS_MAX`] requests
//! beside one that waits, and there are seven other sessions.

use std::collections::BTreeMap;
use std::ops::Bound;

use serde::{Deserialize, Serialize};

use crate::client_table::{IN_PROGRESS_MAX, SESSIONS_MAX, first_number, last_number, session_of};
use crate::request::Request;

/// A request that waits.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Pending {
    /// The request.
    pub request: Request,
    /// The ticks since it came, or since its time began anew.
    pub age: u32,
    /// The place at which this node, as the leader of a view, has ordered it.
    pub ordered: Option<u64>,
}

/// The turn of a request: that of its session, and its place among all that came.
type Turn = (u64, u64);

/// All requests that wait, in turns of the sessions.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct PendingRequests {
    by_turn: BTreeMap<Turn, Pending>,
    /// The turn of each request, by client and number.
    turns: BTreeMap<(u32, u64), Turn>,
    /// How many requests have come.
    arrivals: u64,
    /// The latest turn of a session that was executed. Sessions that come then are behind it.
    executed: u64,
    /// Ticks that were counted.
    ticks: u64,
    /// The tick of the last execution in each session of a client: the last ones.
    used: BTreeMap<u32, BTreeMap<u64, u64>>,
}

impl PendingRequests {
    /// Whether a request may be added: none of its client has its number, and there is room. There
    /// is none beside a number of the session that says that this one is given up.
    #[must_use]
    pub fn has_room_for(&self, request: &Request) -> bool {
        if self.turns.contains_key(&key(request)) {
            return false;
        }
        match self.highest(request.client, session_of(request.number)) {
            Some(highest) => request.number.saturating_add(IN_PROGRESS_MAX) > highest,
            None => self.sessions(request.client) < SESSIONS_MAX,
        }
    }

    /// Whether exactly this request waits.
    #[must_use]
    pub fn has(&self, request: &Request) -> bool {
        let turn = self.turns.get(&key(request));
        let known = turn.and_then(|it| self.by_turn.get(it));
        known.is_some_and(|it| it.request == *request)
    }

    /// Adds a request that has room. Those of its session that it says are given up leave.
    pub fn push(&mut self, request: Request) {
        let (client, session) = (request.client, session_of(request.number));
        let before = self.highest(client, session).and_then(|it| self.turns.get(&(client, it)));
        let turn = before.map_or(0, |it| it.0).max(self.executed) + 1;
        self.arrivals += 1;
        let turn = (turn, self.arrivals);
        self.turns.insert(key(&request), turn);
        let first = first_number(session);
        let lowest = request.number.saturating_sub(IN_PROGRESS_MAX - 1).max(first);
        let given_up = self.turns.range((client, first)..(client, lowest));
        let given_up: Vec<u64> = given_up.map(|it| it.0.1).collect();
        for number in given_up {
            self.take(client, number);
        }
        self.by_turn.insert(turn, Pending { request, age: 0, ordered: None });
    }

    /// The request of a client with this number.
    pub fn get_mut(&mut self, client: u32, number: u64) -> Option<&mut Pending> {
        self.by_turn.get_mut(self.turns.get(&(client, number))?)
    }

    /// The request of a client with this number was executed, and waits no longer. False if it did
    /// not wait.
    pub fn execute(&mut self, client: u32, number: u64) -> bool {
        let used = self.used.entry(client).or_default();
        used.insert(session_of(number), self.ticks);
        if used.len() > SESSIONS_MAX + 1 {
            let oldest = used.iter().min_by_key(|it| it.1).map(|it| *it.0);
            oldest.map(|session| used.remove(&session));
        }
        let turn = self.take(client, number);
        self.executed = self.executed.max(turn.unwrap_or(0));
        turn.is_some()
    }

    /// Keeps the requests for which this is true.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&Request) -> bool) {
        self.by_turn.retain(|_, it| is_kept(&it.request));
        self.turns.retain(|_, turn| self.by_turn.contains_key(turn));
    }

    /// All requests, in their turns.
    pub fn iter(&self) -> impl Iterator<Item = &Pending> {
        self.by_turn.values()
    }

    /// All requests, in their turns.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Pending> {
        self.by_turn.values_mut()
    }

    /// Whether no request waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_turn.is_empty()
    }

    /// Counts a tick. True if a request has waited for more than `limit` of them: since it came,
    /// and since others of its client were executed that may have had its place at the leader.
    pub fn tick(&mut self, limit: u32) -> bool {
        self.ticks += 1;
        let mut is_late = false;
        for it in self.by_turn.values_mut() {
            it.age = it.age.saturating_add(1);
            if it.age > limit {
                let used = self.used.get(&it.request.client);
                it.age = it.age.min(since_others(used, it.request.number, self.ticks));
                is_late |= it.age > limit;
            }
        }
        is_late
    }

    /// The time of all begins anew.
    pub fn wait_again(&mut self) {
        self.by_turn.values_mut().for_each(|it| it.age = 0);
    }

    /// All on which what follows depends, in the order of turns: how many turns each request is
    /// behind the last one that was executed, the ticks for which it counts as waiting, its place
    /// in a log, and the request. Ticks and turns themselves only grow.
    #[cfg(feature = "sim")]
    #[must_use]
    pub fn state(&self) -> Vec<(u64, u32, Option<u64>, &Request)> {
        let age = |it: &Pending| {
            let used = self.used.get(&it.request.client);
            it.age.min(since_others(used, it.request.number, self.ticks))
        };
        let behind = |turn: &Turn| turn.0.saturating_sub(self.executed);
        let all = self.by_turn.iter();
        all.map(|(turn, it)| (behind(turn), age(it), it.ordered, &it.request)).collect()
    }

    fn take(&mut self, client: u32, number: u64) -> Option<u64> {
        let turn = self.turns.remove(&(client, number))?;
        self.by_turn.remove(&turn);
        Some(turn.0)
    }

    /// The highest number of a session that waits.
    fn highest(&self, client: u32, session: u64) -> Option<u64> {
        let numbers = (client, first_number(session))..=(client, last_number(session));
        let mut of_session = self.turns.range(numbers);
        of_session.next_back().map(|it| it.0.1)
    }

    /// How many sessions of a client have requests that wait.
    fn sessions(&self, client: u32) -> usize {
        let next = |from| self.turns.range((from, Bound::Included((client, u64::MAX)))).next();
        let first = next(Bound::Included((client, 0)));
        let sessions = std::iter::successors(first, |((_, number), _)| {
            next(Bound::Excluded((client, last_number(session_of(*number)))))
        });
        sessions.count()
    }
}

/// The ticks up to now, since others of a client, whose sessions were used at these ticks, had used
/// all places that a request may need: one of its session, or those of eight others.
fn since_others(used: Option<&BTreeMap<u64, u64>>, number: u64, now: u64) -> u32 {
    let of_session = |used: &BTreeMap<u64, u64>| {
        let session = session_of(number);
        let others = used.iter().filter(|it| *it.0 != session).map(|it| *it.1);
        let mut others: Vec<u64> = others.collect();
        others.sort_unstable_by(|a, b| b.cmp(a));
        used.get(&session).copied().max(others.get(SESSIONS_MAX - 1).copied())
    };
    let since = used.and_then(of_session).map(|it| now.saturating_sub(it));
    since.and_then(|it| u32::try_from(it).ok()).unwrap_or(u32::MAX)
}

fn key(request: &Request) -> (u32, u64) {
    (request.client, request.number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signed_together::Proof;

    fn request(client: u32, number: u64) -> Request {
        let (nonce, operation, proof) = ([0; 16], Vec::new(), Proof::default());
        Request { client, number, nonce, operation, proof }
    }

    /// The request at a place of a session.
    fn at(session: u64, place: u64) -> Request {
        request(1, first_number(session) + place)
    }

    /// Adds the requests that have room, and says how many they are.
    fn push_all(pending: &mut PendingRequests, all: impl Iterator<Item = Request>) -> usize {
        let before = pending.iter().count();
        all.for_each(|it| {
            if pending.has_room_for(&it) {
                pending.push(it);
            }
        });
        pending.iter().count() - before
    }

    fn of_session(session: u64) -> impl Iterator<Item = Request> {
        (0..IN_PROGRESS_MAX).map(move |place| at(session, place))
    }

    #[test]
    fn a_client_has_as_many_places_as_eight_sessions_need_and_leaves_room_for_others() {
        let mut pending = PendingRequests::default();
        let places = push_all(&mut pending, (1..20).flat_map(of_session));
        assert_eq!(places, SESSIONS_MAX * IN_PROGRESS_MAX as usize);
        assert!(pending.has_room_for(&request(7, 1)) && !pending.has_room_for(&at(20, 1)));
        let other = Request { operation: vec![1], ..at(1, 2) };
        assert!(pending.has(&at(1, 2)) && !pending.has(&other) && !pending.has_room_for(&other));
        pending.retain(|it| session_of(it.number) > 1);
        assert!(!pending.has(&at(1, 2)) && pending.has_room_for(&at(20, 1)));
    }

    #[test]
    fn a_request_takes_the_places_of_those_that_its_number_says_are_given_up() {
        let mut pending = PendingRequests::default();
        push_all(&mut pending, of_session(3));
        pending.push(at(3, IN_PROGRESS_MAX + 1));
        let numbers: Vec<u64> = pending.iter().map(|it| it.request.number).collect();
        let first = first_number(3) + 2;
        let expected = (first..first + 30).chain([first + IN_PROGRESS_MAX - 1]);
        assert!(numbers.iter().copied().eq(expected), "{numbers:?}");
        assert!(!pending.has_room_for(&at(3, 1)) && pending.has_room_for(&at(3, IN_PROGRESS_MAX)));
        // The next session, and the last one that there is.
        pending.push(at(4, 0));
        pending.push(request(1, u64::MAX));
        assert_eq!(pending.iter().count(), 33);
    }

    #[test]
    fn sessions_have_turns_however_many_requests_and_new_sessions_a_client_has() {
        let mut pending = PendingRequests::default();
        push_all(&mut pending, (1..=7).flat_map(of_session));
        let other = (1..=IN_PROGRESS_MAX).map(|number| request(7, number));
        push_all(&mut pending, other.clone());
        // A session of the first client ends, another one begins, as each request is executed.
        for executed in 0..9 * other.count() {
            let Some(first) = pending.iter().next().map(|it| it.request.clone()) else {
                break;
            };
            assert!(pending.execute(first.client, first.number));
            push_all(&mut pending, [at(100 + executed as u64, 0)].into_iter());
        }
        assert!(pending.iter().all(|it| it.request.client == 1));
    }

    #[test]
    fn a_request_is_late_when_it_has_waited_longer_than_the_limit() {
        let mut pending = PendingRequests::default();
        pending.push(request(1, 1));
        assert!(!pending.tick(1) && pending.tick(1));
        pending.wait_again();
        assert!(!pending.tick(1));
    }

    #[test]
    fn a_request_is_late_when_no_other_one_had_its_place_for_longer_than_the_limit() {
        let is_late = |sessions: std::ops::RangeInclusive<u64>| {
            let mut pending = PendingRequests::default();
            pending.push(at(1, 1));
            (0..3).any(|place| {
                sessions.clone().for_each(|it| {
                    assert!(!pending.execute(1, first_number(it) + 5 + place));
                });
                pending.tick(1)
            })
        };
        assert!(!is_late(1..=1), "its session is served");
        assert!(is_late(2..=8), "seven other sessions leave a place");
        assert!(!is_late(2..=9) && !is_late(2..=20), "eight leave none");
    }
}
