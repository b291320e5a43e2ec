// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets out of order: every one goes up once, in bounded memory, and forged ones take no slot.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::time::Duration;

use smt_nic::quic::reordering::{Arrived, REACH, Reordering, Slots};

const WAIT: Duration = Duration::from_micros(500);

fn arrived(number: u64, micros: u64) -> Arrived<()> {
    Arrived { number, at: Duration::from_micros(micros), packet: () }
}

/// A connection with its device's slots, and the numbers that went up.
struct Bench {
    slots: Slots,
    reordering: Reordering<()>,
    up: Vec<u64>,
}

impl Bench {
    fn new(slots: u32) -> Self {
        Self { slots: Slots::new(slots), reordering: Reordering::new(0, WAIT), up: Vec::new() }
    }

    fn take(&mut self, number: u64, micros: u64) {
        let up = &mut self.up;
        let mut up = |arrived: Arrived<()>| up.push(arrived.number);
        let arrived = arrived(number, micros);
        self.reordering.take(&mut self.slots, arrived, &mut up);
    }

    fn wait_until(&mut self, micros: u64) {
        let up = &mut self.up;
        let mut up = |arrived: Arrived<()>| up.push(arrived.number);
        let now = Duration::from_micros(micros);
        self.reordering.handle_timeout(&mut self.slots, now, &mut up);
    }
}

#[test]
fn a_packet_that_is_early_waits_for_its_predecessor() {
    let mut bench = Bench::new(4);
    for number in [0, 2, 1, 4, 5, 3, 6] {
        bench.take(number, number);
    }
    assert_eq!(bench.up, [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!((bench.reordering.held(), bench.slots.used()), (0, 0));
}

#[test]
fn three_later_packets_release_what_a_lost_or_skipped_one_holds_up() {
    let mut bench = Bench::new(4);
    for number in [0, 2, 3] {
        bench.take(number, number);
    }
    assert_eq!((bench.up.clone(), bench.slots.used()), (vec![0], 1));
    bench.take(4, 4);
    assert_eq!(bench.up, [0, 2, 3, 4]);
    bench.take(1, 5);
    assert_eq!(bench.up, [0, 2, 3, 4, 1], "a late one goes up at once");
    assert_eq!(bench.slots.used(), 0);
}

#[test]
fn the_timer_of_the_oldest_releases_all() {
    let mut bench = Bench::new(4);
    bench.take(0, 0);
    bench.take(3, 10);
    bench.take(5, 400);
    assert_eq!(bench.slots.used(), 2);
    bench.wait_until(509);
    assert_eq!(bench.up, [0]);
    assert_eq!(bench.reordering.timeout(), Some(Duration::from_micros(510)));
    bench.wait_until(510);
    assert_eq!(bench.up, [0, 3, 5]);
    assert_eq!((bench.reordering.timeout(), bench.slots.used()), (None, 0));
}

#[test]
fn packets_go_up_as_they_came_where_no_slot_is_free() {
    let mut bench = Bench::new(1);
    bench.take(0, 0);
    bench.take(2, 1);
    bench.take(4, 2);
    assert_eq!(bench.up, [0, 2, 4]);
    bench.take(6, 3);
    bench.take(5, 4);
    assert_eq!((bench.up.clone(), bench.slots.used()), (vec![0, 2, 4, 5, 6], 0));
}

#[test]
fn a_number_beyond_the_reach_moves_on() {
    let mut bench = Bench::new(4);
    bench.take(0, 0);
    bench.take(2, 1);
    bench.take(REACH + 1, 2);
    bench.take(REACH + 2, 3);
    assert_eq!(bench.up, [0, 2, REACH + 1, REACH + 2]);
}

/// Numbers below `limit`; a linear congruential generator, so that a seed has one order.
fn random(state: &mut u64, limit: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    (*state >> 33) % limit
}

#[test]
fn every_packet_goes_up_once_whatever_their_order_and_the_slots() {
    for seed in 0..200 {
        let mut state = seed;
        let slots = random(&mut state, 5) as u32;
        let mut bench = Bench::new(slots);
        let mut order: Vec<u64> = (0..500).filter(|_| random(&mut state, 20) > 0).collect();
        for at in 1..order.len() {
            if random(&mut state, 10) == 0 {
                let back = random(&mut state, 12) as usize;
                order.swap(at, at.saturating_sub(back));
            }
        }
        for (time, number) in order.iter().enumerate() {
            bench.take(*number, time as u64 * 20);
            assert!(bench.slots.used() <= slots, "seed {seed}");
            assert!(bench.reordering.held() < 3, "seed {seed}");
            bench.wait_until(time as u64 * 20);
        }
        bench.wait_until(1_000_000);
        let mut up = bench.up.clone();
        up.sort_unstable();
        order.sort_unstable();
        assert_eq!((up, bench.slots.used()), (order, 0), "seed {seed}");
    }
}

/// The paper's order: slots before authentication. Forged packets of a guessed id take them all,
/// and packets of the peer that are merely reordered go up out of order.
#[test]
fn reordering_before_authentication_lets_forged_packets_take_the_slots() {
    let slots = 8;
    let genuine = [1, 0, 3, 2, 5, 4];
    let in_order = |forged: u64| {
        let mut shared = Slots::new(slots);
        // Other connections of the device, to which the forged packets are addressed.
        let mut victims: Vec<_> = (0..forged).map(|_| Reordering::new(0, WAIT)).collect();
        for victim in &mut victims {
            victim.take(&mut shared, arrived(9, 0), &mut |_| {});
        }
        let mut reordering = Reordering::new(0, WAIT);
        let mut up = Vec::new();
        for number in genuine {
            let arrived = arrived(number, number);
            reordering.take(&mut shared, arrived, &mut |of: Arrived<()>| up.push(of.number));
        }
        up.is_sorted()
    };
    assert!(in_order(0), "authenticated first: forged packets never come here");
    assert!(!in_order(u64::from(slots)), "slots first: the attack works");
}
