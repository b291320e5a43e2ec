// SPDX-License-Identifier: Apache-2.0 OR MIT
use smt_carrier::{Arrival, Carrier, Sealing, Wait};
use smt_nic::psp::{MasterKey, PspEngine};
use smt_nic::tls::TlsEngine;
use smt_nic_driver::DriverConfig;

use super::pair::{Pair, control, is_message};

#[test]
fn batches_under_an_association_arrive_with_its_spi_and_leave_sealed() {
    for (is_v4, bytes) in [(true, 20_000), (true, 30), (false, 2_000)] {
        let pair = Pair::with(is_v4, 1_000);
        let (handle, spi) = pair.associate();
        pair.send(Some(handle), 6, bytes);
        pair.send_control(Some(handle));
        let (clear, sealed) = pair.watch.counts();
        assert!(clear == 0 && sealed > 2);
        let arrived = pair.receive();
        assert!(is_message(&arrived, Some(spi), 6, bytes));
        assert!(arrived.contains(&(Some(spi), control())));
        let statistics = pair.near.statistics();
        assert_eq!((statistics.psp_contexts_created, statistics.lost), (1, 0));
        assert_eq!(statistics.packets_in_software, 0);
        assert_eq!(pair.far.counters().psp_opened, sealed as u64);
    }
}

#[test]
fn a_packet_without_an_association_arrives_without_an_spi_between_those_that_have_one() {
    let pair = Pair::new();
    let (handle, spi) = pair.associate();
    pair.send(None, 4, 5_000);
    pair.send(Some(handle), 6, 5_000);
    pair.send_control(None);
    let (clear, sealed) = pair.watch.counts();
    assert_eq!((clear, sealed), (5, 4));
    let arrived = pair.receive();
    assert!(is_message(&arrived, None, 4, 5_000) && is_message(&arrived, Some(spi), 6, 5_000));
    assert!(arrived.contains(&(None, control())));
}

#[test]
fn two_associations_of_one_path_keep_their_packets_apart() {
    let pair = Pair::new();
    let [(one, first), (other, second)] = [0; 2].map(|_| pair.associate());
    for round in 0..3 {
        pair.send(Some(one), 6 + 4 * round, 4_000);
        pair.send(Some(other), 8 + 4 * round, 4_000);
    }
    let arrived = pair.receive();
    for round in 0..3 {
        assert!(is_message(&arrived, Some(first), 6 + 4 * round, 4_000));
        assert!(is_message(&arrived, Some(second), 8 + 4 * round, 4_000));
    }
}

#[test]
fn an_association_is_allocated_while_an_arrival_is_handed_over() {
    let pair = Pair::new();
    pair.send_control(None);
    let associations = pair.far.associations().unwrap();
    let mut allocated = Vec::new();
    let mut sink = |_: Arrival<'_>| allocated.push(associations.allocate(1));
    pair.far.receive(&mut sink, Wait::Never).unwrap();
    let association = allocated.remove(0).unwrap();
    let handle = pair.near.associations().unwrap().install(association).unwrap();
    pair.send(Some(handle), 6, 3_000);
    assert_eq!(pair.far.counters().psp_opened, 0);
    assert!(pair.receive().iter().all(|(spi, _)| spi.is_some()));
}

#[test]
fn allocated_associations_are_as_many_as_were_taken_since_the_last_call() {
    let pair = Pair::new();
    let associations = pair.far.associations().unwrap();
    let mut spis = std::collections::BTreeSet::new();
    for _ in 0..10 {
        while let Ok(association) = associations.allocate(0) {
            assert!(spis.insert(association.spi), "an SPI is given twice");
        }
        pair.receive();
    }
    assert_eq!(spis.len(), 320);
}

#[test]
fn a_device_without_the_engine_leaves_all_sealing_to_software() {
    let config = DriverConfig { psp: true, ..DriverConfig::default() };
    for is_v4 in [true, false] {
        let pair = Pair::of(is_v4, config, 100, TlsEngine);
        let (handle, spi) = pair.associate();
        for id in [6, 8] {
            pair.send(Some(handle), id, 2_500);
            pair.send_control(Some(handle));
            let arrived = pair.receive();
            assert!(is_message(&arrived, Some(spi), id, 2_500));
            assert!(arrived.contains(&(Some(spi), control())));
        }
        let (clear, sealed) = pair.watch.counts();
        let statistics = pair.near.statistics();
        assert_eq!((clear, statistics.packets_in_software), (0, sealed as u64));
        assert_eq!(statistics.lost, 0);
    }
}

#[test]
fn a_carrier_has_psp_if_it_was_chosen_and_its_device_is_trusted() {
    let engines = || (TlsEngine, PspEngine);
    let (off, on) =
        (DriverConfig::default(), DriverConfig { psp: true, ..DriverConfig::default() });
    let untrusted = DriverConfig { is_trusted: false, ..on };
    let [with, others @ ..] =
        [on, off, untrusted].map(|config| Pair::of(true, config, 9, engines()));
    let capabilities = with.near.capabilities();
    assert!(capabilities.seals_packets && with.near.associations().is_some());
    for pair in others {
        pair.near.rotate_device_key(MasterKey::new([5; 32]));
        assert!(pair.near.associations().is_none());
        let of = pair.near.capabilities();
        assert!(!of.seals_packets);
        assert_eq!(of.datagram_max, capabilities.datagram_max + 40);
        assert_eq!(of.seals == Sealing::No, pair.near.keys().is_none());
    }
}

#[test]
fn the_longest_datagram_fits_the_packets_that_leave() {
    for is_v4 in [true, false] {
        let pair = Pair::with(is_v4, 10);
        let (handle, spi) = pair.associate();
        let payload = pair.near.capabilities().datagram_max - 36;
        pair.send(Some(handle), 6, payload.min(1_300));
        assert!(is_message(&pair.receive(), Some(spi), 6, payload.min(1_300)));
        let ip_and_native = if is_v4 { 28 } else { 48 };
        assert_eq!(payload + 36 + ip_and_native + 40, 1_500);
    }
}
