// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A reader without room takes the part that its application needs next all the same (SPEC §5.9).

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use smt_proto::Config;

use super::calls_come_in_parts::{REPLY, REQUEST, begin, parts_of, send, take};
use super::support::{Answer, Verdict, World, body, ms};

/// A peer without room lets messages come again, but for the part that its application waits for.
// SMT [5.9-19]
#[test]
fn the_part_that_the_application_waits_for_is_taken_without_room() {
    let (mut world, session, _) = World::connected();
    let (call, request) = begin(&mut world, session, REPLY);
    world.nodes[0].endpoint.set_untaken(usize::MAX / 2);
    for part in parts_of([10, 20, 30_000]) {
        send(&mut world, 1, request, part, true).unwrap();
        world.run_for(ms(2));
    }
    world.run_for(Duration::from_secs(2));
    assert_eq!(take(&mut world, 0, call).0, parts_of([10]));
    world.run_for(Duration::from_secs(2));
    assert_eq!(take(&mut world, 0, call).0, parts_of([10, 20])[1..]);
    world.run_for(Duration::from_secs(2));
    assert_eq!(take(&mut world, 0, call).0, parts_of([10, 20, 30_000])[2..]);
}

/// The same of a part that comes in a bundle with others, which come again.
// SMT [5.7-26]
#[test]
fn the_part_that_the_application_waits_for_is_taken_from_a_bundle_without_room() {
    let (mut world, session, _) = World::connected();
    let (call, request) = begin(&mut world, session, REPLY);
    world.nodes[0].endpoint.set_untaken(usize::MAX / 2);
    for part in parts_of([10, 20]) {
        send(&mut world, 1, request, part, true).unwrap();
    }
    world.run_for(ms(100));
    assert_eq!(world.nodes[1].endpoint.statistics().bundles_sent, 1);
    for taken in [0..1, 1..2] {
        assert_eq!(take(&mut world, 0, call).0, parts_of([10, 20])[taken]);
        world.run_for(Duration::from_secs(2));
    }
}

/// Parts that come before the one that is needed next may fill the memory, and none of them can be
/// read before that one.
// SMT [5.9-19]
#[test]
fn the_part_before_those_that_fill_the_memory_is_taken() {
    let mut client = Config::default();
    // A session has a quarter for parts that wait.
    client.memory_max = 80_000;
    client.part_window = 65_536;
    let (mut world, session, _) = World::connected_with(client, Config::default());
    let (call, request) = begin(&mut world, session, REPLY);
    let mut is_lost = false;
    world.rule = Box::new(move |datagram, _| {
        let is_first = !is_lost && datagram.from == 1 && datagram.data().is_some();
        is_lost |= is_first;
        match is_first {
            true => Verdict::Drop,
            false => Verdict::Deliver,
        }
    });
    let parts = parts_of([10, 9_000, 9_000, 9_000]);
    for part in &parts {
        send(&mut world, 1, request, part.clone(), true).unwrap();
        world.flush();
    }
    world.run_for(ms(1));
    assert!(world.nodes[0].endpoint.memory() > 20_000);
    assert!(take(&mut world, 0, call).0.is_empty(), "the first is lost");
    world.run_for(Duration::from_secs(2));
    assert_eq!(take(&mut world, 0, call).0, parts);
    assert_eq!(world.nodes[0].endpoint.memory(), 0);
}

/// Without room a bundle is taken by and by, as its reader gets on; then it is acknowledged. Else
/// its id would stay unseen, and its sender soon have none left.
// SMT [5.9-19], [5.9-21]
#[test]
fn a_bundle_whose_parts_were_taken_one_by_one_is_acknowledged() {
    let mut server = Config::default();
    server.memory_max = 400_000;
    let (mut world, hostile, _) = World::connected_with(Config::default(), server);
    // A call of which the first part is lost, and the others fill the share of the session.
    let (filling, request) = begin(&mut world, hostile, REQUEST);
    take(&mut world, 1, request);
    world.run_for(ms(1));
    let is_withheld = Rc::new(Cell::new(true));
    let withholds = Rc::clone(&is_withheld);
    let mut withheld = BTreeSet::new();
    world.rule = Box::new(move |datagram, _| {
        let Some(data) = datagram.data().filter(|_| datagram.from == 0) else {
            return Verdict::Deliver;
        };
        if withholds.get() {
            withheld.insert(data.header.id);
        }
        match withheld.contains(&data.header.id) {
            true => Verdict::Drop,
            false => Verdict::Deliver,
        }
    });
    send(&mut world, 0, filling, body(0, 1_000), true).unwrap();
    world.flush();
    is_withheld.set(false);
    while world.nodes[1].endpoint.memory() <= 400_000 / 4 {
        send(&mut world, 0, filling, body(1, 10_000), true).unwrap();
        world.run_for(ms(1));
    }
    let (call, request) = begin(&mut world, hostile, REQUEST);
    take(&mut world, 1, request);
    world.run_for(ms(5));
    let before = world.nodes[0].endpoint.session(hostile).unwrap().calls;
    let parts = parts_of([30, 31, 32]);
    for part in &parts {
        send(&mut world, 0, call, part.clone(), true).unwrap();
    }
    let mut taken = Vec::new();
    for _ in 0..50 {
        world.run_for(ms(100));
        taken.extend(take(&mut world, 1, request).0);
    }
    assert_eq!(taken, parts);
    assert_eq!(world.nodes[0].endpoint.statistics().bundles_sent, 1);
    let after = world.nodes[0].endpoint.session(hostile).unwrap().calls;
    assert_eq!(after, before, "the bundle and its parts are acknowledged");
}

/// The parts behind the first one of a call cannot be read without it, whoever has lost it.
// SMT [5.9-21]
#[test]
fn a_peer_that_withholds_the_first_part_of_its_calls_leaves_room_for_others() {
    // Parts that come alone, and parts that come in bundles.
    for length in [50_000, 500] {
        withhold_first_parts(length);
    }
}

fn withhold_first_parts(length: usize) {
    let mut server = Config::default();
    server.accept = true;
    server.memory_max = MEMORY;
    // Messages that are withheld take ids, and must not end the attack.
    server.window = 65_536;
    let mut world = World::new(vec![Config::default(), server, Config::default()]);
    let (hostile, _) = world.connect(0, 1).unwrap();
    let (honest, _) = world.connect(2, 1).unwrap();
    let withholds = Rc::new(Cell::new(false));
    let is_withheld = Rc::clone(&withholds);
    let mut withheld = BTreeSet::new();
    world.rule = Box::new(move |datagram, _| {
        let Some(data) = datagram.data().filter(|_| datagram.from == 0) else {
            return Verdict::Deliver;
        };
        if is_withheld.get() {
            withheld.insert(data.header.id);
        }
        match withheld.contains(&data.header.id) {
            true => Verdict::Drop,
            false => Verdict::Deliver,
        }
    });
    for _ in 0..40 {
        let (call, request) = begin(&mut world, hostile, REQUEST);
        // The application waits for the first part, which opens the window.
        take(&mut world, 1, request);
        world.run_for(ms(1));
        withholds.set(true);
        send(&mut world, 0, call, body(0, length), true).unwrap();
        world.flush();
        withholds.set(false);
        // Short ones that wait leave in bundles.
        while send(&mut world, 0, call, body(1, length), true).is_ok() {}
        world.run_for(ms(5));
    }
    world.run_for(Duration::from_secs(2));
    let held = world.nodes[1].endpoint.memory();
    assert!((MEMORY / 4..MEMORY / 2).contains(&held), "{held}");
    world.nodes[1].application = Box::new(|request| Answer::Reply(request.clone()));
    for length in [100, 100_000] {
        let call = world.call(2, honest, body(7, length));
        assert_eq!(world.outcome(2, call), Ok(body(7, length)));
    }
}

/// Bytes for messages of all peers.
const MEMORY: usize = 4_000_000;
