// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One host begins handshakes as fast as it can, shows every cookie and finishes none. Clients of
//! its own /24 and of another network connect (SPEC §10).

use std::time::Duration;

use smt_sim::net::World;

use crate::support::flood::Flood;
use crate::support::hoard::{Alive, Hoard};
use crate::support::visitor::{Plan, Visitor};
use crate::support::{GREEDY, HONEST, Maker, OTHER, Place, RATE, run_for, slowest_of, world};

/// A neighbour and a client of another network, each of which comes so often and leaves soon.
fn visitors(maker: &mut Maker, from: Duration, every: Duration, visits: usize) -> Place {
    let plan = Plan {
        from,
        every,
        visits,
        calls_every: Duration::from_secs(1),
        stays: Duration::from_millis(5),
    };
    maker.visitors([(HONEST, Visitor::new(plan)), (HONEST.socket(1, 0), Visitor::new(plan))])
}

/// The slowest visits of both.
fn tell_slowest(world: &World<Place>, cable: usize, visits: usize) {
    for (visitor, name) in world.hosts()[cable].visitors().zip(["neighbour", "other network"]) {
        let slowest = slowest_of([visitor].into_iter(), visits);
        println!("slowest visit, {name}: {slowest:?}");
    }
}

#[test]
fn attempts_at_2_000_a_second_for_longer_than_one_lives_keep_nobody_out() {
    let mut maker = Maker::new();
    let server = maker.server(65_536);
    let flood = Flood::new(GREEDY, 50, Duration::from_micros(500));
    let (from, every) = (Duration::from_millis(600), Duration::from_millis(120));
    let honest = visitors(&mut maker, from, every, 100);
    let mut world = world([server, Place::Flood(flood), honest], RATE);
    run_for(&mut world, Duration::from_secs(13));
    assert!(world.hosts()[1].flood().cookies > 20_000);
    tell_slowest(&world, 2, 100);
}

#[test]
fn attempts_as_many_as_the_cable_carries_keep_nobody_out() {
    let mut maker = Maker::new();
    let server = maker.server(65_536);
    // 909,000 packets a second of 1,266 B on the cable: 9.2 Gb/s.
    let flood = Flood::new(GREEDY, 50, Duration::from_nanos(1_100));
    let (from, every) = (Duration::from_millis(250), Duration::from_millis(20));
    let honest = visitors(&mut maker, from, every, 30);
    let mut world = world([server, Place::Flood(flood), honest], RATE);
    run_for(&mut world, Duration::from_millis(900));
    assert!(world.hosts()[1].flood().cookies > 10_000);
    tell_slowest(&world, 2, 30);
}

#[test]
fn attempts_keep_nobody_out_while_a_neighbour_has_all_sessions() {
    let mut maker = Maker::new();
    let server = maker.server(32);
    let alive = Alive::Messages(Duration::from_secs(5));
    let hoard = Hoard::new(&mut maker, GREEDY, (8, 32), alive);
    let (from, every) = (Duration::from_secs(2), Duration::from_millis(120));
    let honest = visitors(&mut maker, from, every, 80);
    let flood = Flood::new(OTHER, 50, Duration::from_micros(500));
    let places = [server, Place::Hoard(hoard), honest, Place::Flood(flood)];
    let mut world = world(places, RATE);
    run_for(&mut world, Duration::from_secs(13));
    assert!(world.hosts()[1].hoard().lost() > 10, "it has had all places");
    tell_slowest(&world, 2, 80);
}
