// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets out: segmentation, then numbers, padding and ICV by the device.

use smt_nic::completion::Status;
use smt_nic::descriptor::{ContextId, Work};
use smt_nic::esp::EspSuite;

use super::host::EspHost;
use super::software::{Agreed, header, payload};

#[test]
fn packets_of_a_segment_are_those_that_software_seals_byte_for_byte() {
    for suite in EspSuite::ALL {
        for (is_v4, is_tcp, is_extended) in cases() {
            let agreed = Agreed { is_extended, ..Agreed::new(suite) };
            let (mut host, mut software) = (EspHost::sender(), agreed.sealer());
            assert_eq!(host.add_outbound(&agreed), Status::Done);
            // Lengths of all remainders that padding knows.
            for bytes in [1, 2, 3, 4, 999, 1_001, 4_000] {
                let (header, payload) = (header(is_v4, is_tcp, 9, 7), payload(bytes));
                let (status, cut) = host.send(None, &header, &payload, 1_000);
                assert_eq!((status, cut.len()), (Status::Done, bytes.div_ceil(1_000)));
                let (status, sealed) = host.send(Some(agreed.context()), &header, &payload, 1_000);
                assert_eq!(status, Status::Done);
                let expected: Vec<Vec<u8>> = cut.iter().map(|of| software.seal(of)).collect();
                assert_eq!(sealed, expected, "{suite:?}, {bytes} bytes, IPv4: {is_v4}");
            }
            assert_eq!(host.nic.counters().records_sealed, 5 + 2 + 4);
        }
    }
}

fn cases() -> impl Iterator<Item = (bool, bool, bool)> {
    let bit = |number: u8, at: u8| number >> at & 1 == 1;
    (0..8).map(move |number| (bit(number, 0), bit(number, 1), bit(number, 2)))
}

#[test]
fn the_number_of_a_packet_goes_on_beyond_32_bits_and_its_upper_half_is_authenticated() {
    for suite in EspSuite::ALL {
        let agreed = Agreed { first: (1 << 32) - 2, ..Agreed::new(suite) };
        let (mut host, mut software) = (EspHost::sender(), agreed.opener());
        host.add_outbound(&agreed);
        let (header, payload) = (header(true, true, 9, 7), payload(5_000));
        let (_, sealed) = host.send(Some(agreed.context()), &header, &payload, 1_000);
        let opened: Vec<u8> = sealed
            .iter()
            .flat_map(|packet| software.open(packet).unwrap()[40..].to_vec())
            .collect();
        assert_eq!(opened, payload);
        let next = host.nic.context(agreed.context()).unwrap().number();
        assert_eq!(next, Some((1 << 32) + 3));
    }
}

#[test]
fn a_segment_that_needs_more_numbers_than_are_left_is_refused_whole() {
    for (is_extended, last) in [(false, u64::from(u32::MAX)), (true, u64::MAX)] {
        let agreed = Agreed { is_extended, first: last - 1, ..Agreed::new(EspSuite::Aes128Gcm16) };
        let mut host = EspHost::sender();
        assert_eq!(host.add_outbound(&agreed), Status::Done);
        let mut send = |bytes| {
            let (header, payload) = (header(true, true, 9, 7), payload(bytes));
            host.send(Some(agreed.context()), &header, &payload, 1_000)
        };
        assert_eq!(send(3_000), (Status::NumbersUsedUp, vec![]));
        let (status, packets) = send(2_000);
        assert_eq!((status, packets.len()), (Status::Done, 2));
        assert_eq!(packets[1][24..28], (last as u32).to_be_bytes());
        for _ in 0..2 {
            assert_eq!(send(1), (Status::NumbersUsedUp, vec![]));
        }
    }
}

#[test]
fn nothing_leaves_in_the_clear_once_the_association_was_removed_under_traffic() {
    let agreed = Agreed::new(EspSuite::Aes256Gcm16);
    let mut host = EspHost::sender();
    host.add_outbound(&agreed);
    let (header, payload) = (header(true, true, 9, 7), payload(3_000));
    let context = agreed.context();
    assert_eq!(host.send(Some(context), &header, &payload, 1_000).1.len(), 3);
    assert_eq!(host.work(Work::Destroy { context }).0, Status::Done);
    let refused = host.send(Some(context), &header, &payload, 1_000);
    assert_eq!(refused, (Status::UnknownContext, vec![]));
}

#[test]
fn a_resync_takes_the_number_forward_and_never_back() {
    let agreed = Agreed { first: 50, ..Agreed::new(EspSuite::Aes128Ccm8) };
    let mut host = EspHost::sender();
    host.add_outbound(&agreed);
    let context = agreed.context();
    for (number, next) in [(49, 50), (1, 50), (60, 60), (59, 60), (u64::MAX, u64::MAX)] {
        assert_eq!(host.work(Work::Resync { context, number }).0, Status::Done);
        let now = host.nic.context(context).unwrap().number();
        assert_eq!(now, Some(next), "after a resync to {number}");
    }
}

#[test]
fn a_segment_that_was_refused_uses_no_number_and_leaves_the_association() {
    let agreed = Agreed::new(EspSuite::Aes128Gcm16);
    let mut host = EspHost::sender();
    host.add_outbound(&agreed);
    let context = Some(agreed.context());
    let good = host.segment(context, &header(true, true, 9, 7), &payload(100), 0);
    let mut nowhere = good;
    nowhere.payload = u64::MAX - 10;
    let mut short = good;
    short.header_bytes -= 4;
    for (work, status) in [(nowhere, Status::DmaFault), (short, Status::BadHeaders)] {
        assert_eq!(host.work(Work::Segment(work)), (status, vec![]));
        let next = host.nic.context(agreed.context()).unwrap().number();
        assert_eq!(next, Some(1));
    }
    assert_eq!(host.work(Work::Segment(good)).1.len(), 1);
}

#[test]
fn a_packet_that_no_length_of_ip_can_tell_once_it_is_sealed_is_refused() {
    let agreed = Agreed::new(EspSuite::Aes128Gcm16);
    let mut host = EspHost::sender();
    host.add_outbound(&agreed);
    let header = header(true, true, 9, 7);
    // Header, IV, trailer and ICV are 36 bytes here.
    for (bytes, status) in
        [(65_535 - 40 - 35, Status::BadPayload), (65_532 - 40 - 36, Status::Done)]
    {
        let (told, packets) = host.send(Some(agreed.context()), &header, &payload(bytes), 0);
        assert_eq!((told, packets.len()), (status, usize::from(status == Status::Done)));
    }
}

#[test]
fn a_packet_that_software_has_sealed_is_sent_as_it_is_and_not_cut() {
    let agreed = Agreed::new(EspSuite::Aes128Gcm16);
    let (mut host, mut software) = (EspHost::sender(), agreed.sealer());
    let clear = [header(true, true, 9, 7), payload(500)].concat();
    let (_, cut) = host.send(None, &clear[..40], &clear[40..], 0);
    let sealed = software.seal(&cut[0]);
    let (status, packets) = host.send(None, &sealed[..28], &sealed[28..], 0);
    assert_eq!((status, packets), (Status::Done, vec![sealed.clone()]));
    let refused = host.send(None, &sealed[..28], &sealed[28..], 100);
    assert_eq!(refused, (Status::BadHeaders, vec![]));
}

#[test]
fn a_block_of_a_reserved_spi_an_unknown_suite_or_no_number_is_refused() {
    let mut host = EspHost::sender();
    let good = Agreed { is_extended: false, ..Agreed::new(EspSuite::Aes128Gcm16) };
    let mut blocks = [good.block(); 5];
    blocks[0][40..44].copy_from_slice(&255_u32.to_be_bytes());
    blocks[1][3] = 5;
    blocks[2][44..52].fill(0);
    blocks[3][44..52].copy_from_slice(&(1_u64 << 32).to_be_bytes());
    blocks[4][0] = 9;
    for (place, block) in blocks.iter().enumerate() {
        let status = host.create(ContextId(7), block);
        assert_eq!(status, Status::BadContextBlock, "block {place}");
    }
    assert_eq!(host.create(ContextId(7), &good.block()), Status::Done);
}
