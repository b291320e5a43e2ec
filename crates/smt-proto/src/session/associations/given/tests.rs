// SPDX-License-Identifier: Apache-2.0 OR MIT
use super::*;
use smt_testkit::PacketSealer;
use std::prelude::v1::*;

const INTERVAL: Duration = Duration::from_millis(5);
const VERSION: u8 = 1;

fn at(millis: u64) -> Time {
    Time::default() + Duration::from_millis(millis)
}

/// The serial that is told at this time, and whether it is told again.
fn told(given: &mut Given, millis: u64, device: &PacketSealer) -> Option<(u32, bool)> {
    let told = given.tell(at(millis), INTERVAL, device, VERSION)?;
    Some((told.fields.serial, told.is_again))
}

fn has(given: &Given, spis: &[u32]) -> Vec<bool> {
    spis.iter().map(|spi| given.has(*spi, 0)).collect()
}

// SMT [15.4-8]
#[test]
fn an_association_is_told_until_it_is_acknowledged() {
    let device = PacketSealer::new(1);
    let mut given = Given::new(at(0));
    assert_eq!(told(&mut given, 0, &device), Some((1, false)));
    assert_eq!(told(&mut given, 0, &device), None);
    let due = given.due().unwrap();
    let again = given.tell(due, INTERVAL, &device, VERSION).unwrap();
    assert_eq!((again.fields.serial, again.is_again), (1, true));
    assert!(given.key_of(1).is_some() && given.key_of(2).is_none());
    given.acknowledged(2);
    assert!(given.key_of(1).is_some());
    given.acknowledged(1);
    assert!(given.key_of(1).is_none());
    assert_eq!(given.due(), None);
}

// SMT [15.4-9]
#[test]
fn the_one_before_the_newest_is_taken_too_and_no_older_one() {
    let device = PacketSealer::new(1);
    let mut given = Given::new(at(0));
    for millis in [0, 200, 400] {
        given.asked(at(millis), given.serial);
        assert!(told(&mut given, millis, &device).is_some());
    }
    assert_eq!(has(&given, &[1, 2, 3, 4]), [false, true, true, false]);
}

// SMT [15.4-11]
#[test]
fn a_request_brings_a_new_one_and_no_sooner_than_the_least_interval() {
    let device = PacketSealer::new(1);
    let mut given = Given::new(at(0));
    assert_eq!(told(&mut given, 0, &device), Some((1, false)));
    given.acknowledged(1);
    given.asked(at(20), 1);
    assert_eq!(told(&mut given, 20, &device), None);
    assert_eq!(given.due(), Some(at(0) + ASSOCIATION_INTERVAL_MIN));
    assert_eq!(told(&mut given, 100, &device), Some((2, false)));
    // The newest is told by itself, if an older one is asked about.
    given.asked(at(300), 1);
    assert_eq!(told(&mut given, 300, &device), Some((2, true)));
    assert_eq!(device.allocate(VERSION).unwrap().spi, 3);
}

// SMT [15.4-10]
#[test]
fn a_replaced_key_of_the_device_brings_a_new_one_once() {
    let device = PacketSealer::new(1);
    let mut given = Given::new(at(0));
    assert_eq!(told(&mut given, 0, &device), Some((1, false)));
    given.acknowledged(1);
    device.rotate();
    assert_eq!(told(&mut given, 1, &device), Some((2, false)));
    given.acknowledged(2);
    assert_eq!(told(&mut given, 2, &device), None);
    assert_eq!(given.due(), None);
}

// SMT [15.4-7]
#[test]
fn an_spi_that_the_device_gives_again_after_two_rotations_is_no_more_of_this_session() {
    let device = PacketSealer::new(1);
    let mut given = Given::new(at(0));
    assert_eq!(told(&mut given, 0, &device), Some((1, false)));
    for rotations in 0..2 {
        assert!(given.has(1, rotations));
    }
    // The carrier has no other association for the session.
    device.set_left(0);
    for _ in 0..2 {
        device.rotate();
        told(&mut given, 600, &device);
    }
    assert!(!given.has(1, device.rotations()));
}

#[test]
fn a_carrier_without_room_is_asked_again() {
    let device = PacketSealer::new(1);
    device.set_left(0);
    let mut given = Given::new(at(0));
    assert_eq!(told(&mut given, 0, &device), None);
    assert_eq!(given.due(), Some(at(5)));
    device.set_left(1);
    assert_eq!(told(&mut given, 5, &device), Some((1, false)));
}
