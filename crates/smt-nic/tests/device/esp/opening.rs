// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets in: opened, marked, and merged after that.

use smt_nic::esp::{EspSuite, EspTableError};

use super::host::{Arrival, EspHost};
use super::software::{Agreed, Sealer, header, payload};

/// The packets of a segment of TCP, cut by a device, and in software sealed.
fn sealed_by(
    software: &mut Sealer,
    is_v4: bool,
    port: u16,
    sequence: u32,
    bytes: usize,
) -> Vec<Vec<u8>> {
    let clear = cut(is_v4, port, sequence, bytes);
    clear.iter().map(|packet| software.seal(packet)).collect()
}

fn cut(is_v4: bool, port: u16, sequence: u32, bytes: usize) -> Vec<Vec<u8>> {
    let header = header(is_v4, true, port, sequence);
    let mut host = EspHost::sender();
    host.send(None, &header, &payload(bytes), 1_000).1
}

#[test]
fn packets_that_software_sealed_are_opened_marked_and_merged_to_the_segment() {
    for suite in EspSuite::ALL {
        for (is_v4, is_extended) in [(true, true), (false, false), (true, false), (false, true)] {
            let agreed = Agreed { is_extended, ..Agreed::new(suite) };
            let mut host = EspHost::new();
            host.add_inbound(&agreed).unwrap();
            let sealed = sealed_by(&mut agreed.sealer(), is_v4, 9, 7, 9_500);
            let arrived = host.receive(&sealed);
            let [Arrival { packet, packets: 10, spi: 0x1001, .. }] = &arrived[..] else {
                panic!("{suite:?}: {} arrivals", arrived.len());
            };
            // The segment before it was cut, with checksums that are right.
            let header = header(is_v4, true, 9, 7);
            let whole = EspHost::sender().send(None, &header, &payload(9_500), 0).1;
            assert_eq!(packet, &whole[0]);
        }
    }
}

#[test]
fn a_segment_of_udp_is_opened_packet_by_packet() {
    let agreed = Agreed::new(EspSuite::Aes256Gcm16);
    let (mut host, mut software) = (EspHost::new(), agreed.sealer());
    host.add_inbound(&agreed).unwrap();
    let header = header(false, false, 9, 0);
    let (_, clear) = host.send(None, &header, &payload(2_500), 1_000);
    let sealed: Vec<Vec<u8>> = clear.iter().map(|packet| software.seal(packet)).collect();
    let opened = host.receive(&sealed).into_iter().map(|of| of.packet);
    assert_eq!(opened.collect::<Vec<_>>(), clear);
}

#[test]
fn an_opened_packet_never_joins_one_that_came_in_the_clear_or_by_another_association() {
    let agreed = Agreed::new(EspSuite::Aes128Gcm16);
    let other = Agreed { spi: 0x1005, ..agreed };
    // All come to one queue.
    let mut host = EspHost::with(16, 1);
    host.add_inbound(&agreed).unwrap();
    host.add_inbound(&other).unwrap();
    // Three segments of one stream that follow each other, without PSH.
    let clear = &cut(true, 9, 7, 4_000)[..3];
    let packets =
        [agreed.sealer().seal(&clear[0]), clear[1].clone(), other.sealer().seal(&clear[2])];
    let mut arrived = host.receive(&packets);
    arrived.sort_by_key(|of| of.spi);
    let seen: Vec<_> = arrived.iter().map(|of| (of.spi, of.packets, &of.packet)).collect();
    let expected = [(0, 1, &clear[1]), (0x1001, 1, &clear[0]), (0x1005, 1, &clear[2])];
    assert_eq!(seen, expected);
}

#[test]
fn streams_of_one_association_have_one_queue_and_associations_are_spread() {
    let mut host = EspHost::new();
    let mut queues = std::collections::BTreeSet::new();
    for spi in 0x2000..0x2010 {
        let agreed = Agreed { spi, ..Agreed::new(EspSuite::NullHmacSha256) };
        let mut software = agreed.sealer();
        let packets: Vec<Vec<u8>> =
            (1..=4).flat_map(|port| sealed_by(&mut software, true, port, 7, 900)).collect();
        // In software at first: the device knows nothing of the association.
        let as_it_came = host.receive(&packets[..2]);
        let added = host.add_inbound(&agreed);
        assert_eq!(added, Ok(()));
        let opened = host.receive(&packets[2..]);
        assert!(as_it_came.iter().all(|of| of.spi == 0) && opened.iter().all(|of| of.spi == spi));
        let all: Vec<u16> = as_it_came.iter().chain(&opened).map(|of| of.queue).collect();
        assert_eq!(all, [all[0]; 4], "the queues of SPI {spi:#x}");
        queues.insert(all[0]);
    }
    assert!(queues.len() > 1, "all associations have one queue");
}

#[test]
fn a_dummy_ends_in_the_device() {
    let agreed = Agreed::new(EspSuite::Aes128Ccm8);
    let (mut host, mut software) = (EspHost::new(), agreed.sealer());
    host.add_inbound(&agreed).unwrap();
    let clear = &cut(true, 9, 7, 100)[0];
    let dummy = software.seal_dummy(clear);
    let packet = software.seal(clear);
    let arrived = host.receive(&[dummy, packet]);
    assert_eq!(arrived.len(), 1);
    assert_eq!(&arrived[0].packet, clear);
    assert_eq!(host.nic.counters().esp_opened, 2);
}

#[test]
fn bytes_behind_the_ip_packet_are_none_of_it() {
    let agreed = Agreed::new(EspSuite::Aes128Gcm16);
    let mut host = EspHost::new();
    host.add_inbound(&agreed).unwrap();
    let clear = cut(true, 9, 7, 1);
    let mut padded = agreed.sealer().seal(&clear[0]);
    padded.extend([0; 7]);
    assert_eq!(host.receive(&[padded])[0].packet, clear[0]);
}

#[test]
fn an_association_that_is_none_is_refused() {
    let mut host = EspHost::new();
    let good = Agreed::new(EspSuite::Aes128Gcm16);
    host.add_inbound(&good).unwrap();
    let again = host.add_inbound(&good);
    let reserved = host.add_inbound(&Agreed { spi: 255, ..good });
    let no_number = host.add_inbound(&Agreed { spi: 300, first: 0, ..good });
    let beyond = host.add_inbound(&Agreed { spi: 300, is_extended: false, first: 1 << 32, ..good });
    let wide = good.with_inbound(|association| {
        let mut wide = *association;
        (wide.spi, wide.replay_window) = (300, 65_537);
        host.nic.add_association(&wide)
    });
    let short = good.with_inbound(|association| {
        let mut short = *association;
        short.spi = 300;
        short.material = &short.material[1..];
        host.nic.add_association(&short)
    });
    assert_eq!(
        [again, reserved, no_number, beyond, wide, short],
        [
            Err(EspTableError::SpiInUse),
            Err(EspTableError::ReservedSpi),
            Err(EspTableError::BadNumber),
            Err(EspTableError::BadNumber),
            Err(EspTableError::BadWindow),
            Err(EspTableError::BadKeyLength),
        ]
    );
}

/// Traffic flow confidentiality (RFC 4303 §2.7): only UDP tells where it ends.
#[test]
fn padding_that_hides_the_length_of_a_datagram_is_taken_off() {
    let agreed = Agreed::new(EspSuite::Aes128Gcm16);
    let (mut host, mut software) = (EspHost::new(), agreed.sealer());
    host.add_inbound(&agreed).unwrap();
    let clear = &EspHost::sender().send(None, &header(true, false, 9, 0), &payload(100), 0).1[0];
    let mut longer = clear.clone();
    longer.extend([0; 60]);
    longer[2..4].copy_from_slice(&188_u16.to_be_bytes());
    let sealed = software.seal(&longer);
    let arrived = host.receive(std::slice::from_ref(&sealed));
    assert_eq!(arrived[0].packet, agreed.opener().open(&sealed).unwrap());
    assert_eq!(arrived[0].packet[20..], clear[20..]);
}
