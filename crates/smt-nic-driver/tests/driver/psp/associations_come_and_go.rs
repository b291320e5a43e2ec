// SPDX-License-Identifier: Apache-2.0 OR MIT
use smt_carrier::Carrier;
use smt_nic::psp::{MasterKey, PspEngine};
use smt_nic::tls::TlsEngine;
use smt_nic_driver::DriverConfig;

use super::pair::{Pair, is_message};

// SMT [15.3-4]
#[test]
fn an_association_outlives_one_rotation_and_not_two() {
    let pair = Pair::new();
    let associations = pair.far.associations().unwrap();
    let (old, old_spi) = pair.associate();
    assert_eq!(associations.rotations(), 0);
    pair.far.rotate_device_key(MasterKey::new([3; 32]));
    assert_eq!(associations.rotations(), 1);
    let (new, new_spi) = pair.associate();
    assert_eq!((old_spi >> 31, new_spi >> 31), (0, 1));
    pair.send(Some(old), 6, 3_000);
    pair.send(Some(new), 8, 3_000);
    let arrived = pair.receive();
    assert!(is_message(&arrived, Some(old_spi), 6, 3_000));
    assert!(is_message(&arrived, Some(new_spi), 8, 3_000));
    pair.far.rotate_device_key(MasterKey::new([4; 32]));
    assert_eq!(associations.rotations(), 2);
    pair.send(Some(old), 10, 3_000);
    pair.send(Some(new), 12, 3_000);
    let arrived = pair.receive();
    assert!(arrived.iter().all(|(spi, _)| *spi == Some(new_spi)));
    assert!(is_message(&arrived, Some(new_spi), 12, 3_000));
    assert_eq!(pair.far.counters().psp_not_authentic, 3);
}

#[test]
fn a_batch_under_a_removed_association_is_lost_and_its_context_is_destroyed() {
    let pair = Pair::new();
    let (handle, _) = pair.associate();
    pair.send(Some(handle), 6, 3_000);
    let before = pair.watch.counts();
    pair.near.associations().unwrap().remove(handle);
    for id in [8, 10] {
        pair.send(Some(handle), id, 3_000);
        pair.send_control(Some(handle));
    }
    assert_eq!(pair.watch.counts(), before);
    assert_eq!(pair.near.statistics().lost, 4);
    assert_eq!(pair.near.contexts(), 0);
}

#[test]
fn a_batch_under_a_handle_that_was_never_given_is_lost() {
    let pair = Pair::new();
    pair.send(Some(smt_carrier::AssociationHandle(77)), 6, 3_000);
    assert_eq!(pair.watch.counts(), (0, 0));
    assert_eq!(pair.near.statistics().lost, 1);
}

#[test]
fn a_device_that_was_reset_opens_and_seals_as_before_and_no_iv_leaves_twice() {
    let pair = Pair::new();
    let (handle, spi) = pair.associate();
    for round in 0..20_u64 {
        let id = 6 + 2 * round;
        pair.send(Some(handle), id, 4_000);
        match round % 3 {
            0 => pair.near.reset_device(),
            1 => {}
            _ => pair.far.reset_device(),
        }
        let arrived = pair.receive();
        assert!(is_message(&arrived, Some(spi), id, 4_000), "round {round}");
    }
    assert_eq!(pair.near.statistics().psp_contexts_created, 8);
}

#[test]
fn more_associations_than_the_device_has_contexts_are_served_without_loss() {
    for (device, driver) in [(3, 1_000), (1_000, 3), (0, 1_000), (1_000, 0)] {
        let config = DriverConfig { psp: true, psp_contexts: driver, ..DriverConfig::default() };
        let pair = Pair::of(true, config, device, (TlsEngine, PspEngine));
        let all: Vec<_> = (0..8).map(|_| pair.associate()).collect();
        for round in 0..5_u64 {
            for (number, (handle, spi)) in (0..).zip(&all) {
                let id = 6 + 2 * (round * 8 + number);
                pair.send(Some(*handle), id, 3_000);
                assert!(is_message(&pair.receive(), Some(*spi), id, 3_000));
            }
        }
        let statistics = pair.near.statistics();
        assert_eq!(statistics.lost, 0);
        assert!(statistics.packets_in_software > 0);
        assert_eq!(pair.near.contexts(), device.min(driver));
    }
}

#[test]
fn an_association_takes_the_place_of_one_at_rest() {
    let config = DriverConfig { psp: true, psp_contexts: 1, ..DriverConfig::default() };
    let pair = Pair::of(true, config, 1, (TlsEngine, PspEngine));
    let [(one, _), (other, spi)] = [0; 2].map(|_| pair.associate());
    pair.send(Some(one), 6, 3_000);
    for round in 0..6 {
        let id = 8 + 2 * round;
        pair.send(Some(other), id, 3_000);
        assert!(is_message(&pair.receive(), Some(spi), id, 3_000) || round == 0);
    }
    assert_eq!(pair.near.statistics().packets_in_software, 3, "the first alone");
}
