// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests of clients that wait to be executed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::request::Request;

/// Requests of one client that wait, at most: those in progress of four sessions.
const OF_CLIENT_MAX: usize = 128;

/// A request that waits.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Pending {
    /// The request.
    pub request: Request,
    /// The ticks since it came, or since the time of all began anew.
    pub age: u32,
    /// The place at which this node, as the leader of a view, has ordered it.
    pub ordered: Option<u64>,
}

/// All requests that wait, in the order in which they came: a client with many keeps no other out.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct PendingRequests {
    by_arrival: BTreeMap<u64, Pending>,
    /// The arrival of each request, by client and number.
    arrivals: BTreeMap<(u32, u64), u64>,
    next: u64,
}

impl PendingRequests {
    /// Whether a request may be added: none of its client has its number, and there is room.
    #[must_use]
    pub fn has_room_for(&self, request: &Request) -> bool {
        let of_client = self.arrivals.range((request.client, 0)..=(request.client, u64::MAX));
        !self.arrivals.contains_key(&key(request)) && of_client.count() < OF_CLIENT_MAX
    }

    /// Whether exactly this request waits.
    #[must_use]
    pub fn has(&self, request: &Request) -> bool {
        let arrival = self.arrivals.get(&key(request));
        let known = arrival.and_then(|it| self.by_arrival.get(it));
        known.is_some_and(|it| it.request == *request)
    }

    /// Adds a request that has room.
    pub fn push(&mut self, request: Request) {
        self.next += 1;
        self.arrivals.insert(key(&request), self.next);
        self.by_arrival.insert(self.next, Pending { request, age: 0, ordered: None });
    }

    /// The request of a client with this number.
    pub fn get_mut(&mut self, client: u32, number: u64) -> Option<&mut Pending> {
        self.by_arrival.get_mut(self.arrivals.get(&(client, number))?)
    }

    /// Removes the request of a client with this number. False if there is none.
    pub fn remove(&mut self, client: u32, number: u64) -> bool {
        let arrival = self.arrivals.remove(&(client, number));
        arrival.and_then(|it| self.by_arrival.remove(&it)).is_some()
    }

    /// Keeps the requests for which this is true.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&Request) -> bool) {
        self.by_arrival.retain(|_, it| is_kept(&it.request));
        self.arrivals.retain(|_, arrival| self.by_arrival.contains_key(arrival));
    }

    /// All requests, the first that came first.
    pub fn iter(&self) -> impl Iterator<Item = &Pending> {
        self.by_arrival.values()
    }

    /// All requests, the first that came first.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Pending> {
        self.by_arrival.values_mut()
    }

    /// Whether no request waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_arrival.is_empty()
    }

    /// Counts a tick. True if a request has waited for more than `limit` of them.
    pub fn tick(&mut self, limit: u32) -> bool {
        let mut is_late = false;
        for it in self.by_arrival.values_mut() {
            it.age = it.age.saturating_add(1);
            is_late |= it.age > limit;
        }
        is_late
    }

    /// The time of all begins anew.
    pub fn wait_again(&mut self) {
        self.by_arrival.values_mut().for_each(|it| it.age = 0);
    }
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

    #[test]
    fn a_client_that_sends_many_requests_leaves_room_and_turns_to_others() {
        let mut pending = PendingRequests::default();
        for number in 1.. {
            if !pending.has_room_for(&request(1, number)) {
                break;
            }
            pending.push(request(1, number));
            if number == 2 {
                pending.push(request(7, 1));
            }
        }
        assert_eq!(pending.iter().count(), OF_CLIENT_MAX + 1);
        assert_eq!(pending.iter().nth(2).map(|it| it.request.client), Some(7));
        assert!(pending.remove(1, 1) && !pending.remove(1, 1));
        assert!(pending.has_room_for(&request(1, 1)) && !pending.has_room_for(&request(1, 2)));
        let other = Request { operation: vec![1], ..request(1, 2) };
        assert!(pending.has(&request(1, 2)) && !pending.has(&other));
        pending.retain(|it| it.client == 7);
        assert_eq!(pending.iter().count(), 1);
        assert!(!pending.has(&request(1, 2)) && pending.has(&request(7, 1)));
    }

    #[test]
    fn a_request_is_late_when_it_has_waited_longer_than_the_limit() {
        let mut pending = PendingRequests::default();
        pending.push(request(1, 1));
        assert!(!pending.tick(1) && pending.tick(1));
        pending.wait_again();
        assert!(!pending.tick(1));
    }
}
