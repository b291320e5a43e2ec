// SPDX-License-Identifier: Apache-2.0 OR MIT
use smt_nic::completion::Status;
use smt_nic::descriptor::ContextId;
use smt_nic::psp::PspVersion;

use super::host::{CONTEXT, PspHost, control, data, message, pair, payload};

#[test]
fn a_segment_arrives_as_its_message_in_any_order_of_its_packets() {
    for (is_v4, version, bytes) in [
        (true, PspVersion::AesGcm128, 20_500),
        (true, PspVersion::AesGcm256, 20_500),
        (false, PspVersion::AesGcm128, 1_500),
        (false, PspVersion::AesGcm256, 2_000),
    ] {
        for order in 0..3 {
            let (mut near, mut far) = (PspHost::sender(4), PspHost::receiver());
            let association = far.nic.allocate_psp(version).unwrap();
            assert_eq!(near.add(CONTEXT, &association, 1), Status::Done);
            let (header, payload) = (data(is_v4, bytes as u32, 1_000), payload(bytes));
            let (_, mut packets) = near.send(Some(CONTEXT), &header, &payload, 1_000);
            assert_eq!(packets.len(), bytes.div_ceil(1_000));
            match order {
                0 => {}
                1 => packets.reverse(),
                _ => packets.rotate_left(1),
            }
            let arrived = far.receive(&packets);
            assert!(arrived.iter().all(|of| of.psp == Some(association.spi)));
            assert_eq!(message(&arrived, is_v4), payload);
            assert_eq!(far.nic.counters().psp_opened, packets.len() as u64);
            if order == 0 {
                assert_eq!(arrived.len(), 1, "packets in order are merged");
            }
        }
    }
}

#[test]
fn an_opened_packet_is_the_native_one_with_its_lengths_and_checksum() {
    for is_v4 in [true, false] {
        let (mut near, mut far, _) = pair();
        for header in [data(is_v4, 500, 0), control(is_v4)] {
            let native = near.send(None, &header, &payload(500), 0).1;
            let sealed = near.send(Some(CONTEXT), &header, &payload(500), 0).1;
            let [opened, came] = [sealed, native].map(|packets| far.receive(&packets));
            assert_eq!(opened[0].packet, came[0].packet);
            assert_eq!(opened[0].queue, came[0].queue, "the queue is by what is inside");
            assert_eq!((came[0].psp, came[0].spi, opened[0].spi), (None, 0, 0));
        }
    }
}

#[test]
fn the_place_of_a_sealed_packet_is_not_in_the_header_of_ip() {
    let (mut near, mut far, _) = pair();
    let payload = payload(4_000);
    let header = data(true, 4_000, 1_000);
    let (_, mut packets) = near.send(Some(CONTEXT), &header, &payload, 1_000);
    for packet in &mut packets {
        // A stranger on the way exchanges identifications, and makes the checksums right.
        let other = 5 - packet[5];
        let checksum = u16::from_be_bytes([packet[10], packet[11]]);
        let checksum = checksum + u16::from(packet[5]) - u16::from(other);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet[5] = other;
    }
    assert_eq!(message(&far.receive(&packets), true), payload);
}

#[test]
fn packets_of_other_associations_or_of_none_are_never_merged() {
    let (mut near, mut far, first) = pair();
    let second = far.allocate();
    assert_eq!(near.add(ContextId(2), &second, 1), Status::Done);
    let (header, payload) = (data(true, 4_000, 1_000), payload(4_000));
    let contexts = [Some(CONTEXT), Some(ContextId(2)), None];
    let sent = contexts.map(|context| near.send(context, &header, &payload, 1_000).1);
    // The packets of one message, each by another way than the one before.
    let mixed: Vec<_> = (0..4).map(|number| sent[number % 3][number].clone()).collect();
    let arrived = far.receive(&mixed);
    assert_eq!(arrived.len(), 4);
    let mut marks: Vec<_> = arrived.iter().map(|of| of.psp).collect();
    marks.sort_unstable();
    let (first, second) = (Some(first.spi), Some(second.spi));
    assert_eq!(marks, [None, first, first, second]);
}

#[test]
fn queues_of_sealed_messages_are_those_of_their_ports() {
    let (mut near, mut far, _) = pair();
    let mut queues = [false; 4];
    for port in 0..64_u16 {
        let mut header = data(true, 500, 0);
        header[20..22].copy_from_slice(&(port + 40_000).to_be_bytes());
        let [sealed, clear] =
            [Some(CONTEXT), None].map(|of| near.send(of, &header, &[5; 500], 0).1);
        let [sealed, clear] = [sealed, clear].map(|of| far.receive(&of)[0].queue);
        assert_eq!(sealed, clear);
        queues[usize::from(sealed)] = true;
    }
    assert_eq!(queues, [true; 4]);
}

#[test]
fn bytes_behind_the_ip_packet_are_none_of_it() {
    let (mut near, mut far, association) = pair();
    let (_, mut packets) = near.send(Some(CONTEXT), &data(true, 90, 0), &payload(90), 0);
    packets[0].extend([9; 11]);
    let arrived = far.receive(&packets);
    assert_eq!(arrived[0].psp, Some(association.spi));
    assert_eq!(message(&arrived, true), payload(90));
}
