// SPDX-License-Identifier: Apache-2.0 OR MIT
use proptest::prelude::*;
use smt_nic::psp::{MasterKey, MasterKeys, PspVersion, SendContext};

use super::host::{CONTEXT, PspHost, data, ip_bytes, pair, payload};
use crate::support::SMT;

// SMT [15.3-9]
#[test]
fn no_packet_with_a_changed_bit_is_opened() {
    for is_v4 in [true, false] {
        let (mut near, mut far, association) = pair();
        let (_, packets) = near.send(Some(CONTEXT), &data(is_v4, 40, 0), &payload(40), 0);
        let packet = &packets[0];
        let native = [data(is_v4, 40, 0), payload(40)].concat();
        let at = ip_bytes(is_v4);
        for bit in 0..packet.len() * 8 {
            let mut changed = packet.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let arrived = far.receive(&[changed.clone()]);
            // IPv6's addresses and class, UDP's source port and its checksum protect nothing: the
            // ICV covers what is behind UDP.
            let place = bit / 8;
            let is_outside =
                place < at || (at..at + 2).contains(&place) || (at + 6..at + 8).contains(&place);
            match &arrived[..] {
                [] => {}
                [came] if came.psp.is_none() => assert_eq!(came.packet, changed, "bit {bit}"),
                [came] => {
                    assert!(is_outside && (place >= at || !is_v4), "bit {bit}");
                    assert_eq!(came.packet[at..], native[at..]);
                }
                _ => panic!("one packet came"),
            }
        }
        let arrived = far.receive(packets.as_slice());
        assert_eq!(arrived[0].psp, Some(association.spi));
    }
}

#[test]
fn a_forged_packet_is_dropped_and_counted() {
    let (mut near, mut far, _) = pair();
    let (_, mut packets) = near.send(Some(CONTEXT), &data(true, 90, 0), &payload(90), 0);
    *packets[0].last_mut().unwrap() ^= 1;
    assert!(far.receive(&packets).is_empty());
    assert_eq!(far.nic.counters().psp_not_authentic, 1);
}

#[test]
fn a_packet_that_the_device_cannot_know_goes_up_as_it_came_without_a_mark() {
    let (mut near, mut far, _) = pair();
    let (_, packets) = near.send(Some(CONTEXT), &data(true, 90, 0), &payload(90), 0);
    let changed = |at: usize, byte: u8| {
        let mut packet = packets[0].clone();
        packet[at] = byte;
        packet
    };
    let unknown = [changed(28, 6), changed(29, 0), changed(31, 0x09), changed(32, 0x80)];
    for (count, packet) in (1..).zip(unknown) {
        let arrived = far.receive(std::slice::from_ref(&packet));
        assert_eq!((arrived[0].psp, &arrived[0].packet), (None, &packet));
        assert_eq!(far.nic.counters().psp_unknown, count);
    }
    let mut without_key = PspHost::with_engine(smt_nic::psp::PspEngine, 1, 1);
    let arrived = without_key.receive(&packets);
    assert_eq!((arrived[0].psp, &arrived[0].packet), (None, &packets[0]));
    assert_eq!(without_key.nic.counters().psp_unknown, 0);
}

/// A packet that its sender has sealed rightly around these bytes.
fn sealed_around(native: &[u8], context: &mut SendContext) -> Vec<u8> {
    let mut packet = data(true, 0, 0)[..20].to_vec();
    packet[9] = 17;
    packet.extend([0xC0, 0, 3, 0xE8, 0, 0, 0, 0]);
    context.seal(SMT, 0, native, &mut packet).unwrap();
    let (whole, udp) = (packet.len() as u16, packet.len() as u16 - 20);
    packet[2..4].copy_from_slice(&whole.to_be_bytes());
    packet[24..26].copy_from_slice(&udp.to_be_bytes());
    let sum: u32 =
        packet[..20].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    let checksum = !(((sum & 0xFFFF) + (sum >> 16)) as u16);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet
}

#[test]
fn an_authentic_packet_that_is_no_native_one_that_has_left_alone_is_dropped() {
    let mut far = PspHost::receiver();
    let association = far.allocate();
    let mut context = SendContext::new(association);
    let marked = &data(true, 90, 10)[20..];
    let alone = &data(true, 90, 0)[20..];
    for (native, opened) in [(marked, 0), (&alone[..19], 0), (&[], 0), (alone, 1)] {
        let arrived = far.receive(&[sealed_around(native, &mut context)]);
        assert_eq!(arrived.len(), opened);
    }
    assert_eq!(far.nic.counters().psp_malformed, 3);
}

#[test]
fn a_packet_with_broken_headers_before_psp_is_dropped() {
    let (mut near, mut far, _) = pair();
    let (_, packets) = near.send(Some(CONTEXT), &data(true, 90, 0), &payload(90), 0);
    for at in [2, 8, 11, 24, 25] {
        let mut packet = packets[0].clone();
        packet[at] ^= 1;
        assert!(far.receive(&[packet]).is_empty(), "byte {at}");
    }
    assert_eq!(far.nic.counters().psp_malformed, 5);
}

proptest! {
    #[test]
    fn no_bytes_at_the_port_of_psp_panic_or_are_marked(
        bytes in prop::collection::vec(any::<u8>(), 0..120),
        is_v4: bool,
        looks_right: bool,
    ) {
        let mut far = PspHost::receiver();
        let mut packet = data(is_v4, 0, 0)[..ip_bytes(is_v4)].to_vec();
        packet[if is_v4 { 9 } else { 6 }] = 17;
        packet.extend([0xC0, 0, 3, 0xE8]);
        packet.extend(bytes);
        if looks_right && packet.len() > 70 {
            let at = ip_bytes(is_v4);
            packet[at + 8..at + 12].copy_from_slice(&[SMT, 1, 0, 1]);
            packet[at + 12] &= 0x7F;
            let (whole, udp) = (packet.len(), (packet.len() - at) as u8);
            packet[at + 4..at + 6].copy_from_slice(&[0, udp]);
            match is_v4 {
                true => packet[2..4].copy_from_slice(&(whole as u16).to_be_bytes()),
                false => packet[5] = udp,
            }
        }
        for arrived in far.receive(&[packet]) {
            prop_assert_eq!(arrived.psp, None);
        }
        prop_assert_eq!(far.nic.counters().psp_opened, 0);
    }

    #[test]
    fn a_packet_is_opened_by_the_device_if_and_only_if_its_keys_open_it(
        change in prop::option::of((28_usize..200, 1_u8..)),
    ) {
        let mut keys = MasterKeys::new(MasterKey::new([7; 32]));
        let association = keys.allocate(PspVersion::AesGcm128).unwrap();
        let mut packet = sealed_around(&[&data(true, 90, 0)[20..], &payload(90)].concat(), &mut SendContext::new(association));
        if let Some((at, bits)) = change {
            let at = at.min(packet.len() - 1);
            packet[at] ^= bits;
        }
        let mut far = PspHost::receiver();
        let marked = far.receive(&[packet.clone()]).iter().any(|of| of.psp.is_some());
        let opened = keys.open(&mut packet[28..]);
        prop_assert_eq!(marked, opened.is_ok());
    }
}
