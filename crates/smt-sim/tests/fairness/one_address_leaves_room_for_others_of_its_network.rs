// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One address, with many ports, has as many sessions as the server takes. Its neighbours in the
//! same /24 get in, and keep what they use (SPEC §10).

use std::time::Duration;

use crate::support::hoard::{Alive, Hoard};
use crate::support::visitor::{Plan, Visitor};
use crate::support::{GREEDY, HONEST, Maker, OTHER, Place, RATE, run_for, slowest_of, world};

/// A visit every 20 s, for 15 minutes, of which each lasts 70 s.
const NEWCOMERS: Plan = Plan {
    from: Duration::from_secs(10),
    every: Duration::from_secs(20),
    visits: 45,
    calls_every: Duration::from_secs(7),
    stays: Duration::from_secs(70),
};

/// Neighbours and clients of another network come beside the host that has most; two neighbours'
/// sessions last all the time and are used every 30 s, which is less often than the greedy host
/// says something in each of its own.
fn neighbours_get_in_and_keep_theirs_beside(alive: Alive) {
    let mut maker = Maker::new();
    let server = maker.server(SESSIONS);
    let hoard = Hoard::new(&mut maker, GREEDY, (8, SESSIONS), alive);
    let neighbours = maker.visitors([(HONEST, Visitor::new(NEWCOMERS))]);
    let settled = Plan {
        from: Duration::from_secs(9),
        visits: 2,
        every: Duration::from_millis(100),
        calls_every: Duration::from_secs(30),
        stays: Duration::from_secs(3_600),
    };
    let from_elsewhere = Plan { from: Duration::from_secs(15), ..NEWCOMERS };
    let others = maker.visitors([
        (OTHER, Visitor::new(settled)),
        (OTHER.socket(1, 0), Visitor::new(from_elsewhere)),
    ]);
    let mut world = world([server, Place::Hoard(hoard), neighbours, others], RATE);
    run_for(&mut world, Duration::from_secs(8));
    assert_eq!(world.hosts()[1].hoard().sessions(), SESSIONS);
    run_for(&mut world, Duration::from_secs(15 * 60));

    let [server, hoard, neighbours, others] = [0, 1, 2, 3].map(|at| &world.hosts()[at]);
    assert_eq!(server.server().endpoint.sessions_len(), SESSIONS);
    assert_eq!(server.server().endpoint.statistics().controls_forged, 0);
    assert!(hoard.hoard().lost() > 5, "it has had all places");
    let slowest = slowest_of(neighbours.visitors(), 45);
    println!("slowest visit of a neighbour: {slowest:?}");
    let slowest = slowest_of(others.visitors(), 47);
    println!("slowest visit of others: {slowest:?}");
    let honest = neighbours.visitors().chain(others.visitors());
    let lost: Vec<_> = honest.flat_map(|visitor| &visitor.lost).collect();
    assert!(lost.is_empty(), "sessions in use have ended: {lost:?}");
}

#[test]
fn address_that_pings_in_all_of_its_sessions_leaves_room() {
    neighbours_get_in_and_keep_theirs_beside(Alive::Pings(Duration::from_secs(20)));
}

#[test]
fn address_that_uses_all_of_its_sessions_leaves_room() {
    neighbours_get_in_and_keep_theirs_beside(Alive::Messages(Duration::from_secs(20)));
}

const SESSIONS: usize = 32;
