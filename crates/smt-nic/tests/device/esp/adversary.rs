// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An attacker on the wire: replays, forgeries, cut packets, other SPIs.

use hmac::{Hmac, KeyInit, Mac};
use proptest::prelude::*;
use sha2::Sha256;
use smt_nic::esp::EspSuite;

use super::host::EspHost;
use super::software::{Agreed, header, payload};

/// A packet of TCP in the clear, with its checksums.
fn clear(bytes: usize) -> Vec<u8> {
    let header = header(true, true, 9, 7);
    EspHost::sender().send(None, &header, &payload(bytes), 0).1.remove(0)
}

#[test]
fn a_replayed_packet_is_dropped_and_counted() {
    for suite in EspSuite::ALL {
        // An extended number below the window is one of the next 2^32, and does not authenticate.
        let agreed = Agreed { is_extended: false, ..Agreed::new(suite) };
        let (mut host, mut software) = (EspHost::new(), agreed.sealer());
        host.add_inbound(&agreed).unwrap();
        let packets: Vec<Vec<u8>> = {
            let clear = clear(30);
            (0..100).map(|_| software.seal(&clear)).collect()
        };
        assert_eq!(host.receive(&packets[1..2]).len(), 1);
        assert_eq!(host.receive(&packets[1..2]).len(), 0);
        assert_eq!(host.receive(&packets[99..]).len(), 1);
        // Number 2 again, and number 1, which is fresh and below the window of 64.
        assert_eq!(host.receive(&packets[..2]).len(), 0);
        let counters = host.nic.counters();
        assert_eq!((counters.esp_opened, counters.esp_replayed), (2, 3));
    }
}

#[test]
fn a_forged_packet_is_dropped_and_moves_no_window() {
    for suite in EspSuite::ALL {
        let agreed = Agreed::new(suite);
        let (mut host, mut software) = (EspHost::new(), agreed.sealer());
        host.add_inbound(&agreed).unwrap();
        let sealed = software.seal(&clear(30));
        // Each bit behind the SPI, the numbers far ahead among them.
        for bit in 24 * 8..sealed.len() * 8 {
            let mut forged = sealed.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(host.receive(&[forged]), [], "{suite:?}, bit {bit}");
        }
        let counters = *host.nic.counters();
        assert_eq!(counters.esp_opened, 0);
        let refused = counters.esp_not_authentic + counters.esp_replayed;
        assert_eq!(refused, (sealed.len() as u64 - 24) * 8);
        // No window has moved: the packet itself is opened.
        assert_eq!(host.receive(&[sealed]).len(), 1);
        assert_eq!(host.nic.remove_association(agreed.spi).unwrap().highest, 1);
    }
}

#[test]
fn a_packet_with_a_broken_ipv4_header_is_dropped_and_moves_no_window() {
    let agreed = Agreed::new(EspSuite::Aes128Gcm16);
    let mut host = EspHost::new();
    host.add_inbound(&agreed).unwrap();
    let sealed = agreed.sealer().seal(&clear(30));
    // All but version, lengths, fragments and protocol: traffic class, identification, time to
    // live, checksum and addresses, which transport mode does not authenticate.
    let places: Vec<usize> = [1, 4, 5, 8].into_iter().chain(10..20).collect();
    for place in &places {
        for bit in 0..8 {
            let mut broken = sealed.clone();
            broken[*place] ^= 1 << bit;
            assert_eq!(host.receive(&[broken]), [], "bit {bit} of byte {place}");
        }
    }
    let counters = *host.nic.counters();
    assert_eq!(counters.esp_malformed, places.len() as u64 * 8);
    assert_eq!((counters.esp_opened, counters.esp_replayed), (0, 0));
    assert_eq!(host.receive(&[sealed]).len(), 1);
}

#[test]
fn a_packet_of_another_key_or_of_numbers_of_another_kind_is_dropped() {
    for suite in EspSuite::ALL {
        let agreed = Agreed::new(suite);
        let mut host = EspHost::new();
        // The keys of another SPI.
        let other = Agreed { spi: 0x1002, ..agreed };
        host.add_inbound(&agreed).unwrap();
        let mut packet = other.sealer().seal(&clear(30));
        packet[20..24].copy_from_slice(&agreed.spi.to_be_bytes());
        assert_eq!(host.receive(&[packet]), []);
        let short = Agreed { is_extended: false, ..agreed };
        let packet = short.sealer().seal(&clear(30));
        assert_eq!(host.receive(&[packet]), []);
        assert_eq!(host.nic.counters().esp_not_authentic, 2);
    }
}

#[test]
fn a_packet_that_was_cut_is_never_marked() {
    for suite in EspSuite::ALL {
        let agreed = Agreed::new(suite);
        let (mut host, mut software) = (EspHost::new(), agreed.sealer());
        host.add_inbound(&agreed).unwrap();
        let sealed = software.seal(&clear(30));
        for bytes in 0..sealed.len() {
            let cut = sealed[..bytes].to_vec();
            // As it was cut on its way, and with a length that says so.
            let mut told = cut.clone();
            if bytes >= 20 {
                told[2..4].copy_from_slice(&(bytes as u16).to_be_bytes());
            }
            let arrived = host.receive(&[cut.clone(), told.clone()]);
            let is_dropped = bytes >= 28;
            let expected = if is_dropped { vec![] } else { vec![cut, told] };
            let packets: Vec<_> = arrived.iter().map(|of| of.packet.clone()).collect();
            assert_eq!(packets, expected, "{bytes} bytes");
            assert!(arrived.iter().all(|of| of.spi == 0));
        }
        assert_eq!(host.receive(&[sealed])[0].spi, agreed.spi);
    }
}

#[test]
fn a_packet_of_an_spi_that_the_device_does_not_know_goes_up_as_it_came() {
    let agreed = Agreed::new(EspSuite::Aes256Gcm16);
    let mut host = EspHost::new();
    host.add_inbound(&agreed).unwrap();
    let mut packet = agreed.sealer().seal(&clear(30));
    packet[23] ^= 1;
    let arrived = host.receive(std::slice::from_ref(&packet));
    assert_eq!((arrived[0].spi, &arrived[0].packet), (0, &packet));
    assert_eq!(host.nic.counters().esp_unknown, 1);
}

#[test]
fn a_fragment_of_esp_goes_up_as_it_came() {
    let agreed = Agreed::new(EspSuite::Aes256Gcm16);
    let mut host = EspHost::new();
    host.add_inbound(&agreed).unwrap();
    let mut packet = agreed.sealer().seal(&clear(30));
    packet[6] |= 0x20;
    let arrived = host.receive(std::slice::from_ref(&packet));
    assert_eq!((arrived[0].spi, &arrived[0].packet), (0, &packet));
}

#[test]
fn packets_go_up_sealed_once_the_association_was_removed_under_traffic() {
    let agreed = Agreed::new(EspSuite::Aes128Gcm16);
    let (mut host, mut software) = (EspHost::new(), agreed.sealer());
    host.add_inbound(&agreed).unwrap();
    let packets: Vec<Vec<u8>> = (0..6).map(|_| software.seal(&clear(30))).collect();
    assert_eq!(host.receive(&packets[..3]).len(), 3);
    let removed = host.nic.remove_association(agreed.spi).unwrap();
    assert_eq!((removed.highest, removed.opened), (3, 3));
    // Software goes on with the numbers that the device has not seen, and takes none twice.
    let mut opener = Agreed { first: removed.highest + 1, ..agreed }.opener();
    let arrived = host.receive(&packets);
    let opened: Vec<bool> =
        arrived.iter().map(|of| of.spi == 0 && opener.open(&of.packet).is_ok()).collect();
    assert_eq!(opened, [false, false, false, true, true, true]);
}

/// A peer that has the keys writes padding that is none.
#[test]
fn an_authentic_packet_with_wrong_padding_is_dropped_and_its_number_taken() {
    let agreed = Agreed::new(EspSuite::NullHmacSha256);
    let (mut host, mut software) = (EspHost::new(), agreed.sealer());
    host.add_inbound(&agreed).unwrap();
    let sealed = software.seal(&clear(30));
    let mut bad = sealed.clone();
    let text = bad.len() - 16;
    bad[text - 2] = 200;
    let key: Vec<u8> = agreed.with_inbound(|of| of.material.to_vec());
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    mac.update(&bad[20..text]);
    mac.update(&[0; 4]);
    bad[text..].copy_from_slice(&mac.finalize().into_bytes()[..16]);
    assert_eq!(host.receive(&[bad, sealed]), []);
    let counters = host.nic.counters();
    assert_eq!((counters.esp_malformed, counters.esp_replayed), (1, 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Lost, repeated and disordered packets, some of them changed, at borders of 32 bits.
    #[test]
    fn the_device_opens_a_packet_if_and_only_if_software_does(
        first in prop_oneof![Just(1_u64), Just((1 << 32) - 40), Just((7 << 32) - 40)],
        suite in 0..4_usize,
        steps in prop::collection::vec((0..160_usize, 0..8_u8), 1..120),
    ) {
        let agreed = Agreed { first, ..Agreed::new(EspSuite::ALL[suite]) };
        let (mut host, mut sealer, mut opener) = (EspHost::new(), agreed.sealer(), agreed.opener());
        host.add_inbound(&agreed).unwrap();
        let clear = clear(10);
        let sealed: Vec<Vec<u8>> = (0..160).map(|_| sealer.seal(&clear)).collect();
        for (at, change) in steps {
            let mut packet = sealed[at].clone();
            if change == 0 {
                let place = 24 + at % (packet.len() - 24);
                packet[place] ^= 0x80;
            }
            let opened = opener.open(&packet);
            let arrived = host.receive(&[packet]);
            prop_assert_eq!(arrived.len(), usize::from(opened.is_ok()));
            if let Ok(opened) = opened {
                prop_assert_eq!(&arrived[0].packet, &opened);
            }
        }
    }
}
