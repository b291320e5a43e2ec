// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writes captures, as tcpdump and Wireshark would.

use std::net::SocketAddr;

use crate::forwarder::Seen;

/// The classic format, little-endian, in microseconds; frames are bare IP packets.
pub(crate) fn pcap(seen: &[Seen]) -> Vec<u8> {
    const RAW_IP: u32 = 101;
    let mut file = words_le(&[0xA1B2_C3D4, 0x0004_0002, 0, 0, 262_144, RAW_IP]);
    for seen in seen {
        let packet = ip(seen);
        let length = packet.len() as u32;
        let time = seen.time;
        file.extend(words_le(&[time.as_secs() as u32, time.subsec_micros(), length, length]));
        file.extend(packet);
    }
    file
}

/// The newer format, big-endian; frames are Ethernet's.
pub(crate) fn pcapng(seen: &[Seen]) -> Vec<u8> {
    const ETHERNET: u32 = 1 << 16;
    let mut file = block(0x0A0D_0D0A, &words_be(&[0x1A2B_3C4D, 0x0001_0000, !0, !0]));
    file.extend(block(1, &words_be(&[ETHERNET, 262_144])));
    for seen in seen {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00];
        frame.extend(ip(seen));
        let us = seen.time.as_micros() as u64;
        let length = frame.len() as u32;
        let mut body = words_be(&[0, (us >> 32) as u32, us as u32, length, length]);
        frame.resize(frame.len().next_multiple_of(4), 0);
        body.extend(frame);
        file.extend(block(6, &body));
    }
    file
}

fn block(ty: u32, body: &[u8]) -> Vec<u8> {
    let length = body.len() as u32 + 12;
    [&words_be(&[ty, length]), body, &words_be(&[length])].concat()
}

fn ip(seen: &Seen) -> Vec<u8> {
    let (SocketAddr::V4(source), SocketAddr::V4(target)) = (seen.source, seen.target) else {
        panic!("tests are on 127.0.0.1");
    };
    let length = seen.payload.len() as u16;
    let mut packet = vec![0x45, 0];
    packet.extend((length + 28).to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
    packet.extend(source.ip().octets());
    packet.extend(target.ip().octets());
    for value in [source.port(), target.port(), length + 8, 0] {
        packet.extend(value.to_be_bytes());
    }
    packet.extend(&seen.payload);
    packet
}

fn words_le(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn words_be(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}
