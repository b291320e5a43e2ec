// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One host has as many sessions as the server takes, keeps all of them alive and asks for more.
//! Clients of another network get in (SPEC §10).

use std::time::Duration;

use crate::support::hoard::{Alive, Hoard};
use crate::support::visitor::{Plan, Visitor};
use crate::support::{GREEDY, HONEST, Maker, Place, RATE, run_for, slowest_of, world};

/// The slowest of 45 visits in 15 minutes of virtual time, to the reply to the first call.
fn visits_beside(alive: Alive) -> Duration {
    let mut maker = Maker::new();
    let server = maker.server(SESSIONS);
    let hoard = Hoard::new(&mut maker, GREEDY, (8, SESSIONS), alive);
    let plan = Plan {
        from: Duration::from_secs(10),
        every: Duration::from_secs(20),
        visits: 45,
        calls_every: Duration::from_secs(7),
        stays: Duration::from_secs(110),
    };
    let visitor = (HONEST.socket(1, 0), Visitor::new(plan));
    let visitors = maker.visitors([visitor]);
    let mut world = world([server, Place::Hoard(hoard), visitors], RATE);
    run_for(&mut world, Duration::from_secs(9));
    assert_eq!(world.hosts()[1].hoard().sessions(), SESSIONS);
    run_for(&mut world, Duration::from_secs(15 * 60));
    let [server, hoard, visitors] = [0, 1, 2].map(|at| &world.hosts()[at]);
    assert_eq!(server.server().endpoint.sessions_len(), SESSIONS);
    assert_eq!(server.server().endpoint.statistics().controls_forged, 0);
    assert!(hoard.hoard().lost() > 5, "it has had all places");
    assert!(visitors.visitors().all(|visitor| visitor.lost.is_empty()));
    slowest_of(visitors.visitors(), 45)
}

#[test]
fn host_that_pings_in_all_of_its_sessions_leaves_room() {
    let slowest = visits_beside(Alive::Pings(Duration::from_secs(50)));
    println!("slowest honest visit: {slowest:?}");
}

#[test]
fn host_that_uses_all_of_its_sessions_leaves_room() {
    let slowest = visits_beside(Alive::Messages(Duration::from_secs(50)));
    println!("slowest honest visit: {slowest:?}");
}

const SESSIONS: usize = 32;
