// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A greedy host has as many addresses of one /24 as the server takes sessions, one session at
//! each. Clients of another network get in, and what is closed for them is not what a neighbour
//! uses (SPEC §10).

use std::time::Duration;

use smt_sim::net::HostId;

use crate::support::hoard::{Alive, Hoard};
use crate::support::visitor::{Plan, Visitor};
use crate::support::{FREE, HONEST, Maker, OTHER, Place, RATE, run_for, slowest_of, world};

#[test]
fn pings_keep_no_session_from_being_the_longest_unused() {
    let mut maker = Maker::new();
    let server = maker.server(SESSIONS);
    // They come first, and use theirs every 30 s.
    let settled = Plan {
        from: Duration::from_secs(1),
        every: Duration::from_secs(1),
        visits: 1,
        calls_every: Duration::from_secs(30),
        stays: Duration::from_secs(3_600),
    };
    let newcomers = Plan {
        from: Duration::from_secs(70),
        every: Duration::from_secs(20),
        visits: 42,
        calls_every: Duration::from_secs(7),
        stays: Duration::from_secs(110),
    };
    let neighbour = maker.visitors([(HONEST, Visitor::new(settled))]);
    let others = maker
        .visitors([(OTHER, Visitor::new(settled)), (OTHER.socket(1, 0), Visitor::new(newcomers))]);
    let idle = maker.visitors([]);
    let mut world = world([server, idle, neighbour, others], RATE);
    run_for(&mut world, Duration::from_secs(2));
    for number in FREE..FREE + SESSIONS as u32 {
        let alive = Alive::Pings(Duration::from_secs(20));
        let hoard = Hoard::new(&mut maker, HostId(number), (1, 1), alive);
        world.add(Place::Hoard(hoard));
    }
    run_for(&mut world, Duration::from_secs(60));
    let sessions = |place: &Place| place.server().endpoint.sessions_len();
    assert_eq!(sessions(&world.hosts()[0]), SESSIONS);
    run_for(&mut world, Duration::from_secs(15 * 60));

    let [server, neighbour, others] = [0, 2, 3].map(|at| &world.hosts()[at]);
    assert_eq!(sessions(server), SESSIONS);
    assert_eq!(server.server().endpoint.statistics().controls_forged, 0);
    let honest = || neighbour.visitors().chain(others.visitors());
    let slowest = slowest_of(honest(), 44);
    println!("slowest honest visit: {slowest:?}");
    let lost: Vec<_> = honest().flat_map(|visitor| &visitor.lost).collect();
    assert!(lost.is_empty(), "sessions in use have ended: {lost:?}");
}

const SESSIONS: usize = 32;
