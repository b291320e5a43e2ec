// SPDX-License-Identifier: Apache-2.0 OR MIT
use super::*;
use smt_carrier::AssociationKey;
use smt_testkit::PacketSealer;

const INTERVAL: Duration = Duration::from_millis(5);

fn at(millis: u64) -> Time {
    Time::default() + Duration::from_millis(millis)
}

fn association(spi: u32) -> Association {
    Association { version: 1, spi, key: AssociationKey::new([7; 32]) }
}

/// 1,000 packets for each association, and the next is asked for at 75.
fn sending() -> Sending {
    Sending::new(KeyLimits::new(1_000, 75, 1 << 10).unwrap())
}

#[test]
fn nothing_leaves_before_the_peer_has_told_an_association() {
    let mut sending = sending();
    assert_eq!(sending.handle(), None);
    assert!(sending.ask(at(0), INTERVAL).is_none());
}

#[test]
fn a_newer_one_takes_the_place_of_the_older_and_an_older_one_does_not() {
    let toy = Arc::new(PacketSealer::new(1));
    let device: Arc<dyn Associations> = Arc::clone(&toy) as _;
    let mut sending = sending();
    for (serial, handle) in [(1, 1), (1, 1), (3, 2), (2, 2)] {
        sending.take(serial, association(serial), &device).unwrap();
        assert_eq!(toy.installed(), [AssociationHandle(handle)]);
    }
    drop(sending);
    assert!(toy.installed().is_empty());
}

#[test]
fn the_association_in_use_makes_room_for_the_next() {
    let toy = Arc::new(PacketSealer::new(1));
    let device: Arc<dyn Associations> = Arc::clone(&toy) as _;
    let mut sending = sending();
    sending.take(1, association(9), &device).unwrap();
    toy.set_left(0);
    assert_eq!(sending.take(2, association(10), &device), Err(NotInstalled::NoRoom));
    assert!(toy.installed().is_empty());
    assert_eq!(sending.handle(), None);
    toy.set_left(1);
    sending.take(2, association(10), &device).unwrap();
    assert!(sending.handle().is_some());
}

// SMT [15.4-11], [15.4-12]
#[test]
fn the_next_is_asked_for_in_time_and_nothing_leaves_beyond_the_limit() {
    let toy = Arc::new(PacketSealer::new(1));
    let device: Arc<dyn Associations> = toy;
    let mut sending = sending();
    sending.take(1, association(9), &device).unwrap();
    sending.count(74);
    assert!(sending.ask(at(0), INTERVAL).is_none());
    sending.count(1);
    let asked = sending.ask(at(0), INTERVAL).unwrap();
    assert_eq!((asked.serial, asked.is_again), (1, false));
    assert!(sending.ask(at(4), INTERVAL).is_none());
    assert!(sending.ask(at(5), INTERVAL).unwrap().is_again);
    sending.count(1_000 - 76);
    assert!(sending.handle().is_some());
    assert_eq!(sending.left(), 1);
    sending.count(1);
    assert_eq!(sending.handle(), None);
    sending.take(2, association(10), &device).unwrap();
    assert!(sending.handle().is_some());
    assert_eq!(sending.due(), None);
}
