// SPDX-License-Identifier: Apache-2.0 OR MIT
use smt_nic::completion::Status;
use smt_nic::descriptor::{ContextId, Work};
use smt_nic::psp::{Association, DerivedKey, GROWTH_BYTES, PspVersion, SendContext};

use super::host::{CONTEXT, PspHost, block, control, data, ip_bytes, pair, payload};
use crate::support::SMT;

/// An association of which there may be several contexts, for a test.
fn again(of: &Association) -> Association {
    Association { spi: of.spi, version: of.version, key: DerivedKey::new(*of.key.bytes()) }
}

// SMT [15.3-5], [15.3-6]
#[test]
fn packets_are_those_that_a_sending_context_seals_behind_udp() {
    for (is_v4, version) in [(true, PspVersion::AesGcm128), (false, PspVersion::AesGcm256)] {
        let (mut near, mut far) = (PspHost::sender(4), PspHost::receiver());
        let association = far.nic.allocate_psp(version).unwrap();
        assert_eq!(near.add(CONTEXT, &association, 1), Status::Done);
        let mut software = SendContext::new(again(&association));
        for (header, words) in [(data(is_v4, 900, 0), 11), (control(is_v4), 9)] {
            let payload = payload(900);
            let (status, packets) = near.send(Some(CONTEXT), &header, &payload, 0);
            assert_eq!((status, packets.len()), (Status::Done, 1));
            let at = ip_bytes(is_v4);
            let packet = &packets[0];
            let native = [&header[at..], &payload].concat();
            let mut expected = Vec::new();
            let sealed = software.seal(SMT, words * 4, &native, &mut expected);
            sealed.unwrap();
            assert_eq!(packet[at + 8..], expected);
        }
    }
}

#[test]
fn headers_of_ip_and_udp_tell_a_packet_to_the_port_of_psp() {
    for is_v4 in [true, false] {
        let (mut near, _, _) = pair();
        let (header, payload) = (data(is_v4, 500, 0), payload(500));
        let (_, packets) = near.send(Some(CONTEXT), &header, &payload, 0);
        let (packet, at) = (&packets[0], ip_bytes(is_v4));
        assert_eq!(packet.len(), header.len() + payload.len() + GROWTH_BYTES);
        let length = |at: usize| usize::from(packet[at]) << 8 | usize::from(packet[at + 1]);
        let udp = packet.len() - at;
        let (protocol, of_ip) = match is_v4 {
            true => (packet[9], length(2) - 20),
            false => (packet[6], length(4)),
        };
        assert_eq!((protocol, of_ip, length(at + 4)), (17, udp, udp));
        assert_eq!((length(at + 2), length(at + 6)), (1_000, 0));
        assert!(length(at) >= 0xC000, "a dynamic port");
        if is_v4 {
            let words = packet[..20].chunks(2);
            let sum: u32 = words.map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
            assert_eq!((sum & 0xFFFF) + (sum >> 16), 0xFFFF);
        }
    }
}

#[test]
fn a_session_keeps_its_source_port_and_others_have_others() {
    let (mut near, _, _) = pair();
    let mut port = |native: u16| {
        let mut header = data(true, 500, 0);
        header[20..22].copy_from_slice(&native.to_be_bytes());
        near.send(Some(CONTEXT), &header, &payload(500), 0).1[0][20..22].to_vec()
    };
    assert_eq!(port(40_000), port(40_000));
    assert_ne!(port(40_000), port(40_001));
}

#[test]
fn nothing_behind_the_headers_is_clear() {
    let (mut near, _, _) = pair();
    let payload = payload(3_000);
    let header = data(true, 3_000, 1_000);
    for packet in near.send(Some(CONTEXT), &header, &payload, 1_000).1 {
        let sealed = &packet[20 + 8 + 16 + 44..];
        assert!(!payload.windows(8).any(|part| sealed.windows(8).any(|of| of == part)));
    }
}

#[test]
fn a_payload_shorter_than_the_clear_headers_is_clear_and_authenticated() {
    let (mut near, mut far, association) = pair();
    let mut header = control(true);
    // A header of three words, and eight bytes behind it.
    header.truncate(20 + 8 + 12);
    header[20 + 8 + 4] = 0x50;
    let (status, packets) = near.send(Some(CONTEXT), &header, &payload(7), 0);
    assert_eq!((status, packets[0][20 + 8 + 2]), (Status::Done, 27 / 4));
    let arrived = far.receive(&packets);
    assert_eq!((arrived.len(), arrived[0].psp), (1, Some(association.spi)));
    assert_eq!(arrived[0].packet[20 + 20..], payload(7));
}

#[test]
fn a_segment_that_no_context_may_seal_is_refused_whole_and_uses_no_iv() {
    let (mut near, _, _) = pair();
    let (marked, alone) = (data(true, 9_000, 1_000), data(true, 9_000, 0));
    let with = |header: &[u8], at: usize, bytes: &[u8]| {
        let mut header = header.to_vec();
        header[at..at + bytes.len()].copy_from_slice(bytes);
        header
    };
    let ipv6 = data(false, 9_000, 1_000);
    let refused = [
        (alone.clone(), 65_535 - alone.len() - GROWTH_BYTES + 1, 0, "too long for IP"),
        (with(&marked, 4, &[0, 0]), 3_000, 1_000, "a place before the first"),
        (with(&marked, 4, &[0xFF, 0xFE]), 3_000, 1_000, "places that come round"),
        (with(&marked, 60, &[0xFF; 4]), 3_000, 1_000, "an offset beyond all"),
        (with(&marked, 9, &[6]), 3_000, 1_000, "another protocol"),
        (ipv6.clone(), 3_000, 1_000, "three packets of IPv6"),
        (with(&ipv6, 40 + 8 + 5, &[0]), 2_000, 1_000, "two packets without a last one"),
    ];
    for (header, bytes, stride, why) in refused {
        let sent = near.send(Some(CONTEXT), &header, &payload(bytes), stride);
        assert_eq!(sent, (Status::BadPayload, vec![]), "{why}");
    }
    assert_eq!(near.nic.context(CONTEXT).unwrap().next_iv(), Some(1));
    let fits = 65_535 - alone.len() - GROWTH_BYTES;
    assert_eq!(near.send(Some(CONTEXT), &alone, &payload(fits), 0).0, Status::Done);
}

#[test]
fn nothing_leaves_in_the_clear_once_the_context_was_destroyed() {
    let (mut near, _, association) = pair();
    let (header, payload) = (data(true, 3_000, 1_000), payload(3_000));
    let send = |near: &mut PspHost| near.send(Some(CONTEXT), &header, &payload, 1_000);
    assert_eq!(send(&mut near).1.len(), 3);
    assert_eq!(near.work(Work::Destroy { context: CONTEXT }).0, Status::Done);
    assert_eq!(send(&mut near), (Status::UnknownContext, vec![]));
    near.add(CONTEXT, &association, 4);
    near.nic.reset();
    assert!(near.nic.context(CONTEXT).is_none());
}

#[test]
fn a_block_of_an_unknown_version_no_spi_or_no_iv_is_refused() {
    let (mut near, mut far) = (PspHost::sender(4), PspHost::receiver());
    let good = block(&far.allocate(), 1);
    let mut create = |changes: &[(usize, u8)]| {
        let mut block = good;
        changes.iter().for_each(|(at, byte)| block[*at] = *byte);
        near.create(ContextId(9), &block)
    };
    assert_eq!(create(&[(0, 2)]), Status::BadContextBlock);
    assert_eq!(create(&[(1, 2)]), Status::BadContextBlock);
    assert_eq!(create(&[(39, 0)]), Status::BadContextBlock);
    assert_eq!(create(&[(36, 0x80), (39, 0)]), Status::BadContextBlock);
    assert_eq!(create(&[(47, 0)]), Status::BadContextBlock);
    assert_eq!(create(&[]), Status::Done);
}
