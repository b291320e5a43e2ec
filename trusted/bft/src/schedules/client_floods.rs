// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients that send much, to some replicas alone, and leaders that serve a part of a client.

use smt_replica::{IN_PROGRESS_MAX, Request, SESSIONS_MAX, first_number};

use super::*;
/// The client that sends much.
const CLIENT: u32 = 2;

/// A request of the lying client.
fn request(number: u64) -> Request {
    let operation = ([0; 16], 1_u64.to_be_bytes().to_vec());
    Request::sign(&client_key(CLIENT), CLIENT, number, operation)
}

fn receives(cluster: &mut Cluster, who: usize, request: Request) {
    cluster.replicas[who].receive(&Message::Request(request).encode());
}

/// The numbers of the requests in so many sessions, `round` times as many as may be in progress
/// after their first.
fn numbers(sessions: u64, round: u64) -> impl Iterator<Item = u64> {
    let places = round * IN_PROGRESS_MAX..(round + 1) * IN_PROGRESS_MAX;
    places.flat_map(move |place| (1..=sessions).map(move |it| first_number(it) + place))
}

// The followers found the request late, and each leader lost its view after a timeout: its places
// for the client were taken by others whenever the request came.
#[test]
fn a_client_that_keeps_the_places_of_the_leader_full_costs_no_view_change() {
    let mut cluster = Cluster::new(3);
    let hidden = request(first_number(SESSIONS_MAX as u64 + 1));
    [1, 2].into_iter().for_each(|it| receives(&mut cluster, it, hidden.clone()));
    cluster.replicas.iter_mut().for_each(|it| drop(it.outputs()));
    for round in 0..30 {
        cluster.replicas.iter_mut().for_each(Replica::tick);
        numbers(SESSIONS_MAX as u64, round).for_each(|it| receives(&mut cluster, 0, request(it)));
        cluster.settle(|_, _| true);
    }
    assert_eq!([0, 1, 2].map(|it| cluster.replicas[it].metrics().views), [0; 3]);
    assert_eq!(cluster.replicas[1].pending.iter().count(), 1, "it waits for a place");
    // When the client ends the others, it has its turn.
    cluster.tick(&[0, 1, 2], 5);
    assert!(cluster.replicas.iter().all(|it| it.pending.is_empty()));
}

// A request of one session may wait while others of its client are executed. A leader that leaves
// it out all the time is replaced.
#[test]
fn a_leader_that_serves_some_sessions_of_a_client_and_not_another_one_loses_its_view() {
    let mut cluster = Cluster::new(3);
    cluster.replicas[0].holds_orders = true;
    let left_out = request(first_number(SESSIONS_MAX as u64));
    [1, 2].into_iter().for_each(|it| receives(&mut cluster, it, left_out.clone()));
    let mut served = (0..4).flat_map(|round| numbers(SESSIONS_MAX as u64 - 1, round));
    for sequence in 1..40 {
        if cluster.replicas[1].metrics().view == 0 {
            let batch: Vec<Request> = served.by_ref().take(4).map(request).collect();
            let batch = Arc::new(batch);
            cluster.replicas[0].say(Statement::Prepare { view: 0, sequence, batch });
        }
        cluster.tick(&[0, 1, 2], 1);
    }
    assert!(cluster.replicas[1].metrics().view > 0);
    assert!(cluster.replicas[1].pending.is_empty());
}
