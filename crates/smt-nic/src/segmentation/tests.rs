// SPDX-License-Identifier: Apache-2.0 OR MIT
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::*;
use crate::checksum::Sum;
use alloc::vec::Vec;
use std::vec;

const SMT: u8 = 253;
const PAYLOAD: usize = 3_000;

/// Headers of IPv4 or IPv6 with 20 bytes of transport.
fn header(ip: IpVersion, protocol: u8) -> Vec<u8> {
    let mut header = match ip {
        IpVersion::V4 => {
            let mut header = vec![0; 20];
            header[0] = 0x45;
            header[4..6].copy_from_slice(&0xFFFF_u16.to_be_bytes());
            header[9] = protocol;
            header[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
            header
        }
        IpVersion::V6 => {
            let mut header = vec![0; 40];
            header[0] = 0x60;
            header[6] = protocol;
            header[8..40].fill(0xFD);
            header
        }
    };
    let bytes = if protocol == 17 { 8 } else { 20 };
    let at = header.len();
    header.resize(at + bytes, 0);
    if protocol != 17 {
        header[at + 4..at + 8].copy_from_slice(&(u32::MAX - 100).to_be_bytes());
        header[at + 12] = 5 << 4;
        header[at + 13] = 0xFF;
    }
    header
}

fn payload() -> Vec<u8> {
    (0..PAYLOAD).map(|at| at as u8).collect()
}

fn packets(header: &[u8], change: impl Fn(&mut Cut)) -> Vec<Vec<u8>> {
    let mut how = Cut {
        headers: Headers::parse(header, SMT).unwrap(),
        stride: 1_400,
        checksums: true,
        counts_smt_sequence: false,
    };
    change(&mut how);
    let payload = payload();
    let segment = Segment { header, payload: &payload };
    let mut packets: Vec<Vec<u8>> = Vec::new();
    let count = cut(segment, &how, &mut Vec::new(), &mut |packet| {
        packets.push(packet.to_vec());
    });
    assert_eq!(count as usize, packets.len());
    packets
}

#[test]
fn the_payloads_of_the_packets_are_that_of_the_segment() {
    for ip in [IpVersion::V4, IpVersion::V6] {
        for protocol in [6, 17, SMT] {
            let header = header(ip, protocol);
            let packets = packets(&header, |_| {});
            let lengths: Vec<usize> = packets.iter().map(|of| of.len() - header.len()).collect();
            assert_eq!(lengths, [1_400, 1_400, 200]);
            let joined = packets.iter().flat_map(|of| &of[header.len()..]);
            assert!(joined.eq(&payload()));
        }
    }
}

#[test]
fn lengths_and_identifications_of_ipv4_are_each_packets_own() {
    let packets = packets(&header(IpVersion::V4, SMT), |_| {});
    let told: Vec<(u16, u16)> = packets.iter().map(|of| (u16_at(of, 2), u16_at(of, 4))).collect();
    assert_eq!(told, [(1_440, 0xFFFF), (1_440, 0), (240, 1)]);
    for packet in packets {
        assert_eq!(Sum::default().add(&packet[..20]).checksum(), 0);
    }
}

#[test]
fn the_length_of_ipv6_counts_what_is_behind_its_header() {
    let packets = packets(&header(IpVersion::V6, SMT), |_| {});
    let told: Vec<u16> = packets.iter().map(|of| u16_at(of, 4)).collect();
    assert_eq!(told, [1_420, 1_420, 220]);
}

#[test]
fn the_length_of_udp_is_each_packets_own() {
    let packets = packets(&header(IpVersion::V4, 17), |_| {});
    let told: Vec<u16> = packets.iter().map(|of| u16_at(of, 24)).collect();
    assert_eq!(told, [1_408, 1_408, 208]);
}

#[test]
fn checksums_of_all_transports_are_right() {
    for ip in [IpVersion::V4, IpVersion::V6] {
        for protocol in [6, 17, SMT] {
            for packet in packets(&header(ip, protocol), |_| {}) {
                let headers = Headers::parse(&packet, SMT).unwrap();
                let at = headers.transport_at;
                let sum = headers.pseudo_header(&packet, packet.len() - at);
                assert_eq!(sum.add(&packet[at..]).checksum(), 0);
            }
        }
    }
}

#[test]
fn a_checksum_that_was_not_asked_for_is_left_alone() {
    let packets = packets(&header(IpVersion::V4, SMT), |cut| cut.checksums = false);
    assert!(packets.iter().all(|packet| u16_at(packet, 36) == 0));
}

#[test]
fn tcp_counts_its_sequence() {
    let packets = packets(&header(IpVersion::V4, 6), |_| {});
    let sequences: Vec<u32> =
        packets.iter().map(|of| u32::from_be_bytes(of[24..28].try_into().unwrap())).collect();
    assert_eq!(sequences, [u32::MAX - 100, 1_299, 2_699]);
}

#[test]
fn each_flag_is_in_the_packet_where_it_belongs() {
    for protocol in [6, SMT] {
        let packets = packets(&header(IpVersion::V4, protocol), |_| {});
        let flags: Vec<u8> = packets.iter().map(|of| of[33]).collect();
        let others = !(TCP_FIN | TCP_PSH | TCP_CWR);
        assert_eq!(flags, [others | TCP_CWR, others, others | TCP_FIN | TCP_PSH]);
    }
}

#[test]
fn the_sequence_field_of_smt_grows_where_the_device_counts_it() {
    for counts in [false, true] {
        let packets = packets(&header(IpVersion::V4, SMT), |cut| {
            cut.counts_smt_sequence = counts;
        });
        let first = u32::from_be_bytes(packets[0][24..28].try_into().unwrap());
        let second = u32::from_be_bytes(packets[1][24..28].try_into().unwrap());
        assert_eq!(second.wrapping_sub(first), if counts { 1_400 } else { 0 });
    }
}

#[test]
fn a_stride_of_zero_leaves_one_packet() {
    let packets = packets(&header(IpVersion::V4, SMT), |cut| cut.stride = 0);
    assert_eq!(packets.len(), 1);
    assert_eq!(packets[0].len(), 40 + PAYLOAD);
}

#[test]
fn a_packet_that_ip_has_no_length_for_does_not_leave() {
    let header = header(IpVersion::V4, SMT);
    let how = Cut {
        headers: Headers::parse(&header, SMT).unwrap(),
        stride: 0,
        checksums: false,
        counts_smt_sequence: false,
    };
    let payload = vec![0; SEGMENT_MAX];
    let segment = Segment { header: &header, payload: &payload };
    let packets = cut(segment, &how, &mut Vec::new(), &mut |_| unreachable!());
    assert_eq!(packets, 0);
}
