// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Entries that are looked at to put packets into order: by a list that is searched, by a balanced
//! tree, and by the bitmap of the engine (NiQUIC §3.2).
//!
//!     cargo run --release -p smt-nic --example reordering_cost
//!
//! Packets are held back at random, by 1 to 3 or by 1 to 40 places. List and tree hold a packet
//! until its predecessors have come, as a host's software does; the engine lets go after three
//! later ones.

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::time::Duration;

use smt_nic::quic::reordering::{Arrived, Reordering, Slots};
use smt_nic::quic::{BYTES_OF_A_CONNECTION, BYTES_OF_AN_ID};

thread_local! {
    static LOOKED_AT: Cell<u64> = const { Cell::new(0) };
}

fn look() {
    LOOKED_AT.set(LOOKED_AT.get() + 1);
}

/// A number whose comparisons are counted.
#[derive(Clone, Copy, Eq, PartialEq)]
struct Counted(u64);

impl Ord for Counted {
    fn cmp(&self, other: &Self) -> Ordering {
        look();
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for Counted {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The numbers of packets as they arrive.
fn order(percent: u64, places: u64) -> Vec<u64> {
    let mut state = 7_u64;
    let mut random = |limit: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % limit
    };
    let mut packets: Vec<(u64, u64)> = (0..PACKETS)
        .map(|number| match random(100) < percent {
            true => (number + 1 + random(places), number),
            false => (number, number),
        })
        .collect();
    packets.sort();
    packets.into_iter().map(|(_, number)| number).collect()
}

/// A sorted list, searched from its end, where most packets belong.
fn by_list(order: &[u64]) -> u64 {
    let (mut next, mut held) = (0, Vec::new());
    for number in order {
        let behind = held.iter().rev().take_while(|of| {
            look();
            **of > *number
        });
        let at = held.len() - behind.count();
        held.insert(at, *number);
        let ready = held.iter().zip(next..).take_while(|(of, next)| **of == *next);
        let ready = ready.count();
        held.drain(..ready);
        next += ready as u64;
    }
    LOOKED_AT.take()
}

fn by_tree(order: &[u64]) -> u64 {
    let (mut next, mut held) = (0, BTreeMap::new());
    for number in order {
        held.insert(Counted(*number), ());
        while held.first_key_value().is_some_and(|(first, ())| first.0 == next) {
            held.pop_first();
            next += 1;
        }
    }
    LOOKED_AT.take()
}

/// Entries looked at, packets that went up in order, and the most slots.
fn by_bitmap(order: &[u64]) -> (u64, u64, u32) {
    let (mut slots, mut reordering) = (Slots::new(1_024), Reordering::new(0, WAIT));
    let (mut largest, mut in_order, mut most) = (None, 0, 0);
    for number in order {
        // One bit and one place tell all.
        look();
        let arrived = Arrived { number: *number, at: Duration::ZERO, packet: () };
        reordering.take(&mut slots, arrived, &mut |of: Arrived<()>| {
            in_order += u64::from(largest.is_none_or(|largest| of.number > largest));
            largest = largest.max(Some(of.number));
        });
        most = most.max(slots.used());
    }
    (LOOKED_AT.take(), in_order, most)
}

fn main() {
    println!(
        "a connection takes {BYTES_OF_A_CONNECTION} B, and a place for an id {BYTES_OF_AN_ID} B\n\n\
         | held back | list | tree | bitmap | in order as they came | in order behind the engine | most slots |\n\
         |---|---|---|---|---|---|---|"
    );
    for (percent, places) in [(0, 1), (1, 3), (10, 3), (1, 40), (2, 40), (5, 40), (10, 40)] {
        let order = order(percent, places);
        let each = |looked: u64| looked as f64 / PACKETS as f64;
        let share = |packets: u64| packets as f64 * 100.0 / PACKETS as f64;
        let mut largest = None;
        let came = order.iter().filter(|number| {
            let is_in_order = largest.is_none_or(|largest| **number > largest);
            largest = largest.max(Some(**number));
            is_in_order
        });
        let came = came.count() as u64;
        let (list, tree) = (by_list(&order), by_tree(&order));
        let (bitmap, in_order, slots) = by_bitmap(&order);
        println!(
            "| {percent} % by up to {places} | {:.2} | {:.2} | {:.2} | {:.2} % | {:.2} % | {slots} |",
            each(list),
            each(tree),
            each(bitmap),
            share(came),
            share(in_order),
        );
    }
}

const PACKETS: u64 = 200_000;
const WAIT: Duration = Duration::from_micros(500);
