// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Windows: a cable is used up, queues stay short, and those who share get the same.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::*;
use crate::net::network::Tap;

/// How long data segments of each host were under way.
#[derive(Default)]
struct Journeys {
    departed: Vec<VecDeque<Time>>,
    /// Since when to note.
    after: Time,
    nanos: Vec<u64>,
}

/// Shares them with the test.
struct Watch(Rc<RefCell<Journeys>>);

impl Tap for Watch {
    fn departed(&mut self, now: Time, packet: &Packet) {
        if packet.bytes.len() == 1_472 {
            self.0.borrow_mut().departed[packet.from.0 as usize].push_back(now);
        }
    }

    fn arrived(&mut self, now: Time, packet: &Packet) {
        if packet.bytes.len() == 1_472 {
            let mut journeys = self.0.borrow_mut();
            let departed = journeys.departed[packet.from.0 as usize].pop_front();
            if now > journeys.after {
                let nanos = (now - departed.expect("it departed")).as_nanos();
                journeys.nanos.push(nanos as u64);
            }
        }
    }
}

#[test]
fn one_long_stream_uses_the_cable_up() {
    let mut scene = Scene::rack(2);
    scene.send(0, 1, 1, 100_000_000);
    scene.run_until(Duration::from_secs(1));
    let goodput = 100_000_000.0 * 8.0 / scene.arrival(1).as_secs_f64() / 10e9;
    // 1,460 of 1,538 bytes are stream, and 16,384 of 16,406 of those are the message: 94.8 %.
    assert!((0.94..0.949).contains(&goodput), "{goodput}");
}

#[test]
fn two_senders_share_a_receiver_and_keep_its_queue_at_the_threshold() {
    const THRESHOLD: u64 = 100_000;
    const NOTED_FROM: Time = Time::from_nanos(50_000_000);
    let journeys = Rc::new(RefCell::new(Journeys {
        departed: vec![VecDeque::new(); 3],
        after: NOTED_FROM,
        nanos: Vec::new(),
    }));
    let mut topology = Topology::rack(3, EDGE);
    topology.switch.mark_above = Some(THRESHOLD);
    let mut scene = Scene::new(&topology, StreamOptions::default(), 1);
    let watch = Watch(Rc::clone(&journeys));
    scene.world.network.add_tap(Box::new(watch));
    // The second one comes when the first one has the whole cable.
    for from in 0..2 {
        (0..2_500).for_each(|message| scene.send(from, 2, message, 100_000));
        scene.run_until(Duration::from_millis(20));
    }
    scene.run_until(Duration::from_millis(200));
    let of = |from| {
        let arrived = scene.arrived.iter().map(|(_, delivered)| delivered);
        arrived
            .filter(|delivered| delivered.from == HostId(from) && delivered.at > NOTED_FROM)
            .count() as f64
    };
    let (share, total) = (of(0) / (of(0) + of(1)), of(0) + of(1));
    let goodput = total * 100_000.0 * 8.0 / 0.15 / 10e9;
    // Alone a segment needs 2 * (1,230.4 + 500) ns; at 10 Gb/s the rest is 0.8 ns for each byte
    // before it.
    let queues =
        journeys.borrow().nanos.iter().map(|nanos| (nanos - 3_460) * 5 / 4).collect::<Vec<_>>();
    let mean = queues.iter().sum::<u64>() / queues.len() as u64;
    let (least, most) = (queues.iter().min().unwrap(), queues.iter().max().unwrap());
    assert!((0.45..0.55).contains(&share), "{share}");
    assert!(goodput > 0.93, "{goodput}");
    assert!((THRESHOLD / 2..THRESHOLD * 5 / 4).contains(&mean), "{mean}");
    assert!(*least > THRESHOLD / 2, "{least}");
    assert!(*most < THRESHOLD * 3 / 2, "{most}");
    assert_eq!(scene.host(0).counts().resent, 0);
    assert!(scene.host(2).counts().marked > 1_000);
}

#[test]
fn losses_without_marks_shrink_the_window_and_the_cable_is_still_used() {
    let mut topology = Topology::rack(3, EDGE);
    topology.switch.buffer = 200_000;
    let mut scene = Scene::new(&topology, StreamOptions::default(), 1);
    for message in 0..2_000 {
        (0..2).for_each(|from| scene.send(from, 2, message, 100_000));
    }
    scene.run_until(Duration::from_millis(200));
    let goodput = scene.arrived.len() as f64 * 100_000.0 * 8.0 / 0.2 / 10e9;
    assert!(goodput > 0.85, "{goodput}");
    assert!(scene.host(0).counts().losses > 10);
}
